package mpi

import (
	"slices"
	"sync"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/mpi/internal/adapt"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// Hooks are called around the calls of a program (what PMPI is for in C). They may
// call this package; those calls have no hooks. Under ThreadMultiple they must be
// ready for several goroutines at once. Nil functions do nothing.
type Hooks struct {
	// Begin is called before the operation. What it leaves in Call.Data is there
	// at the end.
	Begin func(*Call)
	// End is called after it. The Call belongs to the caller again afterwards.
	End func(*Call)
}

// Call is one call of an operation. Blocking, nonblocking and persistent forms have
// names of their own, as in MPI: Isend, and then Wait. An operation over slices and
// the same one over Data have one name. Calls that only look something up, such as
// Comm.Rank, are none.
type Call struct {
	Name  string        // "Send", "Iallreduce", "Comm.Split", ...
	Comm  *Comm         // nil for calls that take several requests
	Peer  int           // rank that is sent to or received from, or root; Undefined: no such
	Tag   int           // Undefined: no such
	Bytes int           // of the message; of a collective, what this rank sends
	Begin time.Duration // since the process has joined the job
	End   time.Duration // at the end
	Err   error         // at the end
	Data  any           // for the hooks

	w      *watch
	op     int
	number uint64 // in the record
	served uint64 // of an operation on a window, one more than the number of its server
	next   *Call  // in the pool
}

// watch sees the calls of a process: for hooks, for counters, and for the record
// that xrun reads. Without any of these a process has none, and its calls pass with
// one look at a nil pointer.
type watch struct {
	p     *Proc
	began int64 // of the engine's clock, in ns

	mu        sync.Mutex
	hooks     *Hooks
	all       CommStats
	record    *trace.Record    // or nil
	totals    trace.Totals     // for the record
	predictor *adapt.Predictor // of windows whose async_config is auto, or auto-ghosts; or nil
	telling
	numbers map[match.Envelope]uint64
	seen    int     // calls
	comms   []*Comm // by their places in the record; nil: freed
	wins    []*Win  // likewise
	idle    *Call
}

// telling is what ghosts are told of this rank.
type telling struct {
	boards *rma.Boards // or nil: nothing
	inside int         // calls that have begun and not ended
	calls  uint32      // begun and ended
	probes uint32      // that have begun
}

// tell notes that a call begins (1) or ends (-1).
func (w *watch) tell(change int) {
	w.inside += change
	w.calls++
	if w.boards == nil {
		return
	}
	if n := w.boards.Probes(); n != w.probes {
		w.probes = n
		w.predictor.Probed(mono.Time(w.now()))
	}
	calls := w.calls << 1
	if w.inside > 0 {
		calls |= 1
	}
	w.boards.Say(w.predictor.Says(), calls)
}

// totalsEvery is after how many calls the record gets the counters of the layer
// below, so that they are not far off when the rank is killed.
const totalsEvery = 256

// SetHooks makes all calls from now on call hooks; nil ends that. Call it before
// other goroutines use the process. Config.Hooks sees World being made, too.
func (p *Proc) SetHooks(h *Hooks) {
	if p.watch == nil {
		p.watch = newWatch(p, nil)
	}
	p.watch.mu.Lock()
	p.watch.hooks = h
	p.watch.mu.Unlock()
}

func newWatch(p *Proc, record *trace.Record) *watch {
	w := &watch{p: p, record: record, numbers: map[match.Envelope]uint64{}}
	w.began = w.now()
	return w
}

func (w *watch) now() int64 { return int64(w.p.ep.Engine().Clock().Now()) }

// watch returns what watches the process of a communicator, or nil.
func (c *Comm) watch() *watch {
	if c == nil {
		return nil
	}
	return c.p.watch
}

// begin begins a call. Without a watch there is none to begin.
func (w *watch) begin(name string, c *Comm, peer, tag, bytes int) *Call {
	if w == nil {
		return nil
	}
	return w.open(name, c, peer, tag, bytes, 0)
}

func (w *watch) open(name string, c *Comm, peer, tag, bytes int, served uint64) *Call {
	now := w.now()
	w.mu.Lock()
	k := w.idle
	if k == nil {
		k = &Call{}
	} else {
		w.idle = k.next
	}
	w.tell(1)
	*k = Call{Name: name, Comm: c, Peer: peer, Tag: tag, Bytes: bytes, Begin: time.Duration(now - w.began), w: w, served: served}
	if w.record != nil {
		w.note(c)
		k.op = w.record.Op(name)
		k.number = w.record.Add(k.event(now))
	}
	hooks := w.hooks
	w.mu.Unlock()
	if hooks != nil && hooks.Begin != nil {
		hooks.Begin(k)
	}
	return k
}

// event is the call as the record has it.
func (k *Call) event(now int64) trace.CallEvent {
	e := trace.CallEvent{Kind: trace.CallBegun, Op: uint8(k.op), Begin: now, Peer: -1, Tag: int32(k.Tag), Bytes: uint64(k.Bytes), Number: k.served}
	if c := k.Comm; c != nil {
		e.Context = c.context
		if k.Peer >= 0 && k.Peer < c.size {
			e.Peer = int32(c.at(k.Peer))
		}
	}
	return e
}

// end ends the call. A nil one was not begun.
func (k *Call) end(err error) {
	if k != nil {
		k.w.close(k, err)
	}
}

func (w *watch) close(k *Call, err error) {
	now := w.now()
	k.End, k.Err = time.Duration(now-w.began), err
	w.mu.Lock()
	took := uint64(k.End - k.Begin)
	w.all.count(k.Name, k.Bytes, took)
	if c := k.Comm; c != nil {
		c.stats.count(k.Name, k.Bytes, took)
	}
	due := false
	if w.predictor != nil {
		var work mono.Duration
		if k.served != 0 {
			work = adapt.Work(k.Bytes)
		}
		w.predictor.Spent(mono.Time(now), mono.Duration(took), work)
	}
	w.tell(-1)
	if w.record != nil {
		w.record.Count(k.op, uint64(k.Bytes), took)
		w.record.End(k.number, now, err != nil)
		w.totals.CallNanoseconds += took
		w.record.SetTotals(w.totals)
		w.seen++
		due = err != nil || w.seen%totalsEvery == 0
	}
	hooks := w.hooks
	w.mu.Unlock()
	if due {
		w.total()
	}
	if hooks != nil && hooks.End != nil {
		hooks.End(k)
	}
	w.mu.Lock()
	k.Comm, k.Err, k.Data = nil, nil, nil
	k.next, w.idle = w.idle, k
	w.mu.Unlock()
}

// The following four note messages, where a watch wants to know of them: a message
// before it goes, and one that has come.

// sent notes a message of the program.
func (c *Comm) sent(dest, tag, bytes int) {
	if w := c.p.watch; w != nil {
		w.sent(c, dest, tag, bytes)
	}
}

// sentAs notes a message with an envelope, such as one of a collective, to a rank of World.
func (c *Comm) sentAs(env match.Envelope, dest int32, bytes int) {
	if w := c.p.watch; w != nil {
		w.sentAs(c, env, dest, bytes)
	}
}

// got notes that a message of the program has come.
func (c *Comm) got(st p2p.Status) {
	if w := c.p.watch; w != nil {
		w.gotAs(c, c.context, st)
	}
}

// gotAs notes that a message with a context has come.
func (c *Comm) gotAs(context uint32, st p2p.Status) {
	if w := c.p.watch; w != nil {
		w.gotAs(c, context, st)
	}
}

func (w *watch) sent(c *Comm, dest, tag, bytes int) {
	if dest >= 0 {
		w.sentAs(c, c.out(tag), int32(c.at(dest)), bytes)
	}
}

func (w *watch) sentAs(c *Comm, env match.Envelope, dest int32, bytes int) {
	env.Source = dest
	w.message(trace.MessageSent, c, env, bytes, 0)
}

func (w *watch) gotAs(c *Comm, context uint32, st p2p.Status) {
	if st.Mark.Got() {
		env := match.Envelope{Context: context, Source: st.Source, Tag: st.Tag}
		w.message(trace.MessageGot, c, env, st.Bytes, st.Mark.Number())
	}
}

// message notes a message whose envelope has the other rank as its source.
func (w *watch) message(kind trace.EventKind, c *Comm, env match.Envelope, bytes int, number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range []*CommStats{&w.all, &c.stats} {
		if kind == trace.MessageSent {
			s.SentMessages++
			s.SentBytes += uint64(bytes)
		} else {
			s.ReceivedMessages++
			s.ReceivedBytes += uint64(bytes)
		}
	}
	if w.record == nil {
		return
	}
	t := &w.totals
	t.SentMessages, t.SentBytes = w.all.SentMessages, w.all.SentBytes
	t.ReceivedMessages, t.ReceivedBytes = w.all.ReceivedMessages, w.all.ReceivedBytes
	if kind == trace.MessageSent {
		number = p2p.Count(w.numbers, env)
	}
	w.record.Add(trace.CallEvent{
		Kind: kind, Begin: w.now(), Context: env.Context, Peer: env.Source, Tag: env.Tag, Bytes: uint64(bytes), Number: number,
	})
}

// total gives the record the totals of now.
func (w *watch) total() {
	if w == nil || w.record == nil {
		return
	}
	w.p.ep.Enter()
	w.mu.Lock()
	s, t := &w.p.ep.Stats, &w.totals
	t.Eager, t.Rendezvous, t.Near, t.Unexpected, t.Queued = s.Eager, s.Rendezvous, s.Near, s.Unexpected, s.Queued
	w.record.SetTotals(*t)
	l := w.p.ep.Inside().Limits()
	w.record.SetLimits(trace.Limits{Eager: uint64(l.Eager), Idle: uint64(l.Idle), NearLeast: uint64(l.NearLeast), NearMost: uint64(l.NearMost)})
	_, carried := w.p.ctx.Stats()
	w.record.SetLosses(w.p.ctx.Losses())
	w.record.SetArrivals(carried.RxQueues)
	for i, n := range w.p.ctx.NetworkStats() {
		w.record.SetNetwork(i, trace.NetworkCount{Datagrams: n.TxPackets, Bytes: n.TxBytes})
	}
	for i, c := range w.comms {
		if c != nil {
			w.record.SetComm(i, c.totals())
		}
	}
	for i, win := range w.wins {
		if win != nil {
			win.totals(w.record, i)
		}
	}
	w.mu.Unlock()
	w.p.ep.Leave()
}

// last gives the record what is known at the end.
func (w *watch) last() {
	if w == nil || w.record == nil {
		return
	}
	w.total()
	w.p.ep.Enter()
	w.record.SetCarrier(w.p.carrier())
	w.p.ep.Leave()
}

// note gives a communicator a place in the record, while there are any.
func (w *watch) note(c *Comm) {
	if c != nil && !c.noted && len(w.comms) < trace.MaxComms {
		c.noted = true
		w.comms = append(w.comms, c)
	}
}

// left takes the last counters of a communicator that is about to be freed.
func (w *watch) left(c *Comm) {
	if w == nil || w.record == nil {
		return
	}
	w.total()
	w.mu.Lock()
	if i := slices.Index(w.comms, c); i >= 0 {
		w.comms[i] = nil
	}
	w.mu.Unlock()
}

// totals returns the counters of c for the record. The caller is inside the endpoint.
func (c *Comm) totals() trace.CommCount {
	s, n := &c.stats, c.ep.Inside().Counts(c.context)
	return trace.CommCount{
		Name: c.name, Context: c.context, Ranks: c.size,
		SentMessages: s.SentMessages, SentBytes: s.SentBytes,
		ReceivedMessages: s.ReceivedMessages, ReceivedBytes: s.ReceivedBytes,
		Eager: n.Eager, Rendezvous: n.Rendezvous, Near: n.Near,
	}
}
