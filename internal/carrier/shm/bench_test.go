package shm

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// BenchmarkBatch reports what a datagram costs, sent and received by one
// thread, as the benchmark of that name in internal/carrier/kudp does.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{64, 1400, 8192} {
		for _, n := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("size=%d/batch=%d", size, n), func(b *testing.B) {
				tx, rx := open(b, Config{Peers: 4}), open(b, Config{Peers: 4})
				to := resolve(b, tx, rx.Local())
				batch, got := fabric.NewBatch(n, 3), fabric.NewBatch(n, 1)
				for b.Loop() {
					batch.Reset()
					for range n {
						p := fabric.Packet{First: int32(len(batch.Descs)), Len: int32(size), To: to}
						for left := size; left > 0; left -= 4096 {
							f, _ := tx.Frame()
							batch.Descs = append(batch.Descs, fabric.Desc{Addr: f, Len: uint32(min(left, 4096))})
							p.Bufs++
						}
						batch.Pkts = append(batch.Pkts, p)
					}
					tx.Send(batch)
					tx.Flush()
					for left := n; left > 0; {
						left -= rx.Recv(got)
						rx.Release(got)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pkt")
			})
		}
	}
}
