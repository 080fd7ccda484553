package mpi_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/xwarp/xwarp/mpi"
)

// The exercise: every rank sends random messages to every rank, itself
// included, and receives what the others send to it with random patterns. All
// of it follows from the seed, so that every rank knows what must arrive.

// exercise describes one run.
type exercise struct {
	seed     uint64
	messages int // in all
	maxLen   int // bytes
	tags     int // different tags
	wild     float64
}

const (
	maxSends = 12 // under way at once, per rank
	maxRecvs = 8  // the last one is the lifeline
)

// planned is a message as it was planned.
type planned struct {
	from, to, tag, length int
	seed                  uint64
	taken                 bool
}

// plan returns the messages to send, in the order of each sender.
func (e *exercise) plan(ranks int) []planned {
	rnd := rand.New(rand.NewPCG(e.seed, 1))
	messages := make([]planned, e.messages)
	for i := range messages {
		messages[i] = planned{
			from: rnd.IntN(ranks), to: rnd.IntN(ranks), tag: e.tag(rnd.IntN(e.tags)),
			length: min(randomLength(rnd), e.maxLen), seed: rnd.Uint64(),
		}
	}
	return messages
}

// tag makes tags that use all bits.
func (e *exercise) tag(i int) int { return i * 0x12345671 & mpi.MaxTag }

// randomLength prefers short messages, and lengths where protocols change.
func randomLength(rnd *rand.Rand) int {
	edges := []int{0, 1, 239, 240, 241, 16383, 16384, 16385}
	switch u := rnd.Float64(); {
	case u < 0.05:
		return edges[rnd.IntN(len(edges))]
	case u < 0.65:
		return rnd.IntN(256)
	case u < 0.90:
		return rnd.IntN(4 << 10)
	case u < 0.985:
		return rnd.IntN(40 << 10)
	case u < 0.9990:
		return rnd.IntN(256 << 10)
	}
	return rnd.IntN(4<<20 + 1)
}

// fill writes the data of the message to b.
func (l *planned) fill(b []byte) {
	rnd := rand.NewPCG(l.seed, 2)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, rnd.Uint64())
	}
	for i, w := 0, rnd.Uint64(); i < len(b); i++ {
		b[i] = byte(w >> (8 * i))
	}
}

// player is one rank of the exercise.
type player struct {
	exercise
	p   *mpi.Proc
	c   *mpi.Comm
	rnd *rand.Rand

	out  []planned        // to send, in order
	in   [][]planned      // to receive, by sender, in order
	left int              // of in, not known to be received
	due  map[[2]int][]int // by sender and tag: numbers in the plan of what is not known to be received

	requests []mpi.Request // sends, then receives
	sends    [maxSends][]byte
	posted   []*receipt // in the order of posting, oldest first
	recvs    [maxRecvs]*receipt
	buffers  [maxRecvs][]byte
}

// receipt is a receive from its posting until it was checked.
type receipt struct {
	source, tag int
	buf         []byte // what was received, copied
	st          mpi.Status
	done        bool
}

const canary = 0xa5

func (e exercise) run(p *mpi.Proc) error {
	g := &player{exercise: e, p: p, c: p.World(), due: map[[2]int][]int{}}
	me := g.c.Rank()
	g.rnd = rand.New(rand.NewPCG(e.seed, uint64(100+me)))
	g.in = make([][]planned, g.c.Size())
	for number, l := range e.plan(g.c.Size()) {
		if l.from == me {
			g.out = append(g.out, l)
		}
		if l.to == me {
			g.in[l.from] = append(g.in[l.from], l)
			key := [2]int{l.from, l.tag}
			g.due[key] = append(g.due[key], number)
			g.left++
		}
	}
	g.requests = make([]mpi.Request, maxSends+maxRecvs)
	for i := range g.buffers {
		g.buffers[i] = slices.Repeat([]byte{canary}, e.maxLen+8)
	}
	for g.left > 0 || len(g.out) > 0 || g.busy() {
		if err := g.step(); err != nil {
			return fmt.Errorf("rank %d, %d messages left: %w", me, g.left, err)
		}
	}
	return g.nothingLeft()
}

func (g *player) busy() bool {
	return slices.ContainsFunc(g.requests, func(r mpi.Request) bool { return !r.IsNull() })
}

// step does something at random, or waits when nothing can be started.
func (g *player) step() error {
	switch g.rnd.IntN(8) {
	case 0, 1, 2:
		if started, err := g.send(); started || err != nil {
			return err
		}
	case 3, 4, 5:
		if started, err := g.receive(); started || err != nil {
			return err
		}
	case 6:
		if started, err := g.probe(); started || err != nil {
			return err
		}
	}
	if started, err := g.send(); started || err != nil {
		return err
	}
	if started, err := g.receive(); started || err != nil {
		return err
	}
	return g.wait()
}

// free returns a null request among n from at on, or -1.
func (g *player) free(at, n int) int {
	for i := at; i < at+n; i++ {
		if g.requests[i].IsNull() {
			return i
		}
	}
	return -1
}

func (g *player) send() (started bool, err error) {
	slot := g.free(0, maxSends)
	if len(g.out) == 0 || slot < 0 {
		return false, nil
	}
	l := &g.out[0]
	buf := g.sends[slot]
	if cap(buf) < l.length {
		buf = make([]byte, l.length)
	}
	buf = buf[:l.length]
	g.sends[slot] = buf
	l.fill(buf)
	if l.length <= 1000 && l.to != g.c.Rank() && g.rnd.IntN(4) == 0 {
		err = mpi.Send(g.c, buf, l.to, l.tag)
		clear(buf) // it is ours again
	} else {
		g.requests[slot], err = mpi.Isend(g.c, buf, l.to, l.tag)
	}
	g.out = g.out[1:]
	return true, err
}

// receive posts a receive for a message that is due, with wildcards at random.
// So that no receive can be robbed of its message for good, there must be more
// messages that fit it than receives under way that might take them.
func (g *player) receive() (started bool, err error) {
	slot := g.free(maxSends, maxRecvs-1)
	if g.left == 0 || slot < 0 {
		return false, nil
	}
	from := g.rnd.IntN(len(g.in))
	for i := range g.in {
		if s := (from + i) % len(g.in); len(g.in[s]) > 0 {
			l := g.in[s][g.rnd.IntN(min(len(g.in[s]), 20))]
			if l.taken {
				l = *g.firstLeft(s)
			}
			source, tag := l.from, l.tag
			if g.rnd.Float64() < g.wild {
				source = mpi.AnySource
			}
			if g.rnd.Float64() < g.wild {
				tag = mpi.AnyTag
			}
			if g.fitting(source, tag) > g.competing(source, tag) {
				return true, g.post(slot, source, tag)
			}
		}
	}
	return false, nil
}

func (g *player) firstLeft(source int) *planned {
	for i := range g.in[source] {
		if l := &g.in[source][i]; !l.taken {
			return l
		}
	}
	return &g.in[source][0]
}

// probe receives a message that has come already, of which a probe tells.
func (g *player) probe() (started bool, err error) {
	slot := g.free(maxSends, maxRecvs-1)
	if slot < 0 {
		return false, nil
	}
	st, found, err := g.c.Iprobe(mpi.AnySource, mpi.AnyTag)
	if err != nil || !found {
		return false, err
	}
	if err := g.post(slot, st.Source, st.Tag); err != nil {
		return true, err
	}
	r := g.recvs[slot-maxSends]
	got, done, err := g.requests[slot].Test()
	for !done && err == nil { // a large one is on its way
		got, err = g.requests[slot].Wait()
		done = true
	}
	if err == nil && got != st {
		err = fmt.Errorf("the probe told of %+v, but the receive got %+v", st, got)
	}
	return true, g.completed(slot-maxSends, r, got, err)
}

func (g *player) post(slot, source, tag int) (err error) {
	i := slot - maxSends
	r := &receipt{source: source, tag: tag}
	g.recvs[i] = r
	g.posted = append(g.posted, r)
	g.requests[slot], err = mpi.Irecv(g.c, g.buffers[i][:g.maxLen], source, tag)
	return err
}

// fitting counts the messages not known to be received that fit a receive.
func (g *player) fitting(source, tag int) int {
	n := 0
	for key, numbers := range g.due {
		if (source == mpi.AnySource || source == key[0]) && (tag == mpi.AnyTag || tag == key[1]) {
			n += len(numbers)
		}
	}
	return n
}

// competing counts the receives under way that may take a message that fits.
func (g *player) competing(source, tag int) int {
	overlap := func(a, b, any int) bool { return a == b || a == any || b == any }
	n := 0
	for i, r := range g.recvs {
		if r != nil && !g.requests[maxSends+i].IsNull() &&
			overlap(r.source, source, mpi.AnySource) && overlap(r.tag, tag, mpi.AnyTag) {
			n++
		}
	}
	return n
}

// lifeline makes sure that the oldest message of the plan that is due has a
// receive. Every rank sends in the order of the plan, so the oldest of all
// messages is always on its way, and with its receive there is no deadlock.
func (g *player) lifeline() error {
	first, source, tag := g.messages, 0, 0
	for key, numbers := range g.due {
		if len(numbers) > 0 && numbers[0] < first {
			first, source, tag = numbers[0], key[0], key[1]
		}
	}
	slot := maxSends + maxRecvs - 1
	if first == g.messages || !g.requests[slot].IsNull() || g.competing(source, tag) > 0 {
		return nil
	}
	return g.post(slot, source, tag)
}

// wait waits for any operation.
func (g *player) wait() error {
	if err := g.lifeline(); err != nil {
		return err
	}
	i, st, err := mpi.Waitany(g.requests)
	if i == mpi.Undefined || i < maxSends {
		return err
	}
	return g.completed(i-maxSends, g.recvs[i-maxSends], st, err)
}

// completed takes the data of a receive and checks all that can be checked.
func (g *player) completed(i int, r *receipt, st mpi.Status, err error) error {
	if err != nil {
		return fmt.Errorf("receive from %d with tag %d: %w", r.source, r.tag, err)
	}
	buf := g.buffers[i]
	r.st, r.done = st, true
	r.buf = slices.Clone(buf[:st.Bytes()])
	for k := range 8 {
		if buf[st.Bytes()+k] != canary {
			return fmt.Errorf("a message of %d bytes wrote behind its end", st.Bytes())
		}
	}
	for k := range st.Bytes() {
		buf[k] = canary
	}
	g.left--
	key := [2]int{st.Source, st.Tag}
	if len(g.due[key]) == 0 {
		return fmt.Errorf("received a message that nobody sent: %+v", st)
	}
	g.due[key] = g.due[key][1:]
	for len(g.posted) > 0 && g.posted[0].done {
		if err := g.check(g.posted[0]); err != nil {
			return err
		}
		g.posted = g.posted[1:]
	}
	return nil
}

// check says whether the message that a receive got is the one that it had to
// get. Receives are checked in the order of their posting. Of the messages that
// fit a receive the oldest of a sender must have come, if no receive posted
// before has it: that is the order that MPI promises.
func (g *player) check(r *receipt) error {
	var want *planned
	seen := 0
	for i := range g.in[r.st.Source] {
		l := &g.in[r.st.Source][i]
		if l.taken {
			seen++
			continue
		}
		if r.tag == mpi.AnyTag || r.tag == l.tag {
			want = l
			break
		}
	}
	if want == nil || r.source != mpi.AnySource && r.source != r.st.Source {
		return fmt.Errorf("receive from %d with tag %d got %+v", r.source, r.tag, r.st)
	}
	if r.st.Tag != want.tag || r.st.Bytes() != want.length {
		return fmt.Errorf("receive from %d with tag %d got %+v, but the next message is %+v: overtaken", r.source, r.tag, r.st, *want)
	}
	data := make([]byte, want.length)
	want.fill(data)
	if !slices.Equal(data, r.buf) {
		return fmt.Errorf("%w: message %+v", errData, *want)
	}
	want.taken = true
	if in := g.in[r.st.Source]; seen > 1000 { // forget what was received
		g.in[r.st.Source] = slices.DeleteFunc(in, func(l planned) bool { return l.taken })
	}
	return nil
}

// nothingLeft fails when more arrives than was sent.
func (g *player) nothingLeft() error {
	if err := g.c.Barrier(); err != nil {
		return err
	}
	for source := range g.in {
		if l := g.firstLeftOrNil(source); l != nil {
			return fmt.Errorf("message %+v was not received", *l)
		}
	}
	if st, found, err := g.c.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
		return fmt.Errorf("one message too many: %+v, %v", st, err)
	}
	return nil
}

func (g *player) firstLeftOrNil(source int) *planned {
	i := slices.IndexFunc(g.in[source], func(l planned) bool { return !l.taken })
	if i < 0 {
		return nil
	}
	return &g.in[source][i]
}
