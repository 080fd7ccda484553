package xdp

import "testing"

// More chunks are posted only when a burst has taken half of those that are, and fewer when it is calm.
func TestPort_adapt(t *testing.T) {
	p := &Port{rxDepth: 2048}
	p.begin(false)
	for i, c := range []struct{ bufs, waiting, want int }{
		{1, 0, quietDepth}, {64, 0, quietDepth}, {64, quietDepth/2 - 64, quietDepth},
		{64, quietDepth / 2, 2 * quietDepth}, {64, quietDepth / 2, 2 * quietDepth}, {burstBufs, 600, 2048}, {64, 2000, 2048},
	} {
		if p.adapt(c.bufs, c.waiting); p.want != c.want {
			t.Errorf("receive %d: %d chunks are wanted, not %d", i, p.want, c.want)
		}
	}
	for range calmAfter + 1 {
		p.adapt(1, 0)
	}
	if p.want != quietDepth {
		t.Errorf("%d chunks are wanted when it is calm", p.want)
	}
}
