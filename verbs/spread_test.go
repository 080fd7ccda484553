package verbs_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/verbs"
)

// spread is one sender of long Writes to a host that has two NICs as well.
type spread struct {
	incast
	size, flight int       // bytes of a Write, and how many are under way
	sent         [2]uint64 // bytes that each NIC of the sender has sent in the time that is measured
	left         uint64    // paths
}

// hold is the receiver: it only keeps going.
func (x *spread) hold(t *sim.Task) error {
	e, err := x.endpoint(t, 0, 16, x.size)
	if err != nil {
		return err
	}
	x.key, x.ready = e.mr.RKey(), true
	for x.ended < 1 {
		step(e.ctx)
	}
	for i, b := range e.mr.Bytes() {
		if b != byte(i*7>>3) {
			return fmt.Errorf("byte %d is %#x", i, b)
		}
	}
	return x.finish(e)
}

// write sends until the time is over.
func (x *spread) write(t *sim.Task) error {
	e, err := x.endpoint(t, 1, 16, x.size)
	if err != nil {
		return err
	}
	for i := range e.mr.Bytes() {
		e.mr.Bytes()[i] = byte(i * 7 >> 3)
	}
	for !x.ready {
		t.Sleep(mono.Microsecond)
	}
	if e.ah, err = e.pd.CreateAH(x.f.addr(0)); err != nil {
		return err
	}
	flight := 0
	var wcs [16]verbs.WC
	for open := true; open || flight > 0; open = t.Now() < x.until {
		for ; open && flight < x.flight; flight++ {
			wr := verbs.SendWR{
				Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, NumSGE: 1,
				SGL: [verbs.MaxSGE]verbs.SGE{e.mr.SGE(0, x.size)}, RKey: x.key, AH: e.ah,
			}
			if err := e.qp.PostSend(&wr); err != nil {
				return err
			}
		}
		step(e.ctx)
		for _, wc := range wcs[:e.scq.Poll(wcs[:])] {
			if wc.Status != verbs.Success {
				return fmt.Errorf("at %v: %+v", t.Now(), wc)
			}
			flight--
			if now := t.Now(); now >= x.from && now < x.until {
				x.bytes[0] += int64(x.size)
			}
		}
	}
	x.ended++
	st, _ := e.ctx.Stats()
	x.left = st.PathsLeft
	return x.finish(e)
}

// Times of a run: both ends know each other on both networks, and what the networks are
// like, before the first.
const (
	spreadFrom  = mono.Time(60 * mono.Millisecond)
	spreadUntil = mono.Time(80 * mono.Millisecond)
)

// run returns what arrived in bits per second, between hosts whose NICs were set, from
// spreadFrom and the time after on.
func (x *spread) run(t *testing.T, seed uint64, mtu int, set func(f *simFabric), after mono.Duration) (goodput float64) {
	t.Helper()
	x.size, x.flight = 256<<10, 16
	x.f = newSimFabric(sim.Config{Seed: seed, MTU: mtu}, 2)
	x.f.withSecond(mtu)
	set(x.f)
	x.n, x.from, x.until, x.bytes = 1, spreadFrom.Add(after), spreadUntil.Add(after), make([]int64, 1)
	nics := []*sim.Node{x.f.nodes[1], x.f.second[1]}
	var before [2]uint64
	x.f.world.At(x.from, func() {
		for i, n := range nics {
			before[i] = n.Up.Stats().Bytes
		}
	})
	x.f.world.At(x.until, func() {
		for i, n := range nics {
			x.sent[i] = n.Up.Stats().Bytes - before[i]
		}
	})
	x.f.world.Go(x.f.nodes[0], "receiver", x.hold)
	x.f.world.Go(x.f.nodes[1], "sender", x.write)
	if err := x.f.world.Run(); err != nil {
		t.Fatal(err)
	}
	return float64(8*x.bytes[0]) / (float64(x.until-x.from) / 1e9)
}

// on does something to both directions of the NICs of all hosts on a network.
func on(network int, set ...func(*sim.Link)) func(*simFabric) {
	return func(f *simFabric) {
		for i := range f.nodes {
			n := [2]*sim.Node{f.nodes[i], f.second[i]}[network]
			for _, s := range set {
				s(&n.Up)
				s(&n.Down)
			}
		}
	}
}

func rate(bits int64) func(*sim.Link)       { return func(l *sim.Link) { l.BitsPerSecond = bits } }
func delay(d mono.Duration) func(*sim.Link) { return func(l *sim.Link) { l.Delay = d } }
func losing(share float64) func(*sim.Link)  { return func(l *sim.Link) { l.Loss = share } }
func dead(l *sim.Link)                      { l.CutUntil = mono.Never }

// Long messages use all networks that are alive, each for what it can carry, and none
// makes the others slower than they are without it.
func TestSpread_goodput(t *testing.T) {
	const gbit = 1e9
	for _, c := range []struct {
		name   string
		set    func(*simFabric)
		least  float64 // Gbit/s, of a first network that carries 9.86 or, at MTU 1500, 9.23
		second float64 // least share of what is sent that goes by the second
		after  mono.Duration
	}{
		{"first alone", on(1, dead), 9.1, 0, 0},
		{"equal", on(1), 18.2, 0.48, 0},
		{"second a quarter", on(1, rate(2.5*gbit)), 11.3, 0.18, 0},
		{"first a quarter", on(0, rate(2.5*gbit)), 11.3, 0.75, 0},
		{"second a little farther", on(1, delay(20*mono.Microsecond)), 17, 0.45, 0},
		{"second far", on(1, delay(mono.Millisecond)), 9.1, 0, 0},
		{"first far", on(0, delay(mono.Millisecond)), 9.1, 0.9, 0},
		{"second very far", on(1, delay(5*mono.Millisecond)), 9.1, 0, 500 * mono.Millisecond}, // its round trip is longer than the first time-out
		{"first very far", on(0, delay(5*mono.Millisecond)), 9.1, 0.9, 500 * mono.Millisecond},
		{"second a hundredth", on(1, rate(gbit/10)), 8, 0, 0},
		{"loss on the second", on(1, losing(0.01)), 13, 0.25, 0},
		{"loss on the first", on(0, losing(0.01)), 13, 0.4, 0},
	} {
		for _, mtu := range []int{9000, 1500} {
			if mtu == 1500 && verbs.Slow {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", c.name, mtu), func(t *testing.T) {
				t.Parallel()
				x := &spread{}
				got := x.run(t, 0, mtu, c.set, c.after) / gbit
				share := float64(x.sent[1]) / float64(x.sent[0]+x.sent[1])
				t.Logf("%.2f Gbit/s, %.0f %% by the second; resent %d, left %d", got, 100*share, x.resent, x.left)
				if got < c.least || share < c.second {
					t.Errorf("%.2f Gbit/s, %.2f of it by the second network: want %.2f and %.2f", got, share, c.least, c.second)
				}
			})
		}
	}
}
