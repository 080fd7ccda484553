package p2p

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// still is a clock that a test moves.
type still struct{ now mono.Time }

func (c *still) Now() mono.Time { return c.now }

// abuse is a rank 0 of three that does what the bytes of a script say, and hears what
// they say, too: whatever ranks 1 and 2 could send that have gone mad. Rank 1 is there
// and takes all that it gets for meant; nobody listens at the other end of rank 2.
type abuse struct {
	testing.TB
	script   []byte
	clock    *still
	ep       *Endpoint // rank 0
	other    *Endpoint // rank 1
	under    []*Request
	guards   [][]byte // what lies behind the buffers of receives
	seized   []Matched
	agreeing bool
}

func newAbuse(t testing.TB, script []byte) *abuse {
	t.Helper()
	a := &abuse{TB: t, script: script, clock: &still{now: 1e9}}
	left, right, err := conform.NewPipe(conform.PipeConfig{Frames: 128})
	must(t, err)
	c := Config{Size: 3, Ghosts: 1, Receives: 8, Sends: 4, UnexpectedMax: 40_000, Numbers: true, Rendezvous: RendezvousWrite}
	if a.next()%2 == 1 {
		c.Rendezvous = RendezvousRead
	}
	a.ep = newRankAt(t, left, a.clock, spin{}, c)
	c.Rank = 1
	a.other = newRankAt(t, right, a.clock, spin{}, c)
	for _, ep := range []*Endpoint{a.ep, a.other} {
		ep.Register(0, []int32{0, 1, 2}, 8)
		ep.Register(2, []int32{0, 1}, 100)
		must(t, ep.Connect(cardsOf(ep, 3), nil))
	}
	return a
}

func (a *abuse) next() int {
	if len(a.script) == 0 {
		return 0
	}
	b := a.script[0]
	a.script = a.script[1:]
	return int(b)
}

// length is one near which something changes, of a message that an honest rank sends or
// receives.
func (a *abuse) length() int {
	return [...]int{0, 1, 8, 40, 600, 5000, eagerMax, eagerMax + 1, 20_000, 40_000, eagerIdle, eagerIdle + 1}[a.next()%12]
}

// claim is a length that a mad rank says.
func (a *abuse) claim() uint64 {
	if b := a.next(); b%4 == 0 {
		return []uint64{eagerMost, eagerMost + 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63}[b/4%6]
	}
	return uint64(a.length())
}

// envelope makes one of a message: of both communicators, and of one that rank 0 does
// not know yet; the odd contexts are of collectives, and so are the larger tags.
func (a *abuse) envelope(source int32) match.Envelope {
	b := a.next()
	return match.Envelope{Context: uint32(b % 6), Source: source, Tag: [...]int32{0, 1, PairTag, PartTag}[b>>6]}
}

// id is that of a request under way, or some number.
func (a *abuse) id() uint32 {
	if b := a.next(); b < 200 && len(a.ep.requests.all) > 0 {
		return a.ep.requests.all[b%len(a.ep.requests.all)].wireID()
	}
	return uint32(a.next()) << (a.next() % 32)
}

// arrival makes a message of every kind that ranks 1 and 2 may send, and some that they
// may not.
func (a *abuse) arrival() []byte {
	h := header{kind: kind(a.next() % int(kindEnd+1)), source: int32(1 + a.next()%2)}
	env := a.envelope(0)
	h.context, h.tag = env.Context, env.Tag
	b := make([]byte, headerLen, a.ep.net.rx.stride)
	switch h.kind {
	case kindEager, kindSync, kindData, kindRest:
		h.id = a.id()
		b = append(b, make([]byte, min(a.length(), a.ep.cfg.EagerMax))...)
	case kindHead:
		h.id = uint32(a.claim())
		b = append(b, make([]byte, min(a.length(), a.ep.cfg.EagerMax))...)
	case kindBatch:
		for range a.next() % 4 {
			inner := a.envelope(0)
			n := min(a.length(), 600)
			b = binary.BigEndian.AppendUint64(b, uint64(n)<<48|uint64(inner.Context)<<32|uint64(inner.Tag))
			b = append(b, make([]byte, n)...)
		}
	case kindRTS:
		h.id = a.id()
		b = binary.BigEndian.AppendUint64(b, a.claim())
		b = binary.BigEndian.AppendUint32(b, uint32(a.next()))
		b = binary.BigEndian.AppendUint64(b, uint64(a.next())<<(a.next()%64))
		b = b[:len(b)-lendLen*(a.next()%2)]
	case kindCTS:
		h.id = a.id()
		b = binary.BigEndian.AppendUint32(b, a.id())
		b = binary.BigEndian.AppendUint32(b, uint32(a.next()))
		b = binary.BigEndian.AppendUint64(b, uint64(a.next())<<(a.next()%64))
		b = binary.BigEndian.AppendUint64(b, a.claim())
	case kindInvite:
		h.id = a.id()
		b = append(b, told(uint32(a.next()%4), uint32(a.next()%4), uint32(a.next()%4), uint32(a.next()), uint64(a.next()), a.claim())...)
		b = append(b, told(a.id())[:a.next()%2*4]...)
	case kindLost:
		for range a.next() % 3 {
			b = binary.BigEndian.AppendUint32(b, uint32(a.next()%5))
		}
	case kindAgree:
		b = append(b, byte(a.next()%6))
		b = binary.BigEndian.AppendUint32(b, uint32(a.next())-2)
		b = append(b, make([]byte, a.next()%110)...)
	default:
		h.id = a.id()
	}
	h.put(b)
	if cut := a.next(); cut > 240 {
		b = b[:len(b)*(cut-240)/15]
	}
	return b
}

func (a *abuse) comb() dtype.Cursor {
	_, cur := comb(a, min(a.length(), 20_000)/4, 0)
	return cur
}

// step lets the script say what happens next.
func (a *abuse) step() {
	ep := a.ep
	switch a.next() % 16 {
	case 0, 1:
		n := a.length()
		buf := make([]byte, n+8)
		a.under = append(a.under, ep.Irecv(a.envelope([...]int32{1, 2, match.Any}[a.next()%3]), buf[:n]))
		a.guards = append(a.guards, buf[n:])
	case 2:
		a.under = append(a.under, ep.IrecvTyped(a.envelope(1), a.comb()))
	case 3:
		dest := a.next() % 3
		a.under = append(a.under, ep.Isend(a.envelope(0), dest, make([]byte, a.length())))
	case 4:
		a.under = append(a.under, ep.IssendTyped(a.envelope(0), 1+a.next()%2, a.comb()))
	case 5:
		if i := a.next(); len(a.under) > 0 {
			i %= len(a.under)
			r := a.under[i]
			ep.Cancel(r)
			a.take(i)
		}
	case 6:
		if m, _, found, _ := ep.Improbe(a.envelope(match.Any)); found {
			a.seized = append(a.seized, m)
		}
	case 7:
		if len(a.seized) > 0 {
			a.under = append(a.under, ep.Accept(a.seized[0], make([]byte, a.length())))
			a.seized = a.seized[1:]
		}
	case 8:
		a.program()
	case 9: // rank 1 goes on
		n := a.length()
		if env := a.envelope(0); a.next()%2 == 0 {
			a.other.Inside().Detach(a.other.Irecv(env, make([]byte, n)))
		} else {
			env.Source = 1
			a.other.Inside().Detach(a.other.Isend(env, 0, make([]byte, n)))
		}
	case 10:
		a.clock.now = a.clock.now.Add(mono.Duration(a.next()) << (a.next() % 28))
	case 11:
		for range 1 + a.next()%8 {
			ep.Step()
			a.other.Step()
		}
	default:
		if b := a.arrival(); !ep.match.HandleRecv(nil, b) {
			ep.poller.arrived(b)
		}
	}
}

// program does what programs do seldom.
func (a *abuse) program() {
	ep := a.ep
	switch a.next() % 10 {
	case 0:
		if ep.groups.at(4).members == nil {
			ep.Register(4, []int32{0, 2}, 1)
		}
	case 1:
		ep.Revoke(uint32(2 * (a.next() % 2)))
	case 2:
		lost, _ := ep.Failed(0)
		ep.Acknowledge(0, len(lost))
	case 3:
		if !a.agreeing {
			a.agreeing = true
			ep.Inside().BeginAgree(0, make([]byte, 8))
		}
	case 4:
		_, _, done, _ := ep.Inside().Agreed(0)
		a.agreeing = a.agreeing && !done
	case 5:
		ep.Inside().Unregister(2, false)
	case 6:
		if i := a.next(); len(a.under) > 0 {
			i %= len(a.under)
			ep.Inside().Detach(a.under[i])
			a.drop(i)
		}
	case 7:
		_, _, _ = ep.Iprobe(a.envelope(match.Any))
	case 8:
		ep.failures.gone(1+a.next()%2, "the launcher says so")
	case 9:
		defer ep.RegisterPart(2, a.envelope(0).Tag, []int32{0, 1})()
		a.step()
	}
}

// take takes the result of a request that is done.
func (a *abuse) take(i int) {
	if r := a.under[i]; r.state == done {
		_, _ = a.ep.requests.take(r)
		a.drop(i)
	}
}

func (a *abuse) drop(i int) { a.under = append(a.under[:i], a.under[i+1:]...) }

// check compares the counters of the endpoint with what there is.
func (a *abuse) check() {
	a.Helper()
	ep := a.ep
	var waiting []*message
	for _, e := range ep.match.unexpected.All() {
		waiting = append(waiting, e.Owner)
	}
	for _, m := range a.seized {
		waiting = append(waiting, m.m)
	}
	kept := 0
	for _, m := range waiting {
		kept += m.cost()
	}
	if kept != ep.match.kept && ep.failures.over == nil {
		a.Fatalf("%d bytes are kept, and %d counted", kept, ep.match.kept)
	}
	if ep.requests.active != len(a.under) {
		a.Fatalf("%d requests are active, and the program has %d", ep.requests.active, len(a.under))
	}
	asked, buffers := make([]int32, len(ep.peers)), len(ep.net.txFree)
	for _, r := range ep.requests.all {
		if (r.state == free || r.state == done) && (r.mr != nil || r.lent || r.asked || r.inFlight > 0) {
			a.Fatalf("a request has ended, and has %v, lent %v, asked %v, %d in flight", r.mr, r.lent, r.asked, r.inFlight)
		}
		if r.asked {
			asked[r.peer]++
		}
	}
	for i := range ep.peers {
		p := &ep.peers[i]
		buffers += int(p.buffered)
		if s := &p.split; p.err == nil && (s.r != nil && s.r.state != waitRest || s.m != nil && !slices.Contains(waiting, s.m)) {
			a.Fatalf("the rest of a message of rank %d is for one that has ended", i)
		}
		if p.asked != asked[i] || p.reading < 0 || p.buffered < 0 {
			a.Fatalf("rank %d was asked %d times, and %d are counted; %d Reads, %d buffers", i, asked[i], p.asked, p.reading, p.buffered)
		}
	}
	if ep.net.batch.to != nil {
		buffers++
	}
	if buffers != ep.cfg.Sends {
		a.Fatalf("%d of %d send buffers are there", buffers, ep.cfg.Sends)
	}
}

// settle ends rank 0: then all its requests have ended, and nothing is left of them.
func (a *abuse) settle() {
	a.Helper()
	ep := a.ep
	ep.End(&Error{Code: Ended})
	for _, m := range a.seized {
		a.under = append(a.under, ep.Accept(m, make([]byte, 100)))
	}
	a.seized = nil
	for len(a.under) > 0 {
		if s := a.under[0].state; s != done {
			a.Fatalf("the rank has ended, and a request is in state %d", s)
		}
		a.take(0)
	}
	a.check()
	for _, b := range a.guards {
		if !bytes.Equal(b, make([]byte, len(b))) {
			a.Fatal("bytes behind a buffer were written")
		}
	}
	must(a, ep.Close())
	must(a, a.other.Close())
}

func runAbuse(t testing.TB, script []byte) {
	t.Helper()
	a := newAbuse(t, script)
	for len(a.script) > 0 {
		a.step()
		a.check()
	}
	a.settle()
}

func TestEndpoint_abuse(t *testing.T) {
	for seed := range uint64(100) {
		runAbuse(t, abuseScript(seed, 400))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func abuseScript(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// FuzzEndpoint_abuse: whatever comes, nothing is written where nobody has granted it,
// the counters hold, and every request comes to its end.
func FuzzEndpoint_abuse(f *testing.F) {
	// The first byte is the way of large messages, 0 to 11 begin what rank 0 does, and
	// 15 what comes.
	for _, script := range [][]byte{
		{0, 0, 4, 0, 0, 15, 1, 0, 0, 0, 3, 0},                                     // a receive, and its message
		{0, 15, 1, 0, 0, 0, 0, 0, 3, 0, 6, 0, 7, 4},                               // a message, Improbe, Accept
		{0, 0, 8, 0, 0, 15, 2, 0, 0, 0, 1, 8, 0, 0, 0, 1, 0, 15, 4, 0, 0, 0, 0},   // a receive, RTS, FIN
		{1, 0, 8, 0, 0, 15, 2, 0, 0, 0, 1, 8, 7, 1, 12, 0, 0, 15, 15, 0, 0, 0, 0}, // RTS that lends, recall
		{1, 3, 1, 3, 11, 8, 1, 1, 15, 4, 0, 0, 0, 0},                              // a send that lends, Revoke, FIN
		{0, 3, 1, 0, 11, 15, 3, 0, 0, 0, 0, 0, 0, 0, 1, 9, 0},                     // a send, CTS without a key
		{0, 0, 9, 0, 0, 15, 13, 0, 0, 1, 9, 6, 0, 15, 14, 0, 0, 0, 6, 0},          // a receive, a head, a rest
		{0, 3, 1, 0, 11, 9, 11, 0, 0, 11, 7, 11, 7, 11, 7, 5, 0},                  // a large message to rank 1
		{1, 0, 9, 0, 0, 9, 9, 0, 1, 11, 7, 11, 7, 11, 7, 5, 0},                    // and one from there
		{0, 8, 3, 15, 10, 0, 0, 1, 3, 9, 0, 15, 10, 1, 0, 1, 3, 9, 0, 8, 4},       // an agreement
		{0, 0, 4, 2, 0, 15, 5, 0, 0, 1, 2, 0, 8, 2, 15, 9, 0, 2, 0, 0},            // a loss, a revocation
	} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 400 {
			runAbuse(t, script)
		}
	})
}
