package device

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/fabric/fault"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
)

// Open opens a device. The caller closes the context, and everything that was
// opened for it goes with it.
func Open(s Spec) (*verbs.Context, error) {
	if s.Fabric == "" {
		s.Fabric = "udp"
	}
	if err := checkFabric(s.Fabric); err != nil {
		return nil, err
	}
	if s.Clock == nil {
		s.Clock = mono.Real{}
	}
	for s.Epoch == 0 {
		s.Epoch = rand.Uint32()
	}
	arena, err := mem.New(mem.Config{Size: s.Arena})
	if err != nil {
		return nil, err
	}
	o := opening{closers: []io.Closer{arena}, bulkFD: -1}
	dg, err := o.datagram(&s, arena)
	if err != nil {
		return nil, o.undo(err)
	}
	if s.Faults != (fault.Config{}) {
		faulty, err := fault.NewDatagram(dg, s.Faults)
		if err != nil {
			return nil, errors.Join(dg.Close(), o.undo(err))
		}
		dg = faulty
	}
	poller, err := progress.NewPoller(s.Clock, s.Poller)
	if err != nil {
		return nil, errors.Join(dg.Close(), o.undo(err))
	}
	poller.WatchBell(dg)
	poller.Watch(o.bulkFD)
	o.closers = append(o.closers, poller)
	ctx, err := verbs.New(verbs.Config{
		Datagram: dg, Engine: progress.New(s.Clock, poller), Key: s.Key, Epoch: s.Epoch,
		NoCRC: s.NoCRC, Dgram: s.Dgram, Closers: o.reversed(),
	})
	if err != nil {
		return nil, errors.Join(dg.Close(), o.undo(err))
	}
	return ctx, nil
}

// opening is what was opened so far, in order.
type opening struct {
	closers []io.Closer
	bulkFD  int // the descriptor of a second port, or -1
}

func (o *opening) reversed() []io.Closer {
	r := slices.Clone(o.closers)
	slices.Reverse(r)
	return r
}

func (o *opening) undo(err error) error {
	for _, c := range o.reversed() {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (o *opening) datagram(s *Spec, arena *mem.Arena) (fabric.Datagram, error) {
	var dg fabric.Datagram
	var err error
	switch s.Fabric {
	case "udp":
		dg, err = openUDP(s, arena)
	case "shm":
		dg, err = openShm(s, arena)
	default:
		return o.openXDP(s, arena)
	}
	if err != nil {
		return nil, err
	}
	return s.captureDatagram(dg)
}
