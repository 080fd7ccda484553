package conform

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// storm is what reliable datagrams must bear.
func storm(seed uint64) fault.Config {
	return fault.Config{Seed: seed, Loss: 0.03, Dup: 0.03, Reorder: 0.05, Corrupt: 0.02}
}

// verbsOver runs the suite over a carrier as it is, and with faults.
func verbsOver(t *testing.T, net func(t *testing.T, hosts int) Net) {
	t.Run("quiet", func(t *testing.T) { Verbs(t, VerbsConfig{Net: net}) })
	t.Run("storm", func(t *testing.T) { Verbs(t, VerbsConfig{Net: net, Faults: storm(5)}) })
}

// newArenas makes an arena for each host, which all cases share: making one
// takes longer than a case.
func newArenas(t *testing.T) (all [3]*mem.Arena) {
	t.Helper()
	for i := range all {
		a, err := mem.New(mem.Config{Size: 48 << 20, SmallPages: true})
		if err != nil {
			t.Fatal(err)
		}
		testenv.Closing(t, a)
		all[i] = a
	}
	return all
}

func yield(int) { runtime.Gosched() }

// only returns what to run a suite with: everything, and under the race detector
// the first of it. What lies beneath differs in bytes, and not in who touches them.
func only[T any](all ...T) []T {
	if slow {
		return all[:1]
	}
	return all
}

// oneGoroutine leaves a test out under the race detector, which finds nothing in a world that one
// goroutine goes through.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if slow {
		t.Skip("one goroutine does all")
	}
}

// TestVerbs_pipe joins hosts by a switch in memory.
func TestVerbs_pipe(t *testing.T) {
	for _, mtu := range only(9000, 1500) {
		t.Run(fmt.Sprint("MTU=", mtu), func(t *testing.T) {
			verbsOver(t, func(t *testing.T, hosts int) Net { return pipeNet(mtu, hosts) })
		})
	}
}

func pipeNet(mtu, hosts int) Net {
	ports, hops := make([]*Pipe, hosts), inet.Fixed{}
	mac := func(i int) inet.MAC { return inet.MAC{2, 0, 0, 0, 0, byte(i + 1)} }
	addr := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 4791)
	}
	for i := range hosts {
		hops[addr(i).Addr()] = inet.Hop{MAC: mac(i), MTU: mtu}
	}
	forward := func(frame []byte) []byte {
		for i, p := range ports {
			if p != nil && (frame[0]&1 == 1 || inet.MAC(frame[:6]) == mac(i)) {
				p.Inject(frame)
			}
		}
		return nil
	}
	return Net{Multicast: true, Open: func(i int) (fabric.Datagram, []io.Closer, error) {
		port, _, err := NewPipe(PipeConfig{MTU: mtu, Frames: 2048, Depth: 512, Wire: forward})
		if err != nil {
			return nil, nil, err
		}
		ports[i] = port
		d, err := inet.New(inet.Config{Port: port, Resolver: hops, Local: addr(i), MAC: mac(i), MTU: mtu})
		return d, nil, err
	}}
}

// TestVerbs_sim runs in virtual time.
func TestVerbs_sim(t *testing.T) {
	oneGoroutine(t)
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint("MTU=", mtu), func(t *testing.T) {
			net := func(t *testing.T, hosts int) Net { return simNet(t, mtu, hosts) }
			verbsOver(t, net)
			for seed := range uint64(3) {
				for _, secure := range []bool{false, true} {
					t.Run(fmt.Sprintf("storm %d secure=%v", seed, secure), func(t *testing.T) {
						Verbs(t, VerbsConfig{Net: net, Faults: storm(1000 + 10*seed), Secure: secure})
					})
				}
			}
		})
	}
}

func simNet(t *testing.T, mtu, hosts int) Net {
	w := sim.New(sim.Config{Seed: 1, MTU: mtu, Limit: mono.Duration(mono.Never), ArenaSize: 24 << 20, Frames: 2048})
	nodes := w.Nodes(hosts)
	return Net{
		Clock: w, Virtual: true, Multicast: true, Step: passing(t, w, nodes[0]),
		Open: func(i int) (fabric.Datagram, []io.Closer, error) {
			port, err := nodes[i].Open(nil)
			if err != nil {
				return nil, nil, err
			}
			d, err := inet.New(inet.Config{
				Port: port, Resolver: neighbours{w}, Local: netip.AddrPortFrom(nodes[i].Addr(), 4791), MAC: nodes[i].MAC(), MTU: mtu,
			})
			return d, nil, err
		},
	}
}

// passing returns a function that lets the world run for a microsecond, and for
// longer the longer nothing has happened.
func passing(t *testing.T, w *sim.World, n *sim.Node) func(idle int) {
	var pause mono.Duration
	step := stepping(t, w, n, &pause)
	return func(idle int) {
		pause = mono.Microsecond * mono.Duration(min(1+idle/32, 50))
		step()
	}
}

// TestVerbs_shm runs in shared memory.
func TestVerbs_shm(t *testing.T) {
	arenas := newArenas(t)
	for _, mtu := range only(9000, 1500, 65535) {
		t.Run(fmt.Sprint("MTU=", mtu), func(t *testing.T) {
			verbsOver(t, func(t *testing.T, hosts int) Net {
				locals := loopbacks(hosts)
				return Net{Step: yield, Open: func(i int) (fabric.Datagram, []io.Closer, error) {
					d, err := shm.Open(shm.Config{Arena: arenas[i], Local: locals[i], MTU: mtu, Peers: 8, Track: true})
					if err == nil {
						locals[i] = d.Local()
					}
					return d, nil, err
				}}
			})
		})
	}
}

// loopbacks are addresses whose ports are chosen when they are first opened.
func loopbacks(n int) []netip.AddrPort {
	all := make([]netip.AddrPort, n)
	for i := range all {
		all[i] = netip.MustParseAddrPort("127.0.0.1:0")
	}
	return all
}

// TestVerbs_kudpLoopback runs over kernel UDP.
func TestVerbs_kudpLoopback(t *testing.T) {
	arenas := newArenas(t)
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint("MTU=", mtu), func(t *testing.T) {
			verbsOver(t, func(t *testing.T, hosts int) Net {
				locals := loopbacks(hosts)
				return Net{Step: yield, Open: func(i int) (fabric.Datagram, []io.Closer, error) {
					d, err := kudp.Open(kudp.Config{Arena: arenas[i], Local: locals[i], MTU: mtu, Track: true})
					if err == nil {
						locals[i] = d.Local()
					}
					return d, nil, err
				}}
			})
		})
	}
}

// bed makes a testbed of three hosts, which all cases share.
func bed(t *testing.T, mtu int) *hosts {
	t.Helper()
	tb := hosttest.New(t, testbed.Config{Hosts: 3, MTU: mtu})
	return &hosts{tb}
}

type hosts struct{ *testbed.Testbed }

func (h *hosts) on(i int, fn func() error) error { return h.Hosts[i].Do(fn) }

// TestVerbs_kudpVeth runs over kernel UDP between network namespaces.
func TestVerbs_kudpVeth(t *testing.T) {
	tb, arenas := bed(t, 9000), newArenas(t)
	verbsOver(t, func(t *testing.T, hosts int) Net {
		return Net{Step: yield, Multicast: true, On: tb.on, Open: func(i int) (d fabric.Datagram, under []io.Closer, err error) {
			err = tb.on(i, func() (err error) {
				d, err = kudp.Open(kudp.Config{Arena: arenas[i], Local: netip.AddrPortFrom(tb.Hosts[i].Addr, 4791), Track: true})
				return err
			})
			return d, under, err
		}}
	})
}

// TestVerbs_xdp runs over AF_XDP between network namespaces, with both drivers.
func TestVerbs_xdp(t *testing.T) {
	ours := func(c xdp.Config) (fabric.Port, error) { return xdp.Open(c) }
	theirs := func(c xdp.Config) (fabric.Port, error) { return asavie.Open(c) }
	for _, d := range []struct {
		name string
		mtu  int
		mode bpf.Mode
		open func(xdp.Config) (fabric.Port, error)
	}{
		{"generic", 9000, bpf.Generic, ours},
		{"generic1500", 1500, bpf.Generic, ours},
		{"driver", 9000, bpf.Driver, ours},
		{"driver1500", 1500, bpf.Driver, ours},
		{"asavie", 1500, bpf.Generic, theirs},
		{"asavieDriver", 1500, bpf.Driver, theirs},
	} {
		if slow && (d.name == "generic1500" || d.name == "driver" || d.name == "asavie") {
			continue // the other mode and MTU of each driver
		}
		t.Run(d.name, func(t *testing.T) {
			tb, arenas := bed(t, d.mtu), newArenas(t)
			var open [3]kept
			for i := range open {
				open[i] = keepOn(t, tb, i, arenas[i], d.mode, d.open)
			}
			verbsOver(t, func(*testing.T, int) Net {
				return Net{Step: yield, Multicast: true, On: tb.on, Open: func(i int) (fabric.Datagram, []io.Closer, error) {
					return open[i], nil, nil
				}}
			})
		})
	}
}

// kept is an endpoint that stays open for the next case: to open an AF_XDP
// socket takes longer than a case.
type kept struct{ *inet.Datagram }

// Close forgets what nobody has received.
func (k kept) Close() error {
	b := fabric.NewBatch(64, fabric.MaxBufs)
	for k.Recv(b) > 0 {
		k.Release(b)
	}
	k.Flush()
	return nil
}

// keepOn opens an endpoint on host i, which is closed when t ends.
func keepOn(t *testing.T, tb *hosts, i int, a *mem.Arena, mode bpf.Mode, open func(xdp.Config) (fabric.Port, error)) kept {
	t.Helper()
	var e *inet.Datagram
	err := tb.on(i, func() (err error) {
		e, err = endpointOn(t, tb.Hosts[i].Dev, a, mode, open)
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		testenv.NoXDP(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, e)
	return kept{e}
}

// endpointOn opens an endpoint on the device of a host, in whose network
// namespace it is called.
func endpointOn(t *testing.T, dev string, a *mem.Arena, mode bpf.Mode, open func(xdp.Config) (fabric.Port, error)) (*inet.Datagram, error) {
	table, err := route.Open(route.Config{Link: dev})
	if err != nil {
		return nil, err
	}
	testenv.Closing(t, table)
	port, err := open(xdp.Config{
		Device: dev, Arena: a, Mode: mode, Steer: bpf.Config{PortBase: 4791},
		RxDepth: 1024, TxDepth: 1024, Frames: 4096, Track: true,
	})
	if err != nil {
		return nil, err
	}
	link := table.Link()
	return inet.New(inet.Config{Port: port, Resolver: table, Local: netip.AddrPortFrom(link.Addr, 4791), MAC: link.MAC})
}
