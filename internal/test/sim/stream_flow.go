package sim

import (
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// flow is one direction of a connection: a queue of bytes with marks in it.
//
//	read <= arrived <= launched <= taken
//	acked <= arrived
type flow struct {
	from, to *Stream
	buf      queue[byte] // from offset read on
	taken    int64       // by Send
	launched int64       // are on the wire
	arrived  int64
	acked    int64 // the sender knows that they have arrived
	read     int64 // by Recv
	edge     int64 // the sender may launch up to here
	offered  int64 // the edge that was told last

	fin     bool // the user has ended the flow behind taken
	stopped bool // nothing is launched any more
	hole    bool // what is taken vanishes
	over    bool // the end has arrived

	ends   queue[int64] // of the segments that have arrived, when Recv must see them
	flying queue[segment]
	acks   queue[ack]
	faults []StreamFault // to come
	last   mono.Time     // when the last segment arrives
	heard  mono.Time     // when there was an answer last
	armed  bool          // the timer for ETIMEDOUT runs
}

// segment is something on its way: the bytes up to offset end, or what happens
// behind them.
type segment struct {
	at    mono.Time
	end   int64
	kind  segmentKind
	fault StreamFault
}

type segmentKind uint8

const (
	segmentData segmentKind = iota
	segmentFIN
	segmentRST
	segmentFault
)

// ack is what the receiver tells the sender.
type ack struct {
	at            mono.Time
	arrived, edge int64
}

func newFlow(from, to *Stream) *flow {
	window := int64(to.streams.config.RecvBuffer)
	f := &flow{from: from, to: to, edge: window, offered: window}
	for _, fault := range from.streams.config.Faults {
		if fault.Conn == from.number {
			f.faults = append(f.faults, fault)
		}
	}
	return f
}

func (f *flow) world() *World { return f.from.world() }

// held returns how many bytes the sender keeps.
func (f *flow) held() int { return int(f.taken - f.acked) }

// launch puts on the wire what may go.
func (f *flow) launch() {
	if f.from.state == fabric.StreamFailed {
		return
	}
	for !f.stopped {
		if len(f.faults) > 0 && f.faults[0].Offset == f.launched {
			f.strike()
			continue
		}
		n := min(f.taken, f.edge) - f.launched
		if n <= 0 {
			break
		}
		f.launched += int64(f.size(int(n)))
		f.fly(segment{end: f.launched})
	}
	if f.hole {
		f.vanish()
	}
	if f.fin && !f.stopped && f.launched == f.taken {
		f.stopped = true
		f.fly(segment{end: f.launched, kind: segmentFIN})
	}
	f.arm()
}

// size returns how many of n bytes the next segment has.
func (f *flow) size(n int) int {
	c, size := &f.from.streams.config, 0
	if c.Segment != nil {
		size = c.Segment(f.from.number, f.launched, n)
	} else {
		size = c.MSS
	}
	if len(f.faults) > 0 {
		n = int(min(int64(n), f.faults[0].Offset-f.launched))
	}
	return max(1, min(n, size))
}

// strike sends off the mark of a fault.
func (f *flow) strike() {
	fault := f.faults[0]
	f.faults = f.faults[1:]
	f.fly(segment{end: f.launched, kind: segmentFault, fault: fault})
	f.stopped = fault.Kind != StreamSilence
	f.hole = fault.Kind == StreamFIN
}

// vanish forgets what the sender sends into nowhere.
func (f *flow) vanish() {
	f.buf.keep(int(f.launched - f.read))
	if f.taken > f.launched {
		f.taken = f.launched
		f.writable()
	}
}

// headers are what a segment takes on the wire beyond its bytes: Ethernet,
// IPv4, and TCP with time stamps.
const headers = ethHeader + 20 + 32

// faultGap is how long after the bytes before it a fault strikes: so long that
// their receiver takes them. A stream that has failed has none.
const faultGap = 50 * mono.Microsecond

// fly puts a segment on the wire, behind those that are there.
func (f *flow) fly(s segment) {
	w, streams := f.world(), f.from.streams
	bytes := 0
	if s.kind == segmentData {
		bytes = int(s.end - f.end())
	}
	up := &streams.node.Up
	streams.wire = max(streams.wire, w.present()).Add(up.serialize(bytes + headers))
	gap := max(streams.config.Gap, 1)
	if s.kind == segmentFault {
		gap = max(gap, faultGap)
	}
	s.at = max(streams.wire.Add(up.Delay+f.to.streams.node.Down.Delay), f.last.Add(gap))
	f.last = s.at
	f.flying.push(s)
	w.push(s.at, (*arrival)(f))
}

// end returns the offset behind what is on the wire.
func (f *flow) end() int64 {
	if s := f.lastFlying(); s != nil {
		return s.end
	}
	return f.arrived
}

// lastFlying returns what was put on the wire last and has not arrived.
func (f *flow) lastFlying() *segment {
	if all := f.flying.all(); len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// arrival is the event that a segment is there.
type arrival flow

func (a *arrival) fire(w *World) {
	f := (*flow)(a)
	if until := max(w.blocked(f.from.streams.node, f.to.streams.node), f.from.pair.silent); until > w.now {
		if until != mono.Never {
			w.push(until, a)
		}
		return
	}
	for len(f.flying.all()) > 0 && f.flying.all()[0].at <= w.now {
		s := f.flying.all()[0]
		f.flying.drop(1)
		if f.arrive(w, &s); f.from.pair.silent > w.now {
			return // those behind it have their own events
		}
	}
}

// arrive handles one segment.
func (f *flow) arrive(w *World, s *segment) {
	node, number := f.to.streams.node.id, f.from.pair.number
	switch s.kind {
	case segmentData:
		b := f.buf.all()[f.arrived-f.read : s.end-f.read]
		w.note(traceSegment, number, node, b)
		if !f.to.alive() {
			f.refuse()
			return
		}
		f.arrived = s.end
		if f.from.streams.config.Segment != nil {
			f.ends.push(s.end)
		}
		f.answer()
		f.to.tell()
	case segmentFIN:
		w.note(traceFIN, number, node, nil)
		f.over = true
		if f.to.alive() {
			f.to.tell()
		}
	case segmentRST:
		w.note(traceReset, number, node, nil)
		f.to.fail(syscall.ECONNRESET)
	case segmentFault:
		w.note(traceFault, number, node, nil)
		f.strikes(w, s.fault)
	}
}

// strikes lets a fault happen.
func (f *flow) strikes(w *World, fault StreamFault) {
	switch p := f.from.pair; fault.Kind {
	case StreamReset:
		p.mute = true
		f.from.fail(syscall.ECONNRESET)
		f.to.fail(syscall.ECONNRESET)
	case StreamResetSender:
		p.mute = true
		f.from.fail(syscall.ECONNRESET)
	case StreamResetReceiver:
		p.mute = true
		f.to.fail(syscall.ECONNRESET)
	case StreamFIN:
		f.over = true
		f.to.tell()
	case StreamSilence:
		p.silent = mono.Never
		if fault.Heal > 0 {
			p.silent = w.now.Add(fault.Heal)
		}
	}
}

// refuse answers bytes for an end that is gone.
func (f *flow) refuse() {
	if !f.from.pair.mute {
		f.to.out.reset()
	}
}

// reset ends the flow with a RST behind what is on the wire.
func (f *flow) reset() {
	if s := f.lastFlying(); s != nil && s.kind == segmentRST {
		return
	}
	f.stopped, f.hole, f.faults = true, true, nil
	f.vanish()
	if !f.from.pair.mute {
		f.fly(segment{end: f.launched, kind: segmentRST})
	}
}

// answer tells the sender what has arrived and how far it may go.
func (f *flow) answer() {
	w := f.world()
	f.offered = max(f.offered, f.read+int64(f.to.streams.config.RecvBuffer))
	at := w.present().Add(f.to.streams.node.Up.Delay + f.from.streams.node.Down.Delay)
	f.acks.push(ack{at: at, arrived: f.arrived, edge: f.offered})
	w.push(at, (*answered)(f))
}

// answered is the event that an answer is there.
type answered flow

func (e *answered) fire(w *World) {
	f := (*flow)(e)
	if until := max(w.blocked(f.to.streams.node, f.from.streams.node), f.from.pair.silent); until > w.now {
		if until != mono.Never {
			w.push(until, e)
		}
		return
	}
	for len(f.acks.all()) > 0 && f.acks.all()[0].at <= w.now {
		a := f.acks.all()[0]
		f.acks.drop(1)
		f.acked, f.edge = max(f.acked, a.arrived), max(f.edge, a.edge)
		f.heard = w.now
	}
	if f.from.state != fabric.StreamFailed {
		f.writable()
		f.launch()
	}
}

// writable tells the sender that Send takes more, if it wanted to.
func (f *flow) writable() {
	if f.from.wantSpace && f.from.alive() && f.held() < f.from.streams.config.SendBuffer {
		f.from.wantSpace = false
		f.from.tell()
	}
}

// recv takes bytes out of the flow.
func (f *flow) recv(dst []byte) int {
	end := f.arrived
	ends := f.ends.all()
	if len(ends) > 0 {
		end = ends[0]
	}
	n := copy(dst, f.buf.all()[:end-f.read])
	f.buf.drop(n)
	f.read += int64(n)
	if len(ends) > 0 && f.read == ends[0] {
		f.ends.drop(1)
	}
	// A window that opens by a little is not worth an answer (RFC 9293,
	// section 3.8.6.2.2).
	window := int64(f.to.streams.config.RecvBuffer)
	if f.read+window-f.offered >= min(max(window/2, 1), int64(f.to.streams.config.MSS)) {
		f.answer()
	}
	return n
}

// arm starts the timer of bytes that get no answer.
func (f *flow) arm() {
	if f.armed || !f.waits() {
		return
	}
	f.armed = true
	f.heard = f.world().present()
	f.world().push(f.heard.Add(f.from.streams.config.Timeout), (*deadline)(f))
}

// waits reports whether the sender must hear something. A window that is
// closed is not silence.
func (f *flow) waits() bool {
	return !f.hole && (f.acked < f.launched || f.stopped && f.acked < f.taken) && f.from.state == fabric.StreamOpen
}

// deadline is the event that it may have an end.
type deadline flow

func (p *deadline) fire(w *World) {
	f := (*flow)(p)
	f.armed = false
	switch end := f.heard.Add(f.from.streams.config.Timeout); {
	case !f.waits():
	case end <= w.now:
		f.from.fail(syscall.ETIMEDOUT)
	default:
		f.armed = true
		w.push(end, p)
	}
}
