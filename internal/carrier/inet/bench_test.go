package inet_test

import (
	"strconv"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// loop is a port that delivers the same frame for ever and forgets what is
// sent, so that a benchmark sees the cost of the endpoint alone.
type loop struct {
	arena *mem.Arena
	pool  *mem.Pool
	frame fabric.Desc
}

func newLoop(b *testing.B) *loop {
	arena := mem.Over(make([]byte, 256*mem.FrameSize))
	pool, err := mem.NewPool(arena, 128, false)
	if err != nil {
		b.Fatal(err)
	}
	addr, err := arena.Alloc(mem.FrameSize, mem.FrameSize) // outside the pool: Put ignores it
	if err != nil {
		b.Fatal(err)
	}
	return &loop{arena: arena, pool: pool, frame: fabric.Desc{Addr: addr}}
}

func (l *loop) Caps() fabric.PortCaps {
	return fabric.PortCaps{Driver: "loop", MTU: 9000, MaxBufs: 18, TxDepth: 1 << 20, RxDepth: 64}
}
func (l *loop) Arena() *mem.Arena { return l.arena }
func (l *loop) Pool() *mem.Pool   { return l.pool }
func (l *loop) Recv(dst []fabric.Desc) int {
	for i := range batch {
		dst[i] = l.frame
	}
	return batch
}
func (l *loop) TxFree() int                { return 1 << 20 }
func (l *loop) Send(src []fabric.Desc) int { return len(src) }
func (l *loop) Flush()                     {}
func (l *loop) FD() int                    { return -1 }
func (l *loop) Stats() fabric.PortStats    { return fabric.PortStats{} }
func (l *loop) Close() error               { return nil }

const batch = 16

func benchEndpoint(b *testing.B) (*inet.Datagram, *loop) {
	l := newLoop(b)
	e, err := inet.New(inet.Config{Port: l, Resolver: newNetwork(), Local: addrB, MAC: macB})
	if err != nil {
		b.Fatal(err)
	}
	return e, l
}

// BenchmarkRecv reports the cost of one datagram, port excluded.
func BenchmarkRecv(b *testing.B) {
	for _, size := range []int{8, 64, 512, 3000} {
		b.Run(strconv.Itoa(size)+"B", func(b *testing.B) {
			e, l := benchEndpoint(b)
			frame := datagram(pattern(size))
			l.frame.Len = uint32(copy(l.arena.At(l.frame.Addr, mem.FrameSize), frame))
			rx := fabric.NewBatch(batch, fabric.MaxBufs)
			for b.Loop() {
				e.Recv(rx)
				e.Release(rx)
			}
			if e.Stats().RxPackets != uint64(b.N)*batch {
				b.Fatalf("stats %+v", e.Stats())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/pkt")
		})
	}
}

// BenchmarkSend reports the cost of one datagram, port excluded.
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{8, 64, 512, 3000} {
		b.Run(strconv.Itoa(size)+"B", func(b *testing.B) {
			e, l := benchEndpoint(b)
			to, err := e.Resolve(addrA)
			if err != nil {
				b.Fatal(err)
			}
			tx := fabric.NewBatch(batch, 1)
			for i := range batch {
				tx.Pkts = append(tx.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: int32(size), To: to, Sealed: true})
				tx.Descs = append(tx.Descs, fabric.Desc{Addr: l.frame.Addr + inet.Headroom, Len: uint32(size)})
			}
			for b.Loop() {
				e.Send(tx)
				e.Flush()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/pkt")
		})
	}
}
