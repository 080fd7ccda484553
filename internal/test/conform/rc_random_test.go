package conform

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs"
)

// randomRC is a world in which two ends with some connections between them do
// random things to each other, over streams that are cut at random, choke, and
// fail. It follows from its seed, and what each end sees is held against what the
// other end has asked for:
//
//   - Requests and receives complete in order, once each, and with success until
//     the connection is over.
//   - A message brings what was sent, and with it everything that was written
//     before. A Read brings that too, and maybe more.
//   - Memory holds nothing that nobody has written.
//   - When nothing was done to the connection, nothing fails.
type randomRC struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	world *sim.World
	sides [2]*side
	p     verbs.ConnParam
	rough bool // connections may fail
}

// side is one end of all connections, in a task.
type side struct {
	x       *randomRC
	i       int
	peer    *side
	task    *sim.Task
	streams *sim.Streams
	ctx     *verbs.Context
	pd      *verbs.PD
	cq      *verbs.CQ
	cm      *verbs.CMChannel
	lines   []*line
	late    bool
}

// line is one end of a connection.
type line struct {
	s      *side
	n      int
	peer   *line
	id     *verbs.CMID
	qp     *verbs.QP
	quota  int // requests to make
	ops    []lineOp
	done   int   // of them, as far as is known
	sends  []int // those of ops that complete a receive
	writes []int // those that write
	adds   int   // atomics
	posted int   // receives
	got    int   // of them complete
	open   bool
	over   bool
	bye    bool // the peer has made all its requests, and they are here

	src, recv, dst, sink, word *field
}

type lineOp struct {
	op       verbs.Opcode
	off, n   int
	adds     int // atomics before this one
	signaled bool
}

const (
	lineWindow = 24   // requests that are not known to be complete
	lineRecvs  = 8    // receives posted at a time
	lineMsg    = 5000 // longest message
	lineMem    = 2048 // bytes that the peer writes and reads
)

func newRandomRC(t *testing.T, seed uint64) *randomRC {
	x := &randomRC{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7))}
	x.world = sim.New(sim.Config{Seed: seed, ArenaSize: 1 << 12})
	x.p = verbs.ConnParam{
		CRC: x.rng.IntN(2) == 0, Markers: x.rng.IntN(3) == 0, Timeout: mono.Second,
		ResponderResources: 1 + x.rng.IntN(16), InitiatorDepth: 1 + x.rng.IntN(16),
	}
	switch x.rng.IntN(4) {
	case 0:
		x.p.Revision, x.p.InitiatorDepth = 1, x.p.ResponderResources // as nobody tells
	case 1:
		x.p.RTR = mpa.RTR(1 + x.rng.IntN(7))
	}
	x.rough = x.rng.IntN(2) == 0
	count := 1 + x.rng.IntN(3)
	for i := range x.sides {
		s := &side{x: x, i: i}
		x.sides[i] = s
		for n := range count {
			s.lines = append(s.lines, &line{s: s, n: n, quota: 10 + x.rng.IntN(60)})
		}
	}
	for i, s := range x.sides {
		s.peer = x.sides[1-i]
		for n, l := range s.lines {
			l.peer = s.peer.lines[n]
		}
		node, c := x.world.Node(), x.stream(count)
		s.task = x.world.Go(node, fmt.Sprint("side ", i), func(*sim.Task) error {
			s.run(node, c)
			return nil
		})
	}
	return x
}

// stream says what is done to what one side sends.
func (x *randomRC) stream(conns int) sim.StreamConfig {
	c := sim.StreamConfig{Timeout: mono.Second, MSS: 100 + x.rng.IntN(3000)}
	r := rand.New(rand.NewPCG(x.seed, x.rng.Uint64()))
	switch most := []int{7, 60, 600, 6000}[x.rng.IntN(4)]; x.rng.IntN(4) {
	case 0:
		c.SendBuffer, c.RecvBuffer = 1+x.rng.IntN(5000), 1+x.rng.IntN(5000)
	case 1:
		c.Segment = func(_ int, _ int64, n int) int { return 1 + r.IntN(most) }
	case 2:
		c.Gap = mono.Duration(x.rng.IntN(5000))
		c.Segment = func(_ int, _ int64, n int) int { return min(n, 1+r.IntN(n)) }
	}
	if x.rough {
		for range x.rng.IntN(3) {
			c.Faults = append(c.Faults, sim.StreamFault{
				Conn: x.rng.IntN(conns), Offset: int64(x.rng.IntN(1 << x.rng.IntN(17))), Kind: sim.StreamReset + sim.StreamFaultKind(x.rng.IntN(5)),
			})
		}
	} else if x.rng.IntN(3) == 0 {
		c.Faults = []sim.StreamFault{{Offset: int64(x.rng.IntN(20_000)), Kind: sim.StreamSilence, Heal: 200 * mono.Millisecond}}
	}
	return c
}

func (x *randomRC) run() uint64 {
	x.t.Helper()
	if err := x.world.Run(); err != nil {
		x.t.Fatalf("seed %d: %v", x.seed, err)
	}
	for _, s := range x.sides {
		for _, l := range s.lines {
			l.check()
		}
	}
	return x.world.TraceHash()
}

func (s *side) must(err error) {
	if err != nil {
		s.x.t.Helper()
		s.x.t.Fatalf("seed %d: side %d: %v", s.x.seed, s.i, err)
	}
}

func (l *line) fail(format string, args ...any) {
	l.s.x.t.Helper()
	l.s.x.t.Fatalf("seed %d: side %d, connection %d: %s", l.s.x.seed, l.s.i, l.n, fmt.Sprintf(format, args...))
}

// run is the body of a task.
func (s *side) run(n *sim.Node, c sim.StreamConfig) {
	s.streams = n.Streams(c)
	var err error
	s.ctx, err = verbs.New(verbs.Config{
		Streams: s.streams, Engine: progress.New(s.task, s.task), Key: s.x.seed, Epoch: uint32(s.i + 1), ZeroBased: true,
	})
	s.must(err)
	s.pd, err = s.ctx.AllocPD()
	s.must(err)
	s.cq, err = s.ctx.CreateCQ(verbs.CQInit{Depth: 512})
	s.must(err)
	s.cm, err = s.ctx.CreateCMChannel()
	s.must(err)
	for _, l := range s.lines {
		l.init()
	}
	s.x.world.At(mono.Time(5*mono.Second), func() { s.late = true; s.task.Wake() })
	if s.i == 1 {
		listener, err := s.cm.CreateID()
		s.must(err)
		s.must(listener.BindAddr(netip.AddrPortFrom(n.Addr(), 7)))
		s.must(listener.Listen(len(s.lines)))
	} else {
		s.task.Sleep(mono.Millisecond)
		for _, l := range s.lines {
			l.id, err = s.cm.CreateID()
			s.must(err)
			s.must(l.id.ResolveAddr(netip.AddrPortFrom(s.peer.task.Node().Addr(), 7), 0))
		}
	}
	for !s.finished() {
		if s.step()+s.act() == 0 {
			s.ctx.Engine().Park()
		}
	}
	for _, l := range s.lines {
		if l.id != nil && l.id.State() != verbs.IDDestroyed {
			s.must(l.id.Destroy())
		}
		l.qp.Destroy()
	}
	s.poll()
	s.must(s.ctx.Close())
}

// finished reports whether all connections are over. One that has never come is
// given up.
func (s *side) finished() bool {
	for _, l := range s.lines {
		if !l.over && (l.open || !s.late) {
			return false
		}
	}
	return true
}

// step lets the engine work, and takes in what has happened.
func (s *side) step() (work int) {
	work = s.ctx.Engine().Step()
	for {
		e, ok := s.cm.GetEvent()
		if !ok {
			return work + s.poll()
		}
		work++
		s.hear(&e)
	}
}

func (s *side) poll() (work int) {
	var wcs [16]verbs.WC
	for n := s.cq.Poll(wcs[:]); n > 0; n = s.cq.Poll(wcs[:]) {
		for i := range wcs[:n] {
			s.lineOf(wcs[i].QPNum).complete(&wcs[i])
		}
		work += n
	}
	return work
}

func (s *side) lineOf(qpn uint32) *line {
	for _, l := range s.lines {
		if l.qp.Num() == qpn {
			return l
		}
	}
	s.x.t.Fatalf("seed %d: side %d: there is no queue pair %d", s.x.seed, s.i, qpn)
	return nil
}

// hear handles a connection event. The number of a connection is its private
// data.
func (s *side) hear(e *verbs.CMEvent) {
	var l *line
	for _, have := range s.lines {
		if have.id == e.ID {
			l = have
		}
	}
	if e.Type == verbs.CMConnectRequest {
		l = s.lines[e.Param.PrivateData[0]]
		l.id = e.ID
		p := s.x.p
		p.QP = l.qp
		s.must(e.ID.Accept(p))
		return
	}
	switch e.Type {
	case verbs.CMAddrResolved:
		s.must(e.ID.ResolveRoute(0))
	case verbs.CMRouteResolved:
		p := s.x.p
		p.QP, p.PrivateData = l.qp, []byte{byte(l.n)}
		s.must(e.ID.Connect(p))
	case verbs.CMEstablished:
		if l.open || l.over {
			l.fail("established: open %v, over %v", l.open, l.over)
		}
		l.open = true
	default:
		if l.over || e.Type == verbs.CMDisconnected != l.open || !s.x.rough && e.Err != nil {
			l.fail("%v: open %v, over %v, %v", e.Type, l.open, l.over, e.Err)
		}
		l.over = true
		s.peer.task.Wake() // who may wait for a receive in vain
	}
}

// act does something at random, and returns 0 if there is nothing to do.
func (s *side) act() (work int) {
	r := s.task.Rand()
	if r.IntN(50) == 0 {
		s.streams.SetMSS(88 + r.IntN(9000))
	}
	for _, l := range s.lines {
		switch {
		case !l.open || l.over:
		case s.late, l.through() && l.peer.through() && (s.i == 0 || l.n == 1):
			s.must(l.id.Disconnect())
		case s.x.rough && r.IntN(600) == 0:
			l.rage(r)
			work++
		default:
			for range 1 + r.IntN(6) {
				work += l.post(r)
			}
		}
	}
	return work
}

// through reports whether nothing is left to do.
func (l *line) through() bool { return l.bye && len(l.ops) == l.quota && l.done == l.quota }

// rage ends the connection from here, in one of the ways there are.
func (l *line) rage(r *rand.Rand) {
	switch r.IntN(3) {
	case 0:
		l.s.must(l.id.Disconnect())
	case 1:
		l.s.must(l.id.Destroy())
		l.over = true
		l.s.peer.task.Wake()
	case 2:
		l.s.must(l.qp.Modify(verbs.StateErr))
	}
}

func (l *line) init() {
	s := l.s
	var err error
	l.qp, err = s.pd.CreateQP(verbs.QPInit{Type: verbs.RC, SendCQ: s.cq, RecvCQ: s.cq, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 16}, SegmentMin: l.n % 2 * 4000})
	s.must(err)
	l.src = s.field(lineWindow*lineMsg, 0)
	l.sink = s.field(lineWindow*lineMem, verbs.LocalWrite)
	l.recv = s.field(lineRecvs*lineMsg, verbs.LocalWrite)
	l.dst = s.field(lineMem, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	l.word = s.field(8, verbs.LocalWrite|verbs.RemoteAtomic)
	for range lineRecvs {
		l.expect()
	}
}

func (s *side) field(n int, access verbs.Access) *field {
	f, err := newField(s.pd, n, access)
	s.must(err)
	return f
}

// expect posts a receive.
func (l *line) expect() {
	wr := verbs.RecvWR{WRID: 1<<32 | uint64(l.posted), NumSGE: 2}
	slot := l.posted % lineRecvs * lineMsg
	cut := l.posted * 37 % lineMsg
	wr.SGL[0], wr.SGL[1] = l.recv.SGE(slot, cut), l.recv.SGE(slot+cut, lineMsg-cut)
	l.s.must(l.qp.PostRecv(&wr))
	l.posted++
}

// post posts a random request, and returns 0 when it cannot now.
func (l *line) post(r *rand.Rand) int {
	i := len(l.ops)
	last := i == l.quota-1
	if i == l.quota || i-l.done >= lineWindow || last && l.done < i {
		return 0
	}
	op := lineOp{op: []verbs.Opcode{
		verbs.OpSend, verbs.OpSend, verbs.OpRDMAWrite, verbs.OpRDMAWrite, verbs.OpRDMAWriteWithImm, verbs.OpRDMARead, verbs.OpRDMARead, verbs.OpAtomicFetchAndAdd,
	}[r.IntN(8)]}
	if last {
		op.op = verbs.OpSend
	}
	if delivers(op.op) && len(l.sends) == l.peer.posted {
		return 0
	}
	op.n = r.IntN(1 + []int{1, 64, 64, 500, lineMem}[r.IntN(5)])
	if op.op == verbs.OpSend && r.IntN(5) == 0 {
		op.n = r.IntN(lineMsg + 1)
	}
	op.signaled = i >= l.quota-2 || i%7 == 6 || r.IntN(2) == 0
	if op.op == verbs.OpRDMAWrite || op.op == verbs.OpRDMAWriteWithImm || op.op == verbs.OpRDMARead {
		op.off = r.IntN(lineMem - op.n + 1)
	}
	op.adds = l.adds
	wr := l.request(i, op, r)
	l.s.must(l.qp.PostSend(&wr))
	l.ops = append(l.ops, op)
	if delivers(op.op) {
		l.sends = append(l.sends, i)
	}
	if op.op == verbs.OpRDMAWrite || op.op == verbs.OpRDMAWriteWithImm {
		l.writes = append(l.writes, i)
	}
	return 1
}

// request makes the request that is number i.
func (l *line) request(i int, op lineOp, r *rand.Rand) verbs.SendWR {
	wr := verbs.SendWR{WRID: uint64(i), Opcode: op.op, NumSGE: 2}
	if op.signaled {
		wr.Flags |= verbs.Signaled
	}
	if r.IntN(10) == 0 {
		wr.Flags |= verbs.Fence
	}
	wr.RKey, wr.RemoteAddr = l.peer.dst.RKey(), l.peer.dst.Addr()+uint64(op.off)
	cut := r.IntN(op.n + 1)
	slot := i % lineWindow
	switch op.op {
	case verbs.OpRDMARead:
		clear(l.sink.b[slot*lineMem:][:lineMem])
		wr.SGL[0], wr.SGL[1] = l.sink.SGE(slot*lineMem, cut), l.sink.SGE(slot*lineMem+cut, op.n-cut)
		if r.IntN(2) == 0 {
			wr.NumSGE, wr.SGL[0] = 1, l.sink.SGE(slot*lineMem, op.n)
		}
		return wr
	case verbs.OpAtomicFetchAndAdd:
		wr.NumSGE, wr.SGL[0] = 1, l.sink.SGE(slot*lineMem, 8)
		wr.RKey, wr.RemoteAddr = l.peer.word.RKey(), l.peer.word.Addr()
		wr.Atomic.Add = 3
		l.adds++
		return wr
	case verbs.OpRDMAWriteWithImm:
		wr.ImmData = uint64(i) << 40
	case verbs.OpSend:
		wr.RKey, wr.RemoteAddr = 0, 0
	}
	b := l.src.b[slot*lineMsg:][:op.n]
	for k := range b {
		b[k] = value(i, op.off+k)
	}
	wr.SGL[0], wr.SGL[1] = l.src.SGE(slot*lineMsg, cut), l.src.SGE(slot*lineMsg+cut, op.n-cut)
	if op.n <= verbs.MaxInline && r.IntN(3) == 0 {
		wr.Flags |= verbs.Inline
		wr.NumSGE, wr.InlineData = 0, b
	}
	return wr
}

// value is what request i puts at an offset: never 0, which is what memory holds
// before.
func value(i, at int) byte { return byte(i*53+at*7) | 1 }

// TestRC_random runs random connections.
func TestRC_random(t *testing.T) {
	oneGoroutine(t)
	manyWorlds(t)
	for seed := range uint64(400) {
		newRandomRC(t, seed).run()
	}
}

// The same seed is the same run, byte for byte.
func TestRC_randomRepeats(t *testing.T) {
	oneGoroutine(t)
	for seed := range uint64(8) {
		if a, b := newRandomRC(t, seed).run(), newRandomRC(t, seed).run(); a != b {
			t.Errorf("seed %d: traces %x and %x", seed, a, b)
		}
	}
}
