package secure

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
)

// What a datagram costs through a mesh, encrypted and in clear: both ends together.
func BenchmarkDatagram(b *testing.B) {
	for _, size := range []int{90, 1400, 8000} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/secure=%v", size, on), func(b *testing.B) {
				net, err := mesh.New(mesh.Config{})
				if err != nil {
					b.Fatal(err)
				}
				var from, to fabric.Datagram = net.Open(addrA, 0), net.Open(addrB, 0)
				if on {
					for _, d := range []*fabric.Datagram{&from, &to} {
						if *d, err = New(*d, Config{Secret: counting()}); err != nil {
							b.Fatal(err)
						}
					}
				}
				path, err := from.Resolve(addrB)
				if err != nil {
					b.Fatal(err)
				}
				tx, rx := fabric.NewBatch(1, fabric.MaxBufs), fabric.NewBatch(1, fabric.MaxBufs)
				headroom := mem.Addr(from.Caps().Headroom)
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for b.Loop() {
					p := fabric.Packet{Len: int32(size), To: path}
					at := headroom
					for left := size; left > 0; at = 0 {
						f, _ := from.Frame()
						n := min(left, mem.FrameSize-int(at))
						left -= n
						tx.Descs = append(tx.Descs, fabric.Desc{Addr: f + at, Len: uint32(n)})
						p.Bufs++
					}
					tx.Pkts = append(tx.Pkts, p)
					from.Send(tx)
					from.Flush()
					tx.Reset()
					if to.Recv(rx) != 1 {
						b.Fatal("lost")
					}
					to.Release(rx)
				}
			})
		}
	}
}
