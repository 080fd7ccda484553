package verbs_test

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/verbs"
)

// Messages from arena memory are sent from where they lie. Wherever they begin
// and end, and whatever is lost, the same bytes arrive.
func TestSend_fromTheArena(t *testing.T) {
	for _, mtu := range []int{1500, 9000, 20000} {
		a, b := newPair(t, mtu, 100000)
		at, err := a.ctx.Arena().Alloc(1<<16, mem.FrameSize)
		must(t, err)
		src := a.ctx.Arena().At(at, 1<<16)
		fillRandom(src)
		mr, err := a.pd.RegMR(src, verbs.LocalWrite)
		must(t, err)
		for _, off := range []int{0, 1, 63, 4032, 4095, 4096, 5000} {
			for _, n := range []int{4096, 8191, 8192, 8193, 8900, 8920, 8921, 12288, 16000, 40000, 60000} {
				clear(b.mr.Bytes())
				b.recv(t, 0, 100000)
				write(t, a, mr.SGE(off, n), b.mr.Addr()+7, b.mr.RKey())
				send(t, a, verbs.Signaled, mr.SGE(off, n/2)) // behind it, and partly from the arena too
				if wc := wait(a, b, b.rcq); wc.Status != verbs.Success || wc.ByteLen != uint32(n/2) {
					t.Fatalf("MTU %d, %d bytes at %d: %+v", mtu, n, off, wc)
				}
				if got := b.mr.Bytes(); !bytes.Equal(got[:n/2], src[off:off+n/2]) || n/2 < 7 {
					t.Fatalf("MTU %d, %d bytes at %d: the Send is wrong", mtu, n/2, off)
				}
				if got := b.mr.Bytes()[n/2 : n+7]; !bytes.Equal(got, src[off+n/2-7:off+n]) {
					t.Fatalf("MTU %d, %d bytes at %d: the Write is wrong", mtu, n, off)
				}
				for range 2 {
					if wc := wait(a, b, a.scq); wc.Status != verbs.Success {
						t.Fatalf("MTU %d, %d bytes at %d: %+v", mtu, n, off, wc)
					}
				}
			}
		}
		if mtu == 9000 {
			s, _ := a.ctx.Stats()
			if s.TxDirect == 0 {
				t.Error("nothing was sent from where it lies")
			}
		}
	}
}
