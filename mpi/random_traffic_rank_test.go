package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/xwarp/xwarp/mpi"
)

// trafficRank is one rank.
type trafficRank struct {
	*randomTraffic
	p     *mpi.Proc
	comms []*mpi.Comm
	side  *mpi.Comm // of collectives
	rnd   *rand.Rand
	me    int

	out    []*plannedSend     // to be sent
	in     [][][]*plannedSend // to be received, by communicator and rank in it, in order
	left   int                // of these, those not received
	active []*operation
	log    [][]*operation    // receives by communicator, in their order, not checked
	kept   []*persistentSend // persistent sends
	sums   int               // collectives begun
	over   [][]byte          // buffers that nobody may write to any more, the latest ones
	size   int               // bytes of those
	late   error             // of an earlier one
}

// operation is an operation under way.
type operation struct {
	r    mpi.Request
	sent *plannedSend // nil: a receive, or a collective
	sum  []int64

	comm, source, tag int // of a receive
	op                *mpi.Persistent
	data              trafficData
	st                mpi.Status
	err               error
	done              bool
}

// persistentSend is a persistent send.
type persistentSend struct {
	like plannedSend
	op   *mpi.Persistent
	data trafficData
	busy bool
}

func (m *randomTraffic) run(p *mpi.Proc) error {
	g := &trafficRank{randomTraffic: m, p: p, me: p.World().Rank(), rnd: rand.New(rand.NewPCG(m.seed, uint64(100+p.World().Rank())))}
	m.all[g.me] = g
	if err := g.prepare(); err != nil {
		return err
	}
	for g.left > 0 || len(g.out) > 0 || g.waits() {
		if err := g.step(); err != nil {
			return fmt.Errorf("rank %d, %d messages left: %w", g.me, g.left, err)
		}
	}
	return g.end()
}

func (g *trafficRank) prepare() error {
	w := g.p.World()
	dup, err := w.Dup()
	if err != nil {
		return err
	}
	back, err := w.Split(0, -g.me) // ranks the other way round
	if err != nil {
		return err
	}
	if g.side, err = w.Dup(); err != nil {
		return err
	}
	g.comms = []*mpi.Comm{w, dup, back}
	g.log = make([][]*operation, trafficComms)
	for range g.comms {
		g.in = append(g.in, make([][]*plannedSend, g.ranks))
	}
	for _, t := range g.plan {
		if t.from == g.me {
			g.out = append(g.out, t)
		}
		if t.to == g.me {
			r := g.rank(t.comm, t.from)
			g.in[t.comm][r] = append(g.in[t.comm][r], t)
			g.left++
		}
	}
	return g.p.BufferAttach(1 << 20)
}

// rank returns the number in a communicator of a rank of World, and the other way
// round.
func (g *trafficRank) rank(comm, world int) int {
	if comm == 2 {
		return g.ranks - 1 - world
	}
	return world
}

// waits reports whether something is under way that must come to its end.
func (g *trafficRank) waits() bool {
	return slices.ContainsFunc(g.active, func(d *operation) bool { return d.sent != nil || d.sum != nil }) || g.sums < 5
}

// step does something at random, and what must be done when that was nothing.
func (g *trafficRank) step() error {
	var moved bool
	var err error
	switch g.rnd.IntN(12) {
	case 0, 1, 2, 3:
		for range 1 + g.rnd.IntN(g.burst) {
			if moved, err = g.send(); !moved || err != nil {
				break
			}
		}
	case 4, 5, 6:
		moved, err = g.receive()
	case 7, 8:
		moved, err = g.probe(g.rnd.IntN(trafficComms))
	case 9:
		moved, err = g.test()
	case 10:
		moved, err = g.takeBack()
	case 11:
		moved, err = g.wait()
	}
	if moved || err != nil {
		return err
	}
	if g.rnd.IntN(20) == 0 {
		if moved, err = g.sum(); moved || err != nil {
			return err
		}
	}
	if g.rnd.IntN(3) > 0 {
		return nil
	}
	return g.idle()
}

// idle takes in whatever has come, and sleeps until more comes when that is nothing.
func (g *trafficRank) idle() error {
	moved, err := g.collect()
	for comm := range trafficComms {
		if err == nil {
			var found bool
			found, err = g.take(comm, mpi.AnySource, mpi.AnyTag)
			moved = moved || found
		}
	}
	if err == nil && !moved {
		moved, err = g.sum()
	}
	if err != nil || moved || len(g.out) > 0 {
		return err
	}
	if g.p.Engine().Step() == 0 {
		g.p.Engine().Park()
	}
	return nil
}

// send starts the next message.
func (g *trafficRank) send() (bool, error) {
	if len(g.out) == 0 || len(g.active) > g.most {
		return false, nil
	}
	t := g.out[0]
	g.out = g.out[1:]
	c, dest := g.comms[t.comm], g.rank(t.comm, t.to)
	if t.mode >= sendSendInit {
		return true, g.startKept(c, t, dest)
	}
	m := newData(g.rnd, t.length)
	g.write(t, &m)
	d, err := m.data()
	if err != nil {
		return true, err
	}
	var r mpi.Request
	higher := t.to > g.me
	switch {
	case t.mode == sendSend && higher:
		err = c.Send(d, dest, t.tag)
	case t.mode == sendSsend && higher:
		if err = c.Ssend(d, dest, t.tag); err == nil {
			err = g.met(t)
		}
	case t.mode == sendBsend:
		if err = c.Bsend(d, dest, t.tag); mpi.ClassOf(err) == mpi.ErrBuffer {
			r, err = c.Isend(d, dest, t.tag)
		}
	case t.mode == sendIssend, t.mode == sendSsend:
		r, err = c.Issend(d, dest, t.tag)
		t.mode = sendIssend
	case t.mode == sendIrsend:
		r, err = c.Irsend(d, dest, t.tag)
	default:
		r, err = c.Isend(d, dest, t.tag)
	}
	switch {
	case r.IsNull():
		g.finish(m.memory)
	case err == nil && g.rnd.IntN(16) == 0:
		err = r.Free() // it ends by itself, and nobody knows when
	default:
		g.active = append(g.active, &operation{r: r, sent: t, data: m})
	}
	return true, err
}

// write puts the data of a message into memory.
func (g *trafficRank) write(t *plannedSend, m *trafficData) {
	b := make([]byte, t.length)
	pattern(b, t.seed)
	m.write(b)
}

// finish spoils memory that MPI has given back, and keeps it for a while to see that it stays so.
func (g *trafficRank) finish(memory []byte) {
	for i := range memory {
		memory[i] = finished
	}
	g.over, g.size = append(g.over, memory), g.size+len(memory)
	for g.size > overMost {
		g.late = errors.Join(g.late, stays(g.over[0]))
		g.size -= len(g.over[0])
		g.over = slices.Delete(g.over, 0, 1)
	}
}

// startKept starts a persistent send, which is made when there is none.
func (g *trafficRank) startKept(c *mpi.Comm, t *plannedSend, dest int) error {
	i := slices.IndexFunc(g.kept, func(k *persistentSend) bool {
		return !k.busy && k.like.comm == t.comm && k.like.to == t.to && k.like.tag == t.tag && k.like.length == t.length && k.like.mode == t.mode
	})
	if i < 0 {
		like := plannedSend{to: t.to, comm: t.comm, tag: t.tag, length: t.length, mode: t.mode} // taken is the receiver's
		k := &persistentSend{like: like, data: newData(g.rnd, t.length)}
		d, err := k.data.data()
		if err != nil {
			return err
		}
		if k.op, err = c.SendInit(d, dest, t.tag); t.mode == sendSsendInit {
			k.op, err = c.SsendInit(d, dest, t.tag)
		}
		if err != nil {
			return err
		}
		i = len(g.kept)
		g.kept = append(g.kept, k)
	}
	k := g.kept[i]
	k.busy = true
	g.write(t, &k.data)
	r, err := k.op.Start()
	g.active = append(g.active, &operation{r: r, sent: t, op: k.op, data: k.data})
	return err
}

// met fails when a synchronous send is complete that no receive has met.
func (g *trafficRank) met(t *plannedSend) error {
	if !g.watched || t.taken {
		return nil
	}
	other := g.all[t.to]
	source := g.rank(t.comm, t.from)
	for _, d := range other.log[t.comm] {
		if (d.source == source || d.source == mpi.AnySource) && (d.tag == t.tag || d.tag == mpi.AnyTag) {
			return nil
		}
	}
	return fmt.Errorf("the synchronous send of %+v is complete, and there is no receive for it", *t)
}

// pick returns a random pattern of those that fit messages to come.
func (g *trafficRank) pick(comm int) (source, tag int) {
	source, tag = g.rnd.IntN(g.ranks), g.rnd.IntN(trafficTags)
	if g.rnd.IntN(3) == 0 {
		source = mpi.AnySource
	}
	if g.rnd.IntN(3) == 0 {
		tag = mpi.AnyTag
	}
	return source, tag
}

// receive posts a receive, which may be too short, or for nothing.
func (g *trafficRank) receive() (bool, error) {
	if len(g.active) > g.most || g.left == 0 {
		return false, nil
	}
	comm := g.rnd.IntN(trafficComms)
	source, tag := g.pick(comm)
	room := 2_000_000
	if g.wholes { // a shorter one would end that connections are looked at
		room = []int{70_000, room}[g.rnd.IntN(2)]
	} else if g.rnd.IntN(4) > 0 {
		room = g.length(g.rnd)
	} else if g.rnd.IntN(2) == 0 {
		room = 70_000
	}
	d := &operation{comm: comm, source: source, tag: tag, data: newData(g.rnd, room)}
	data, err := d.data.data()
	if err != nil {
		return true, err
	}
	if g.rnd.IntN(4) == 0 {
		if d.op, err = g.comms[comm].RecvInit(data, source, tag); err != nil {
			return true, err
		}
		d.r, err = d.op.Start()
	} else {
		d.r, err = g.comms[comm].Irecv(data, source, tag)
	}
	g.log[comm] = append(g.log[comm], d)
	g.active = append(g.active, d)
	return true, err
}

// probe receives a message that has come, if there is one.
func (g *trafficRank) probe(comm int) (bool, error) {
	source, tag := g.pick(comm)
	if g.rnd.IntN(2) == 0 {
		return g.take(comm, source, tag)
	}
	c := g.comms[comm]
	st, found, err := c.Iprobe(source, tag)
	if err != nil || !found {
		return false, err
	}
	d := &operation{comm: comm, source: source, tag: tag, data: newData(g.rnd, st.Bytes())}
	g.log[comm] = append(g.log[comm], d)
	data, err := d.data.data()
	if err != nil {
		return true, err
	}
	d.st, d.err = c.Recv(data, st.Source, st.Tag)
	if d.err == nil && d.st != st {
		return true, fmt.Errorf("the probe told of %+v, but the receive got %+v", st, d.st)
	}
	return true, g.received(d)
}

// take receives a message that has come by a handle of its own.
func (g *trafficRank) take(comm, source, tag int) (bool, error) {
	msg, st, found, err := g.comms[comm].Improbe(source, tag)
	if err != nil || !found {
		return false, err
	}
	room := st.Bytes()
	if g.rnd.IntN(8) == 0 {
		room /= 2
	}
	d := &operation{comm: comm, source: source, tag: tag, data: newData(g.rnd, room)}
	g.log[comm] = append(g.log[comm], d)
	data, err := d.data.data()
	if err != nil {
		return true, err
	}
	if g.rnd.IntN(2) == 0 {
		d.st, d.err = msg.Recv(data)
		return true, g.received(d)
	}
	d.r, err = msg.Irecv(data)
	g.active = append(g.active, d)
	return true, err
}

// takeBack cancels a receive.
func (g *trafficRank) takeBack() (bool, error) {
	if len(g.active) == 0 {
		return false, nil
	}
	d := g.active[g.rnd.IntN(len(g.active))]
	if d.sent != nil || d.sum != nil {
		return false, nil
	}
	return true, d.r.Cancel()
}

// sum begins a collective.
func (g *trafficRank) sum() (bool, error) {
	if g.sums >= 5 {
		return false, nil
	}
	d := &operation{sum: []int64{int64(g.me + g.sums)}}
	g.sums++
	var err error
	d.r, err = mpi.Iallreduce(g.side, slices.Clone(d.sum), d.sum, mpi.Sum)
	d.tag = g.sums - 1
	g.active = append(g.active, d)
	return true, err
}

// test looks at the operations under way in one of the ways there are.
func (g *trafficRank) test() (bool, error) {
	if len(g.active) == 0 {
		return false, nil
	}
	switch g.rnd.IntN(4) {
	case 0:
		i := g.rnd.IntN(len(g.active))
		d := g.active[i]
		_, peeked, _ := d.r.GetStatus()
		st, done, err := d.r.Test()
		if peeked && !done {
			return true, fmt.Errorf("an operation was complete, and is not any more")
		}
		if done {
			return true, g.ended(i, st, err)
		}
		return false, err
	case 1:
		requests := g.requests()
		i, st, done, err := mpi.Testany(requests)
		if !done {
			return false, err
		}
		g.active[i].r = requests[i]
		return true, g.ended(i, st, err)
	}
	return g.collect()
}

func (g *trafficRank) requests() []mpi.Request {
	requests := make([]mpi.Request, len(g.active))
	for i, d := range g.active {
		requests[i] = d.r
	}
	return requests
}

// collect ends all operations that are complete.
func (g *trafficRank) collect() (bool, error) {
	some, _ := mpi.Testsome(g.requests(), nil)
	return len(some) > 0, g.settle(some)
}

func (g *trafficRank) settle(some []mpi.Some) error {
	for _, s := range slices.Backward(some) { // indices stay right
		if err := g.ended(s.Index, s.Status, s.Err); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for any operation, if there is one that certainly ends.
func (g *trafficRank) wait() (bool, error) {
	if !slices.ContainsFunc(g.active, func(d *operation) bool { return d.sent != nil && d.sent.to > g.me }) {
		return false, nil
	}
	if g.rnd.IntN(2) == 0 {
		some, _ := mpi.Waitsome(g.requests(), nil)
		return true, g.settle(some)
	}
	i, st, err := mpi.Waitany(g.requests())
	return true, g.ended(i, st, err)
}

// ended takes the result of operation i.
func (g *trafficRank) ended(i int, st mpi.Status, err error) error {
	d := g.active[i]
	g.active = slices.Delete(g.active, i, i+1)
	switch {
	case d.sent != nil:
		if err != nil {
			return fmt.Errorf("send of %+v: %w", *d.sent, err)
		}
		if k := slices.IndexFunc(g.kept, func(k *persistentSend) bool { return k.op == d.op && d.op != nil }); k >= 0 {
			g.kept[k].busy = false
			for i := range d.data.memory {
				d.data.memory[i] = finished
			}
		} else {
			g.finish(d.data.memory)
		}
		if d.sent.mode == sendIssend || d.sent.mode == sendSsendInit {
			return g.met(d.sent)
		}
		return nil
	case d.sum != nil:
		if want := int64(g.ranks*(g.ranks-1)/2 + g.ranks*d.tag); err != nil || d.sum[0] != want {
			return fmt.Errorf("sum %d is %d, want %d: %w", d.tag, d.sum[0], want, err)
		}
		return nil
	}
	d.st, d.err = st, err
	return g.received(d)
}

// received notes the result of a receive, and checks those whose turn it is.
func (g *trafficRank) received(d *operation) error {
	d.done = true
	if !d.st.Cancelled() {
		g.left--
	}
	log := g.log[d.comm]
	for len(log) > 0 && log[0].done {
		if err := g.check(log[0]); err != nil {
			return err
		}
		log = log[1:]
	}
	g.log[d.comm] = log
	return nil
}

// check says whether the message that a receive got is the one that it had to get.
// All that were posted before it on its communicator have been checked: of the
// messages of its source that fit, it has the first one that those have left.
func (g *trafficRank) check(d *operation) error {
	if d.st.Cancelled() {
		_, err := d.data.read(0)
		return errors.Join(err, d.err)
	}
	from := g.in[d.comm][d.st.Source]
	for len(from) > 0 && from[0].taken {
		from = from[1:]
	}
	g.in[d.comm][d.st.Source] = from
	i := slices.IndexFunc(from, func(t *plannedSend) bool { return !t.taken && (d.tag == mpi.AnyTag || d.tag == t.tag) })
	if i < 0 || d.source != mpi.AnySource && d.source != d.st.Source {
		return fmt.Errorf("receive from %d with tag %d got %+v, %w", d.source, d.tag, d.st, d.err)
	}
	want := from[i]
	n := min(want.length, d.data.room)
	if d.st.Tag != want.tag || d.st.Bytes() != n {
		return fmt.Errorf("receive from %d with tag %d for %d bytes got %+v, but the next message is %+v: overtaken", d.source, d.tag, d.data.room, d.st, *want)
	}
	if cut := want.length > d.data.room; cut != (mpi.ClassOf(d.err) == mpi.ErrTruncate) || !cut && d.err != nil {
		return fmt.Errorf("receive of %d bytes into %d ends with %w", want.length, d.data.room, d.err)
	}
	got, err := d.data.read(n)
	if err != nil {
		return err
	}
	all := make([]byte, want.length)
	if pattern(all, want.seed); !slices.Equal(got, all[:n]) {
		return fmt.Errorf("%w: message %+v", errData, *want)
	}
	want.taken = true
	g.finish(d.data.memory)
	return nil
}

// end takes back what waits for nothing, and makes sure that nothing is left.
func (g *trafficRank) end() error {
	for len(g.active) > 0 {
		if err := g.active[0].r.Cancel(); err != nil {
			return err
		}
		st, err := g.active[0].r.Wait()
		if err == nil && !st.Cancelled() {
			err = fmt.Errorf("one message too many: %+v", st)
		}
		if err = errors.Join(err, g.ended(0, st, err)); err != nil {
			return err
		}
	}
	for _, k := range g.kept {
		if err := k.op.Free(); err != nil {
			return err
		}
	}
	_, err := g.p.BufferDetach()
	if err = errors.Join(err, g.comms[0].Barrier()); err != nil {
		return err
	}
	for comm, c := range g.comms {
		if st, found, err := c.Iprobe(mpi.AnySource, mpi.AnyTag); found || err != nil {
			return fmt.Errorf("one message too many: %+v, %v", st, err)
		}
		if len(g.log[comm]) > 0 {
			return fmt.Errorf("receives without an end: %+v", *g.log[comm][0])
		}
	}
	for _, b := range g.over {
		g.late = errors.Join(g.late, stays(b))
	}
	return g.late
}
