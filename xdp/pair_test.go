package xdp_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// openPair opens two ports on a host, which share a pool.
func openPair(t *testing.T, h *testbed.Host, mode bpf.Mode) (first, second end) {
	t.Helper()
	c := config(newArena(t))
	c.Mode = mode
	var a, b *xdp.Port
	if err := h.Do(func() (err error) {
		a, b, err = xdp.OpenPair(c, 1)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	})
	if a.Pool() != b.Pool() || a.Pool().Cap() != 2*c.Frames {
		t.Errorf("the ports do not share a pool of %d frames", 2*c.Frames)
	}
	return end{a, h}, end{b, h}
}

// What is sent on the first port of a host arrives at the first of the other,
// and so with the second ones, wherever their receive work is done.
func TestOpenPair(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Generic, bpf.Driver} {
		t.Run(mode.String(), func(t *testing.T) {
			tb := testbedOf(t, testbed.Config{MTU: 9000, Queues: 3})
			if err := tb.Hosts[1].ReceiveOn(1, 0); err != nil {
				t.Fatal(err)
			}
			var hosts [2][2]end
			for i := range hosts {
				hosts[i][0], hosts[i][1] = openPair(t, tb.Hosts[i], mode)
			}
			rng := newRand()
			for round := range 200 {
				from, which := round%2, round/2%2
				a, b := hosts[from][which], hosts[1-from][which]
				want := content(rng, a, b, udpHeaderLen+rng.IntN(9014-udpHeaderLen))
				send(a, build(rng, a, want)...)
				if got := recv(b); !bytes.Equal(got, want) {
					t.Fatalf("round %d: %d bytes arrive, %d were sent, they differ", round, len(got), len(want))
				}
			}
			for i := range hosts {
				wantNoDrops(t, hosts[i][0], hosts[i][1])
			}
		})
	}
}

func TestOpenPair_errors(t *testing.T) {
	tb := testbedOf(t, testbed.Config{MTU: 1500, Queues: 2})
	for _, c := range []struct {
		bulk int
		mode bpf.Mode
		want error
	}{
		{0, bpf.Generic, nil}, {-1, bpf.Generic, nil},
		{1, bpf.Generic, xdp.ErrNoQueue}, // sends on the next one
		{2, bpf.Driver, xdp.ErrNoQueue},
	} {
		arena := newArena(t)
		free := arena.Room()
		config := config(arena)
		config.Mode = c.mode
		err := tb.Hosts[0].Do(func() error {
			_, _, err := xdp.OpenPair(config, c.bulk)
			return err
		})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("second queue %d in %v mode: %v", c.bulk, c.mode, err)
		}
		if now := arena.Room(); now != free {
			t.Errorf("second queue %d: %d bytes of the arena are lost", c.bulk, free-now)
		}
	}
}
