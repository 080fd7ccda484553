package device_test

import (
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

// Benchmark_write1M streams RDMA Writes of 1 MiB between two goroutines of one
// process. xperf, with two processes, is what counts; this one tells what was
// sent again.
func Benchmark_write1M(bm *testing.B) {
	for _, c := range carriers {
		bm.Run(c.name, func(bm *testing.B) {
			a, b := open(bm, c.veth, c.mtu, c.spec)
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				pin(1)
				for {
					select {
					case <-stop:
						return
					default:
					}
					for range 64 { // no Park: nothing would wake it at the end
						b.ctx.Engine().Step()
					}
				}
			}()
			pin(0)
			bm.SetBytes(1 << 20)
			bm.ResetTimer()
			var wcs [16]verbs.WC
			for posted, acked := 0, 0; acked < bm.N; {
				for posted < bm.N && posted-acked < 16 {
					wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, AH: a.ah, NumSGE: 1, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey()}
					wr.SGL[0] = a.mr.SGE(0, 1<<20)
					if err := a.qp.PostSend(&wr); err != nil {
						bm.Fatal(err)
					}
					posted++
				}
				if a.ctx.Engine().Step() == 0 {
					a.ctx.Engine().Park()
				}
				acked += a.scq.Poll(wcs[:])
			}
			bm.StopTimer()
			close(stop)
			<-done
			s, _ := a.ctx.Stats()
			r, _ := b.ctx.Stats()
			bm.ReportMetric(float64(s.TxResent)/float64(s.TxDatagrams), "resent/datagram")
			bm.ReportMetric(float64(r.TxAcks)/float64(s.TxDatagrams), "acks/datagram")
		})
	}
}
