package conform

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// GroupOpener makes three carriers that can reach each other, on three hosts
// and with the same port, and closes them when the test ends or later; see [Opener].
// within runs a function where carrier i was opened, in its network namespace;
// nil runs it anywhere.
type GroupOpener func(t *testing.T) (ends [3]fabric.Datagram, step func(), within func(i int, f func() error) error)

// The second group has the Ethernet address of the first.
var (
	groupA     = netip.MustParseAddr("239.1.2.3")
	groupATwin = netip.MustParseAddr("238.129.2.3")
	groupB     = netip.MustParseAddr("239.1.2.4")
)

// Multicast holds a carrier to the contract of fabric.Multicaster, with two
// members of a group and a third carrier that is none.
func Multicast(t *testing.T, open GroupOpener) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, p *party)
	}{
		{"members", testMembers},
		{"leave", testLeave},
		{"otherGroups", testOtherGroups},
		{"joinErrors", testJoinErrors},
		{"allocs", testGroupAllocs},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newParty(t, open)
			framesOf := [3]int{p.a.frames(), p.b.frames(), p.c.frames()}
			c.test(t, p)
			for i, e := range p.ends() {
				for len(p.groups[i]) > 0 {
					p.leave(i, p.groups[i][0])
				}
				e.rest(framesOf[i])
			}
		})
	}
}

// party is three carriers. a and b have joined groupA.
type party struct {
	t       *testing.T
	a, b, c *end
	within  func(i int, f func() error) error
	groups  [3][]netip.Addr // that each has joined
}

func newParty(t *testing.T, open GroupOpener) *party {
	carriers, step, within := open(t)
	if within == nil {
		within = func(_ int, f func() error) error { return f() }
	}
	p := &party{t: t, within: within}
	p.a, p.b, p.c = newEnd(t, carriers[0], step), newEnd(t, carriers[1], step), newEnd(t, carriers[2], step)
	if _, ok := p.c.Datagram.(fabric.Multicaster); !ok {
		t.Skipf("%s has no multicast", p.c.caps.Carrier)
	}
	meet(p.a, p.b)
	meet(p.b, p.c)
	meet(p.c, p.a)
	p.a.peer, p.b.peer, p.c.peer = p.b, p.c, p.a // by whom turn takes all three round
	p.join(0, groupA)
	p.join(1, groupA)
	return p
}

func (p *party) ends() [3]*end { return [3]*end{p.a, p.b, p.c} }

func (p *party) member(i int) fabric.Multicaster { return p.ends()[i].Datagram.(fabric.Multicaster) }

func (p *party) join(i int, group netip.Addr) {
	p.t.Helper()
	err := p.within(i, func() error { return p.member(i).Join(group) })
	if errors.Is(err, fabric.ErrNoMulticast) {
		p.t.Skip(err)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.groups[i] = append(p.groups[i], group)
}

func (p *party) leave(i int, group netip.Addr) {
	p.t.Helper()
	if err := p.within(i, func() error { return p.member(i).Leave(group) }); err != nil {
		p.t.Fatal(err)
	}
	p.groups[i] = slices.DeleteFunc(p.groups[i], func(g netip.Addr) bool { return g == group })
}

// send sends payloads from e to a group, and then one to each of the others
// alone, so that these can tell when all has come that will.
func (p *party) send(e *end, group netip.Addr, payloads [][]byte) {
	p.t.Helper()
	toAll, err := e.Resolve(netip.AddrPortFrom(group, e.Local().Port()))
	if err != nil {
		p.t.Fatal(err)
	}
	e.to = toAll
	for _, b := range payloads {
		e.put(b, false)
	}
	e.post()
	for _, other := range p.ends() {
		if other == e {
			continue
		}
		if e.to, err = e.Resolve(other.Local()); err != nil {
			p.t.Fatal(err)
		}
		e.put([]byte("last"), false)
		e.post()
	}
}

// expect checks that e receives payloads, in whatever order, from a sender,
// and nothing else before or shortly after the last one.
func (p *party) expect(e, from *end, payloads [][]byte) {
	p.t.Helper()
	missing := map[string]int{"last": 1}
	if e == from {
		delete(missing, "last")
	}
	for _, b := range payloads {
		missing[string(b)]++
	}
	const looks = 10 // looks after which nothing more is on its way
	for quiet := 0; len(missing) > 0 || quiet < looks; quiet++ {
		for _, m := range e.poll() {
			text := string(m.payload)
			if missing[text] == 0 {
				p.t.Fatalf("%s receives %d bytes that it should not from %v", e.Local(), len(text), m.from.AddrPort())
			}
			if missing[text]--; missing[text] == 0 {
				delete(missing, text)
			}
			if m.from != fabric.RemoteOf(from.Local()) {
				p.t.Errorf("source is %v, want %v", m.from.AddrPort(), from.Local())
			}
			quiet = 0
		}
		for range p.ends() {
			e.turn()
			e = e.peer
		}
	}
}

func testMembers(t *testing.T, p *party) {
	sizes := numbered(0, 8, 9, 100, 1000, min(4000, p.c.caps.MaxPayload), p.c.caps.MaxPayload)
	for range 3 {
		p.send(p.c, groupA, sizes)
		p.expect(p.a, p.c, sizes)
		p.expect(p.b, p.c, sizes)
		p.expect(p.c, p.c, nil)
		p.send(p.a, groupA, sizes) // a member does not hear itself
		p.expect(p.b, p.a, sizes)
		p.expect(p.c, p.a, nil)
		p.expect(p.a, p.a, nil)
	}
}

func testLeave(t *testing.T, p *party) {
	pay := numbered(8, 100)
	p.leave(1, groupA)
	p.send(p.c, groupA, pay)
	p.expect(p.a, p.c, pay)
	p.expect(p.b, p.c, nil)
	p.join(1, groupA)
	p.send(p.c, groupA, pay)
	p.expect(p.b, p.c, pay)
	p.expect(p.a, p.c, pay)
	p.leave(0, groupA)
	p.leave(1, groupA)
	p.send(p.c, groupA, pay)
	p.expect(p.a, p.c, nil)
	p.expect(p.b, p.c, nil)
}

// testOtherGroups sends to groups that only some have joined, one of them with
// the Ethernet address of the group that both have.
func testOtherGroups(t *testing.T, p *party) {
	pay := numbered(8, 100)
	p.join(1, groupB)
	p.send(p.c, groupB, pay)
	p.expect(p.a, p.c, nil)
	p.expect(p.b, p.c, pay)
	p.send(p.c, groupATwin, pay)
	p.expect(p.a, p.c, nil)
	p.expect(p.b, p.c, nil)
	p.send(p.c, groupA, pay)
	p.expect(p.a, p.c, pay)
	p.expect(p.b, p.c, pay)
}

func testJoinErrors(t *testing.T, p *party) {
	for _, bad := range []netip.Addr{{}, p.b.Local().Addr(), netip.MustParseAddr("ff02::1"), netip.MustParseAddr("255.255.255.255"), groupA} {
		if err := p.within(0, func() error { return p.member(0).Join(bad) }); err == nil {
			t.Errorf("%v was joined", bad)
		}
	}
	for _, bad := range []netip.Addr{{}, groupB, netip.MustParseAddr("ff02::1")} {
		if err := p.within(0, func() error { return p.member(0).Leave(bad) }); err == nil {
			t.Errorf("%v was left", bad)
		}
	}
	if _, err := p.c.Resolve(netip.AddrPortFrom(groupA, 0)); err == nil {
		t.Error("a group without port is a destination")
	}
	p.send(p.c, groupA, numbered(50))
	p.expect(p.a, p.c, numbered(50))
	p.expect(p.b, p.c, numbered(50))
}

func testGroupAllocs(t *testing.T, p *party) {
	to, err := p.c.Resolve(netip.AddrPortFrom(groupA, p.c.Local().Port()))
	if err != nil {
		t.Fatal(err)
	}
	var number uint64
	exchange := func() {
		f, ok := p.c.Frame()
		for ; !ok; f, ok = p.c.Frame() {
			p.c.turn()
		}
		number++
		at := f + mem.Addr(p.c.caps.Headroom)
		binary.BigEndian.PutUint64(p.c.Arena().At(at, 8), number)
		p.c.tx.Pkts = append(p.c.tx.Pkts, fabric.Packet{Bufs: 1, Len: 8, To: to})
		p.c.tx.Descs = append(p.c.tx.Descs, fabric.Desc{Addr: at, Len: 8})
		p.c.post()
		for _, e := range [2]*end{p.a, p.b} {
			for e.Recv(e.rx) == 0 {
				e.turn()
			}
			e.Release(e.rx)
			e.turn()
		}
	}
	for range 8 {
		exchange()
	}
	if allocs := testing.AllocsPerRun(200, exchange); allocs != 0 {
		t.Errorf("%v allocations per datagram to a group of two", allocs)
	}
}
