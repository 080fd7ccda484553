package conform

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/sim"
)

// neighbours is the resolver of a simulated world.
type neighbours struct{ world *sim.World }

func (n neighbours) Resolve(dst netip.Addr) (inet.Hop, error) {
	hop, ok := n.Current(dst)
	if !ok {
		return hop, inet.ErrUnknownHost
	}
	return hop, nil
}

func (n neighbours) Current(dst netip.Addr) (inet.Hop, bool) {
	mac, ok := n.world.MACOf(dst)
	return inet.Hop{MAC: mac, MTU: 9000}, ok
}

func (n neighbours) Follow(netip.Addr) {}

func (n neighbours) Doubt(netip.Addr) netip.Addr { return netip.Addr{} }

func (n neighbours) Generation() uint64 { return 0 }

func TestDatagram_inetSim(t *testing.T) {
	oneGoroutine(t)
	Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
		w := sim.New(sim.Config{Seed: 1, Limit: mono.Duration(mono.Never)})
		var ends [2]*inet.Datagram
		nodes := w.Nodes(2)
		for i, n := range nodes {
			port, err := n.Open(nil)
			if err != nil {
				t.Fatal(err)
			}
			ends[i] = newEndpoint(t, inet.Config{
				Port: port, Resolver: neighbours{w}, Local: netip.AddrPortFrom(n.Addr(), 4791), MAC: n.MAC(),
			})
		}
		return ends[0], ends[1], steps(t, w, nodes[0])
	})
}

// steps runs a world next to the test: it stands still but while the function
// that steps returns is called, which lets it run for 1 us.
func steps(t *testing.T, w *sim.World, n *sim.Node) func() {
	pause := mono.Microsecond
	return stepping(t, w, n, &pause)
}

// stepping is steps with a time to run of one's own.
func stepping(t *testing.T, w *sim.World, n *sim.Node, pause *mono.Duration) func() {
	turn, done := make(chan struct{}), make(chan error)
	w.Go(n, "test", func(task *sim.Task) error {
		for range turn {
			task.Sleep(*pause)
			done <- nil
		}
		return nil
	})
	running := false
	t.Cleanup(func() {
		close(turn)
		if !running {
			return
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() {
		if !running { // not before: until now the test has used the world
			running = true
			go func() { done <- w.Run() }()
		}
		turn <- struct{}{}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestStreams_sim runs in virtual time, over streams that are gentle and such
// that are cut anywhere.
func TestStreams_sim(t *testing.T) {
	oneGoroutine(t)
	r := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]sim.StreamConfig{
		"plain":  {},
		"random": {Segment: func(_ int, _ int64, n int) int { return 1 + r.IntN(n) }},
		"window": {SendBuffer: 5000, RecvBuffer: 3000},
	} {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ",v6=", v6), func(t *testing.T) {
				Streams(t, func(t *testing.T) StreamNet {
					w := sim.New(sim.Config{Seed: 1, Limit: mono.Duration(mono.Never), ArenaSize: 1 << 20})
					nodes := w.Nodes(2)
					net := StreamNet{
						Clock: w, Virtual: true, Step: passing(t, w, nodes[0]),
						Open: func(i int) (fabric.Streams, []io.Closer, error) { return nodes[i].Streams(c), nil, nil },
					}
					if v6 {
						net.Addr = func(i int) netip.Addr { return nodes[i].Addr6() }
					}
					return net
				})
			})
		}
	}
}
