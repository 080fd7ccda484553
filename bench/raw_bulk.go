package bench

import (
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// The queue for bulk data, and how many a device must have for it: see
// xdp.OpenPair.
const (
	bulkQueue  = 1
	bulkQueues = 3
)

// arenaSize returns how much memory the frames of the ports take.
func (f *frameBench) arenaSize() int {
	if f.Spec.Bulk {
		return 2 * rawArena
	}
	return rawArena
}

// openPorts opens the port that it returns, and with a second queue the port
// for streams.
func (f *frameBench) openPorts(c xdp.Config) (fabric.Port, error) {
	if f.Spec.Fabric == "xdp:asavie" {
		return asavie.Open(c)
	}
	if !f.Spec.Bulk {
		return xdp.Open(c)
	}
	port, bulk, err := xdp.OpenPair(c, bulkQueue)
	if err == nil {
		f.bulk = bulk
	}
	return port, err
}

// recv takes what has arrived on either port.
func (f *frameBench) recv() int {
	n := f.port.Recv(f.rx[:])
	if n == 0 && f.bulk != nil {
		n = f.bulk.Recv(f.rx[:])
	}
	return n
}

// flush gives both ports their turn.
func (f *frameBench) flush() {
	f.port.Flush()
	if f.bulk != nil {
		f.bulk.Flush()
	}
}

// sendBulk is send over the port for streams.
func (f *frameBench) sendBulk(h *frame, word, second uint64) bool {
	if f.bulk != nil {
		return f.sendOn(f.bulk, h, word, second)
	}
	return f.sendOn(f.port, h, word, second)
}
