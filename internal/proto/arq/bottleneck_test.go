package arq

import (
	"math/rand/v2"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// bottleneck is a small deterministic network in virtual time: hosts that each
// send to one receiver through one queue.
//
//	sender -- own wire --\
//	sender -- own wire ---> queue -- wire --> receivers
//	sender -- own wire --/
//
// Acknowledgements go back without waiting.
type bottleneck struct {
	rate    int64         // bits per second of the wire behind the queue
	buffer  int64         // bytes that may wait there, the datagram on the wire included
	jitter  mono.Duration // most that a host is late with a datagram
	loss    float64
	ackLoss float64
	late    float64       // probability that a datagram takes another path,
	lateBy  mono.Duration // which is that much longer
	cut     [2]mono.Time  // nothing gets through between these times, either way

	now    mono.Time
	free   mono.Time // when the wire behind the queue has sent what waits
	events eventHeap
	order  uint64
	rng    *rand.Rand
	flows  []*flow

	dropped, queueMax int64
	queueSum          float64 // of what a datagram found in the queue
	arrived           int64
}

// flow is one sender and its receiver.
type flow struct {
	net   *bottleneck
	rate  int64         // bits per second of its own wire
	delay mono.Duration // one way, without queueing and sending
	size  uint32        // payload bytes of a unit
	start mono.Time
	stop  mono.Time // sends nothing new from then on
	burst int       // most units that it has to send; 0 = no end
	noAsk bool      // does not ask for acknowledgements

	dropFrom, dropTo serial.U32 // units whose first sending gets lost

	snd      Sender
	rcv      Receiver
	sndSh    *Shared
	rcvSh    *Shared
	wire     mono.Time // when its own wire is free
	there    mono.Time // when its last datagram comes to the queue
	sndAlarm mono.Time // of the earliest timer event
	rcvAlarm mono.Time
	sndAway  mono.Time // the host of the sender has lost its core until then
	rcvAway  mono.Time
	pushed   int
	acked    int64 // units acknowledged
	received int64 // bytes of payload placed
	resent   int64
}

const (
	wireOverheadTest = 42 + 36 + 24 // headers of Ethernet, IP and UDP; of RD; FCS, gap and preamble
	txRing           = 32           // datagrams that wait for the own wire
)

type netEvent struct {
	at    mono.Time
	order uint64
	flow  *flow
	kind  eventKind
	lsn   serial.U32
	soon  bool
	ack   *ackMsg
}

type eventKind uint8

const (
	eventData eventKind = iota
	eventQueue
	eventAck
	eventSndTimer
	eventRcvTimer
)

type ackMsg struct {
	next  serial.U32
	held  uint16
	words int
	sack  [MaxSackWords]uint64
}

// eventHeap is a binary heap by time, then by order of making.
type eventHeap []netEvent

func (h eventHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

func (h *eventHeap) push(e netEvent) {
	*h = append(*h, e)
	for i := len(*h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		(*h)[i], (*h)[(i-1)/2] = (*h)[(i-1)/2], (*h)[i]
	}
}

func (h *eventHeap) pop() netEvent {
	old := *h
	top, n := old[0], len(old)-1
	old[0] = old[n]
	*h = old[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			return top
		}
		if c+1 < n && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			return top
		}
		(*h)[i], (*h)[c] = (*h)[c], (*h)[i]
		i = c
	}
}

func newBottleneck(rate, buffer int64) *bottleneck {
	n := &bottleneck{rate: rate, buffer: buffer, jitter: 5 * mono.Microsecond}
	n.seed(1)
	return n
}

func (n *bottleneck) seed(s uint64) { n.rng = rand.New(rand.NewPCG(s, 2)) }

// add makes a flow that begins to send at start.
func (n *bottleneck) add(c Config, segment int, start mono.Time) *flow {
	f := &flow{
		net: n, start: start, rate: n.rate, delay: 5 * mono.Microsecond, size: uint32(segment - 36 - unitOverhead), stop: mono.Never,
		sndSh: NewShared(c, 1000), rcvSh: NewShared(c, 1000), sndAlarm: mono.Never, rcvAlarm: mono.Never,
	}
	first := serial.U32(n.rng.Uint32())
	f.snd.Init(f.sndSh, first)
	f.snd.SetSegment(segment - 36)
	f.rcv.Init(f.rcvSh, first)
	n.flows = append(n.flows, f)
	f.alarmSnd(start)
	return f
}

func (n *bottleneck) post(e netEvent) {
	e.order = n.order
	n.order++
	n.events.push(e)
}

// run lets the time pass until end.
func (n *bottleneck) run(end mono.Time) {
	for len(n.events) > 0 && n.events[0].at <= end {
		n.step()
	}
	n.now = end
}

// step lets the next event happen.
func (n *bottleneck) step() {
	e := n.events.pop()
	n.now = e.at
	f := e.flow
	switch e.kind {
	case eventQueue:
		n.enqueue(&e)
	case eventData:
		f.onData(&e)
	case eventAck:
		f.onAck(&e)
	case eventSndTimer:
		f.onSndTimer(&e)
	case eventRcvTimer:
		f.onRcvTimer(&e)
	}
}

func serializeTime(bytes, rate int64) mono.Duration { return mono.Duration(bytes * 8e9 / rate) }

// wireBytes is what a unit of the flow takes on a wire.
func (f *flow) wireBytes() int64 { return int64(f.size) + unitOverhead + wireOverheadTest }

func (n *bottleneck) isCut() bool { return n.now >= n.cut[0] && n.now < n.cut[1] }

// enqueue lets a datagram into the queue, or drops it.
func (n *bottleneck) enqueue(e *netEvent) {
	if f := e.flow; e.lsn.In(f.dropFrom, uint32(f.dropTo-f.dropFrom)) && f.resent == 0 {
		return
	}
	bytes := e.flow.wireBytes()
	waiting := int64(0)
	if n.free > n.now {
		waiting = int64(n.free-n.now) * n.rate / 8e9
	}
	if waiting+bytes > n.buffer {
		n.dropped++
		return
	}
	n.queueMax = max(n.queueMax, waiting+bytes)
	n.queueSum += float64(waiting)
	n.arrived++
	n.free = max(n.free, n.now).Add(serializeTime(bytes, n.rate))
	if n.isCut() || n.loss > 0 && n.rng.Float64() < n.loss {
		return
	}
	at := n.free.Add(e.flow.delay / 2)
	if n.late > 0 && n.rng.Float64() < n.late {
		at = at.Add(n.lateBy)
	}
	n.post(netEvent{at: at, flow: e.flow, kind: eventData, lsn: e.lsn, soon: e.soon})
}

// send puts a datagram on the flow's own wire.
func (f *flow) send(lsn serial.U32, soon bool) {
	f.wire = max(f.wire, f.net.now).Add(serializeTime(f.wireBytes(), f.rate))
	f.there = max(f.there, f.wire.Add(f.delay/2+mono.Duration(f.net.rng.Int64N(int64(f.net.jitter)+1))))
	f.net.post(netEvent{at: f.there, flow: f, kind: eventQueue, lsn: lsn, soon: soon})
}

// transmit sends what may be sent.
func (f *flow) transmit() {
	now := f.net.now
	room := serializeTime(txRing*f.wireBytes(), f.rate)
	for {
		if f.wire.Sub(now) >= room {
			f.alarmSnd(f.wire.Add(-room / 2))
			break
		}
		if lsn, ok := f.snd.NextLost(); ok {
			f.snd.Resent(now, lsn)
			f.resent++
			f.send(lsn, true)
			continue
		}
		if now >= f.stop || f.burst > 0 && f.pushed == f.burst || !f.snd.CanPush(int(f.size)+unitOverhead-lengthLen) {
			break
		}
		f.pushed++
		lsn := f.snd.Push(now, 0, 0, f.size, true)
		f.send(lsn, !f.noAsk && f.snd.AckSoon())
	}
	f.alarmSnd(f.snd.Deadline())
}

func (f *flow) alarmSnd(at mono.Time) {
	if at = max(at, f.net.now, f.start); at < f.sndAlarm {
		f.sndAlarm = at
		f.net.post(netEvent{at: at, flow: f, kind: eventSndTimer})
	}
}

func (f *flow) alarmRcv(at mono.Time) {
	if at = max(at, f.net.now); at < f.rcvAlarm {
		f.rcvAlarm = at
		f.net.post(netEvent{at: at, flow: f, kind: eventRcvTimer})
	}
}

// away postpones an event to the time when its host has its core again.
func (n *bottleneck) away(e netEvent, until mono.Time) bool {
	if n.now >= until {
		return false
	}
	e.at = until
	n.post(e)
	return true
}

func (f *flow) onSndTimer(e *netEvent) {
	if e.at != f.sndAlarm {
		return // an earlier one took its place
	}
	if f.net.now < f.sndAway {
		f.sndAlarm = mono.Never
		f.alarmSnd(f.sndAway)
		return
	}
	f.sndAlarm = mono.Never
	f.snd.OnTimer(f.net.now)
	f.transmit()
}

func (f *flow) onData(e *netEvent) {
	if f.net.away(*e, f.rcvAway) {
		return
	}
	f.rcv.Arrived(f.net.now)
	fresh := f.rcv.Fresh(e.lsn)
	if fresh {
		f.rcv.Mark(e.lsn)
		f.received += int64(f.size)
	}
	f.rcv.AckDue(f.net.now, !fresh || !f.rcv.InOrder(), e.soon)
	f.alarmRcv(f.rcv.Deadline())
}

func (f *flow) onRcvTimer(e *netEvent) {
	if e.at != f.rcvAlarm {
		return
	}
	if f.net.now < f.rcvAway {
		f.rcvAlarm = mono.Never
		f.alarmRcv(f.rcvAway)
		return
	}
	f.rcvAlarm = mono.Never
	now := f.net.now
	if f.rcv.Deadline() > now {
		if f.rcv.Deadline() != mono.Never {
			f.alarmRcv(f.rcv.Deadline())
		}
		return
	}
	a := &ackMsg{next: f.rcv.Next(), held: HeldOf(f.rcv.Held(now)), words: f.rcv.SackWords()}
	for w := range a.words {
		a.sack[w] = f.rcv.Sack(w)
	}
	f.rcv.Acked(true)
	if f.net.isCut() || f.net.ackLoss > 0 && f.net.rng.Float64() < f.net.ackLoss {
		return
	}
	f.net.post(netEvent{at: now.Add(f.delay + mono.Microsecond), flow: f, kind: eventAck, ack: a})
}

func (f *flow) onAck(e *netEvent) {
	if f.net.away(*e, f.sndAway) {
		return
	}
	now, a := f.net.now, e.ack
	if from, ok := f.snd.OnAck(now, a.next, uint16(f.rcvSh.Config().Window), HeldFor(a.held)); ok {
		f.acked += int64(a.next - from)
		for w := range a.words {
			f.snd.OnSack(now, a.next.Add(int32(1+64*w)), a.sack[w])
		}
		f.snd.Detect(now)
	}
	f.transmit()
}

// jain is the fairness index of Jain, Chiu and Hawe: 1 when all are equal, 1/n
// when one has everything.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}
