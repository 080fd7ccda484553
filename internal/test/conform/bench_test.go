package conform

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// BenchmarkPingPong reports half a round trip between two threads that spin:
// what carriers of one host cost by themselves.
func BenchmarkPingPong(b *testing.B) {
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	for _, c := range []struct {
		name string
		open func(a *mem.Arena) (fabric.Datagram, error)
	}{
		{"shm", func(a *mem.Arena) (fabric.Datagram, error) {
			return shm.Open(shm.Config{Arena: a, Local: loopback})
		}},
		{"udp", func(a *mem.Arena) (fabric.Datagram, error) {
			return kudp.Open(kudp.Config{Arena: a, Local: loopback, MTU: 9000})
		}},
	} {
		for _, size := range []int{8, 64, 1024, 8192} {
			b.Run(fmt.Sprintf("%s/size=%d", c.name, size), func(b *testing.B) {
				var ends [2]*end
				for i := range ends {
					d, err := c.open(newArena(b))
					if err != nil {
						b.Fatal(err)
					}
					testenv.Closing(b, d)
					ends[i] = newEnd(b, d, nil)
				}
				meet(ends[0], ends[1])
				pingPong(b, ends[0], ends[1], size)
			})
		}
	}
}

func pingPong(b *testing.B, client, server *end, size int) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		runtime.LockOSThread()
		for {
			for server.Recv(server.rx) == 0 {
				select {
				case <-stop:
					return
				default:
				}
			}
			server.Release(server.rx)
			server.bounce(size)
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		client.bounce(size)
		for client.Recv(client.rx) == 0 {
		}
		client.Release(client.rx)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half-trip")
	close(stop)
	<-stopped
}

// bounce sends a datagram of whatever is in its frames.
func (e *end) bounce(size int) {
	e.tx.Reset()
	p := fabric.Packet{Len: int32(size), To: e.to}
	for left := size; left > 0; left -= mem.FrameSize {
		f, _ := e.Frame()
		e.tx.Descs = append(e.tx.Descs, fabric.Desc{Addr: f, Len: uint32(min(left, mem.FrameSize))})
		p.Bufs++
	}
	e.tx.Pkts = append(e.tx.Pkts, p)
	e.Send(e.tx)
	e.Flush()
}
