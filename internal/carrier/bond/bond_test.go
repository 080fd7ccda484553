package bond_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/bond"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
)

// hand is a clock that the test moves.
type hand struct{ now mono.Time }

func (h *hand) Now() mono.Time { return h.now }

func at(network, host byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, network, 0, host}), 7)
}

// clogged is a carrier whose send queue may be full.
type clogged struct {
	fabric.Datagram
	full bool
	sent int
}

func (c *clogged) TxRoom() int {
	if c.full {
		return 0
	}
	return c.Datagram.TxRoom()
}

func (c *clogged) Send(b *fabric.Batch) {
	if c.full {
		panic("sent where there is no room")
	}
	c.sent += len(b.Pkts)
	c.Datagram.Send(b)
}

// pair returns the bonds of two hosts on two networks, and the first's second carrier.
func pair(t *testing.T) (net *mesh.Net, a, b *bond.Carrier, second *clogged, clock *hand) {
	t.Helper()
	net, err := mesh.New(mesh.Config{Frames: 64})
	if err != nil {
		t.Fatal(err)
	}
	clock = &hand{now: 1e9}
	second = &clogged{Datagram: net.Open(at(2, 1), 0)}
	if a, err = bond.New([]fabric.Datagram{net.Open(at(1, 1), 0), second}, 8, clock); err != nil {
		t.Fatal(err)
	}
	if b, err = bond.New([]fabric.Datagram{net.Open(at(1, 2), 0), net.Open(at(2, 2), 1500)}, 8, clock); err != nil {
		t.Fatal(err)
	}
	return net, a, b, second, clock
}

// put appends a datagram that says n to a batch.
func put(t *testing.T, c *bond.Carrier, b *fabric.Batch, to fabric.Path, n byte) {
	t.Helper()
	f, ok := c.Frame()
	if !ok {
		t.Fatal("no frame")
	}
	d := fabric.Desc{Addr: f + mem.Addr(c.Caps().Headroom), Len: 1}
	c.Arena().At(d.Addr, 1)[0] = n
	b.Add(fabric.Packet{To: to}, d)
}

// got receives all that has arrived, and returns what came on each network.
func got(c *bond.Carrier) (on [2][]byte) {
	b := fabric.NewBatch(8, fabric.MaxBufs)
	for c.Recv(b) > 0 {
		for _, p := range b.Pkts {
			on[c.Via()] = append(on[c.Via()], c.Arena().At(b.Descs[p.First].Addr, 1)[0])
		}
		c.Release(b)
	}
	return on
}

func paths(t *testing.T, a *bond.Carrier) (to [2]fabric.Path) {
	t.Helper()
	for i := range to {
		var err error
		if to[i], err = a.ResolveOn(i, at(byte(1+i), 2)); err != nil {
			t.Fatal(err)
		}
	}
	if first, err := a.Resolve(at(1, 2)); err != nil || first != to[0] || to[0] == to[1] {
		t.Fatalf("paths %v, and %d, %v", to, first, err)
	}
	return to
}

func TestSend_eachOnItsNetwork(t *testing.T) {
	net, a, b, _, _ := pair(t)
	to := paths(t, a)
	if a.Local() != at(1, 1) || !slices.Equal(a.Locals(), []netip.AddrPort{at(1, 1), at(2, 1)}) || b.Caps().MaxPayload != 1500 {
		t.Errorf("local %v, all %v, payload %d", a.Local(), a.Locals(), b.Caps().MaxPayload)
	}
	for _, c := range []struct {
		networks []int
		want     [2][]byte
	}{
		{[]int{0, 0, 0}, [2][]byte{{0, 1, 2}, nil}},
		{[]int{1, 1}, [2][]byte{nil, {0, 1}}},
		{[]int{0, 1, 1, 0, 1}, [2][]byte{{0, 3}, {1, 2, 4}}},
	} {
		batch := fabric.NewBatch(8, fabric.MaxBufs)
		for n, i := range c.networks {
			put(t, a, batch, to[i], byte(n))
		}
		a.Send(batch)
		a.Flush()
		if on := got(b); !slices.Equal(on[0], c.want[0]) || !slices.Equal(on[1], c.want[1]) {
			t.Errorf("%v: %v arrived, want %v", c.networks, on, c.want)
		}
	}
	if n := a.Stats().TxPackets; n != 10 {
		t.Errorf("%d were sent", n)
	}
	if net.Free() != 64 {
		t.Errorf("%d of 64 frames are free", net.Free())
	}
}

// A carrier that is full is waited for, and after a while its datagrams are dropped, so
// that those of the other go on; when it has room again they are sent.
func TestTxRoom_stuck(t *testing.T) {
	net, a, b, second, clock := pair(t)
	to := paths(t, a)
	send := func(want [2][]byte) {
		t.Helper()
		batch := fabric.NewBatch(8, fabric.MaxBufs)
		put(t, a, batch, to[0], 1)
		put(t, a, batch, to[1], 2)
		a.Send(batch)
		a.Flush()
		if on := got(b); !slices.Equal(on[0], want[0]) || !slices.Equal(on[1], want[1]) {
			t.Errorf("%v arrived, want %v", on, want)
		}
	}
	second.full = true
	for range 3 {
		if n := a.TxRoom(); n != 0 {
			t.Fatalf("room for %d while one is full", n)
		}
		clock.now += 20e6
	}
	a.TxRoom()
	if n := a.TxRoom(); n == 0 {
		t.Fatal("no room though the full one has been so for long")
	}
	send([2][]byte{{1}, nil})
	second.full = false
	if a.TxRoom() == 0 {
		t.Fatal("no room")
	}
	send([2][]byte{{1}, {2}})
	second.full = true
	if n := a.TxRoom(); n != 0 {
		t.Errorf("room for %d at once", n)
	}
	if net.Free() != 64 {
		t.Errorf("%d of 64 frames are free", net.Free())
	}
}

func TestNew_tooMany(t *testing.T) {
	net, err := mesh.New(mesh.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all []fabric.Datagram
	for i := range fabric.MaxPaths + 1 {
		all = append(all, net.Open(at(byte(i), 1), 0))
	}
	for _, n := range []int{0, fabric.MaxPaths + 1} {
		if _, err := bond.New(all[:n], 8, &hand{}); err == nil {
			t.Errorf("a bond of %d", n)
		}
	}
}

func TestAllocs_send(t *testing.T) {
	_, a, b, _, _ := pair(t)
	to := paths(t, a)
	batch, in := fabric.NewBatch(8, fabric.MaxBufs), fabric.NewBatch(8, fabric.MaxBufs)
	if n := testing.AllocsPerRun(100, func() {
		for i := range 4 {
			put(t, a, batch, to[i%2], 1)
		}
		if a.TxRoom() > 0 {
			a.Send(batch)
		}
		a.Flush()
		batch.Reset()
		for b.Recv(in) > 0 {
			b.Release(in)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
