package coll

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// net is a network in memory on which the schedules of all ranks are advanced
// by one goroutine, in an order that follows from a seed. It notices ranks that
// wait for ever, messages that are left over, and memory that is changed while
// a message is on its way.
type net struct {
	rnd    *rand.Rand
	queues map[route]*queue
	order  []route // keys of queues, for a deterministic order
	events int
}

type route struct{ from, to, tag int32 }

type queue struct{ sends, recvs []*message }

type message struct {
	buf      []byte
	snapshot []byte       // of what is sent
	into     dtype.Cursor // where a receive puts it in the end
	done     bool
	err      error
}

func (m *message) Done() bool { return m.done }

// card is the transport of one rank.
type card struct {
	*net
	rank int32
}

func (n *net) queue(r route) *queue {
	q := n.queues[r]
	if q == nil {
		q = &queue{}
		n.queues[r] = q
		n.order = append(n.order, r)
	}
	return q
}

func (c card) Isend(b []byte, to, tag int32) Handle {
	c.events++
	q := c.queue(route{c.rank, to, tag})
	if c.rnd.IntN(2) == 0 { // eagerly
		q.sends = append(q.sends, &message{buf: slices.Clone(b), snapshot: slices.Clone(b)})
		return nil
	}
	m := &message{buf: b, snapshot: slices.Clone(b)}
	q.sends = append(q.sends, m)
	return m
}

func (c card) Irecv(b []byte, from, tag int32) Handle {
	c.events++
	for i := range b {
		b[i] = 0xa5 // nobody may need what is there
	}
	q := c.queue(route{from, c.rank, tag})
	m := &message{buf: b}
	q.recvs = append(q.recvs, m)
	return m
}

// IsendOver takes the bytes when they are sent: what is changed later is not noticed.
func (c card) IsendOver(cur dtype.Cursor, to, tag int32) Handle {
	b := make([]byte, cur.Rest())
	cur.Pack(b)
	return c.Isend(b, to, tag)
}

func (c card) IrecvOver(cur dtype.Cursor, from, tag int32) Handle {
	m := c.Irecv(make([]byte, cur.Rest()), from, tag).(*message)
	m.into = cur
	return m
}

func (c card) Take(h Handle, want int, peer int32) error {
	c.events++
	m := h.(*message)
	if want < 0 {
		return nil
	}
	if m.into.Rest() > 0 {
		m.into.Unpack(m.buf)
	}
	return m.err
}

func (c card) Flush() {}
func (c card) Step()  { c.deliver() }

func (c card) Wait(h Handle, _ bool) {
	for !h.Done() {
		c.deliver()
	}
}

// deliver lets some of the messages arrive.
func (n *net) deliver() {
	for _, r := range n.order {
		q := n.queues[r]
		for len(q.sends) > 0 && len(q.recvs) > 0 && n.rnd.IntN(3) > 0 {
			out, in := q.sends[0], q.recvs[0]
			q.sends, q.recvs = q.sends[1:], q.recvs[1:]
			n.events++
			if !bytes.Equal(out.buf, out.snapshot) {
				out.err = fmt.Errorf("a message from %d to %d was changed on its way", r.from, r.to)
			}
			if copy(in.buf, out.buf) != len(out.buf) || len(in.buf) != len(out.buf) {
				in.err = fmt.Errorf("%w: %d bytes from %d to %d, want %d", ErrLengths, len(out.buf), r.from, r.to, len(in.buf))
			}
			out.done, in.done = true, true
		}
	}
}

// run advances the schedules to their end.
func (n *net) run(schedules []*Schedule) error {
	done := make([]bool, len(schedules))
	for idle := 0; slices.Contains(done, false); {
		before := n.events
		for _, r := range n.rnd.Perm(len(schedules)) {
			if !done[r] {
				at := schedules[r].Position()
				done[r] = schedules[r].Advance(card{n, int32(r)})
				n.events += schedules[r].Position() - at
			}
		}
		n.deliver()
		if idle++; n.events != before {
			idle = 0
		}
		if idle > 100 {
			return errors.New("the ranks wait for ever")
		}
	}
	for _, r := range n.order {
		if q := n.queues[r]; len(q.sends) > 0 || len(q.recvs) > 0 {
			return fmt.Errorf("%d messages and %d receives from %d to %d are left", len(q.sends), len(q.recvs), r.from, r.to)
		}
	}
	for r, s := range schedules {
		if s.Err() != nil {
			return fmt.Errorf("rank %d: %w", r, s.Err())
		}
	}
	return nil
}

func newNet(seed uint64) *net {
	return &net{rnd: rand.New(rand.NewPCG(seed, 7)), queues: map[route]*queue{}}
}

// world lets n ranks write down their schedules and runs them twice, as a
// persistent collective does. before is called for each rank before each run,
// check after it.
func world(n int, write func(s *Schedule, t Team), before, check func(rank int) error) error {
	schedules := make([]*Schedule, n)
	for r := range schedules {
		schedules[r] = &Schedule{Tag: 3}
		write(schedules[r], Team{Me: r, Size: n})
	}
	for round := range 2 {
		for r, s := range schedules {
			s.Rewind()
			if err := before(r); err != nil {
				return err
			}
		}
		if err := newNet(uint64(100*n + round)).run(schedules); err != nil {
			return err
		}
		for r := range schedules {
			if err := check(r); err != nil {
				return fmt.Errorf("run %d, rank %d: %w", round, r, err)
			}
		}
	}
	return nil
}

// sizes are numbers of ranks: powers of two, those around them, and primes.
var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17}

// fill writes bytes that depend on who has them.
func fill(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

func filled(n, seed int) []byte {
	b := make([]byte, n)
	fill(b, seed)
	return b
}

var errData = errors.New("wrong data")

func same(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%w: byte %d of %d is %d, want %d", errData, i, len(want), got[i], want[i])
		}
	}
	return errData
}

// affine composes maps x -> a x + b over 32-bit numbers, a in the upper half: it
// is associative and does not commute.
type affine struct{}

func (affine) Reduce(in, inout []byte) {
	a, b := mem.ScalarsOf[uint64](in), mem.ScalarsOf[uint64](inout)
	for i := range b {
		b[i] = compose(a[i], b[i])
	}
}

// compose is f after g.
func compose(f, g uint64) uint64 {
	fa, fb, ga, gb := uint32(f>>32), uint32(f), uint32(g>>32), uint32(g)
	return uint64(fa*ga)<<32 | uint64(fa*gb+fb)
}

// xor commutes, on 4-byte elements.
type xor struct{}

func (xor) Reduce(in, inout []byte) {
	a, b := mem.ScalarsOf[uint32](in), mem.ScalarsOf[uint32](inout)
	for i := range b {
		b[i] ^= a[i]
	}
}

// reduction is an operation to test with.
type reduction struct {
	op       Op
	elem     int
	commutes bool
}

var reductions = []reduction{{xor{}, 4, true}, {affine{}, 8, false}}

// words returns n aligned bytes.
func words(n int) []byte { return mem.BytesOf(make([]uint64, (n+7)/8))[:n] }

// fold reduces the vectors of ranks from..to-1 in their order.
func (r reduction) fold(n, from, to int) []byte {
	acc := words(n)
	fill(acc, from)
	for rank := from + 1; rank < to; rank++ {
		next := words(n)
		fill(next, rank)
		r.op.Reduce(acc, next)
		acc = next
	}
	return acc
}

// variants are algorithms by name.
type variants[F any] map[string]F

func (v variants[F]) each(t *testing.T, f func(t *testing.T, algorithm F)) {
	for name, algorithm := range v {
		t.Run(name, func(t *testing.T) { f(t, algorithm) })
	}
}

// hosted gives a team hosts: rank r runs on host(r).
func hosted(t Team, host func(r int) int) Team {
	hosts := make([]int, t.Size)
	for r := range hosts {
		hosts[r] = host(r)
	}
	t.Hosts = NewHosts(hosts)
	return t
}

// slotted gives the teams of a world slots: those on each host have their own.
func slotted() func(t Team) Team {
	var memory map[int32][]byte
	return func(t Team) Team {
		if t.Me == 0 {
			memory = map[int32][]byte{}
		}
		me, members, host := t.Me, t.Size, int32(0)
		if t.Hosts != nil {
			host = t.Hosts.of[t.Me]
			members = len(t.Hosts.ranks[host])
			me = slices.Index(t.Hosts.ranks[host], int32(t.Me))
		}
		if memory[host] == nil {
			memory[host] = words(SlotsSize(members))
		}
		t.Slots = NewSlots(memory[host], me, members, nobody{})
		return t
	}
}

// placements are ways to spread ranks over hosts.
var placements = []func(r int) int{
	func(r int) int { return r / 3 },
	func(r int) int { return r % 3 },
	func(r int) int { return 9 - r*r%5 },
}

// inPairs is one where no rank is alone, if they are even.
func inPairs(r int) int { return r / 2 }

// nobody waits: schedules are advanced.
type nobody struct{}

func (nobody) Begin() error        { return nil }
func (nobody) Await(*Slots) error  { panic("only Run waits") }
func (nobody) Rouse(uint64)        {}
func (nobody) Disagrees(int) error { return errDisagrees }

var errDisagrees = errors.New("lengths differ")
