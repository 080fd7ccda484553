package reliable

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
)

// channel joins protocols without verbs and without a network: it loses,
// doubles and delays what they send, and plays the part of the queue pairs,
// which place each numbered chunk once.
type channel struct {
	t      testing.TB
	rng    *rand.Rand
	now    mono.Time
	before mono.Time // now of the step before: what the engine's clock says between steps
	flying flight
	nodes  []*node
	faults faults
	sent   int
	there  int       // of them, by the second path
	ended  mono.Time // when the last request completed
}

// faults are what a channel does to datagrams.
type faults struct {
	loss, double float64
	delay        mono.Duration // 5 us, and up to so much more
	cut          [2]mono.Time  // nothing gets through between these
	rate         int64         // bytes a second into each node; 0: no limit
	room         int           // bytes that may wait there

	second bool          // there is a second path
	wall   [2]mono.Time  // nothing gets through there between these
	eats   float64       // that it loses, Hellos apart
	later  mono.Duration // than by the first path
}

// node is one endpoint of a channel.
type node struct {
	protocol
	id     int
	ch     *channel
	peers  []*Peer // by node
	memory []byte  // that the others write to
	ended  []map[serial.U32]bool
	spares []int32
	pk     packet
	busy   mono.Time // until when its wire delivers what waits

	script   []*script // to each node
	received []int     // messages of each node
	most     int       // work requests that are posted at a time
	posted   int
	log      func(from int, b []byte)
}

// script is what one node sends to another.
type script struct {
	ops  []op
	next int // to be posted
	done int // completed
	ok   int // of them with success
}

// op is a message, or a Write if to is set.
type op struct {
	data   []byte // what arrives
	source []byte // what the work request names; spoiled once it is complete
	to     int    // offset in the target's memory; -1: a message
	inline bool
}

// datagram is what flies.
type datagram struct {
	at       mono.Time
	seq      int
	from, to int
	bytes    []byte
	chunk    bool
	second   bool // goes by the second path
	psn      serial.U32
	addr     uint64
}

type flight []*datagram

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].seq < f[j].seq
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(*datagram)) }
func (f *flight) Pop() any {
	old := *f
	d := old[len(old)-1]
	*f = old[:len(old)-1]
	return d
}

const (
	testPart  = 200 // bytes of a message in a datagram
	testChunk = 208
	testMost  = 2000
)

func newChannel(t testing.TB, n int, seed uint64, slots int, c arq.Config) *channel {
	ch := &channel{t: t, rng: rand.New(rand.NewPCG(seed, 7))}
	for id := range n {
		x := &node{id: id, ch: ch, received: make([]int, n), most: 64}
		x.stride, x.part, x.chunk, x.room = 256, testPart, testChunk, testChunk
		x.protocol.init(&Config{MaxMessage: testMost, MaxSendWR: 64, ARQ: c}, slots, 0)
		x.rx = make([]byte, slots*x.stride)
		for i := range int32(slots) {
			x.spares = append(x.spares, i)
		}
		for range n {
			x.peers = append(x.peers, &Peer{qpn: uint32(len(x.peers))})
			x.ended = append(x.ended, map[serial.U32]bool{})
			x.script = append(x.script, &script{})
		}
		ch.nodes = append(ch.nodes, x)
	}
	return ch
}

// transmit puts a packet of a node on its way.
func (x *node) transmit(pk *packet) {
	d := &datagram{from: x.id, to: int(pk.peer.qpn), chunk: pk.chunk, psn: pk.psn, second: pk.choice == arq.SecondPath}
	if !pk.chunk {
		d.bytes = append(d.bytes, pk.hdr[:pk.len]...)
	}
	if r := pk.req; r != nil {
		d.addr = r.raddr + uint64(pk.off)
		from := r.inline[:]
		if r.flags&verbs.Inline == 0 {
			from = x.sourceOf(r)
		}
		d.bytes = append(d.bytes, from[pk.off:pk.off+pk.n]...)
	} else {
		d.bytes = append(d.bytes, make([]byte, pk.n)...)
	}
	x.ch.fly(d)
}

// sourceOf finds the memory that a request names: LKey is the target, Addr the
// number of the op.
func (x *node) sourceOf(r *request) []byte {
	return x.script[r.sge.LKey].ops[r.sge.Addr].source
}

// fly decides what becomes of a datagram.
func (ch *channel) fly(d *datagram) {
	f := &ch.faults
	copies := 1
	switch u := ch.rng.Float64(); {
	case ch.now >= f.cut[0] && ch.now < f.cut[1], u < f.loss:
		copies = 0
	case u < f.loss+f.double:
		copies = 2
	}
	if d.second {
		ch.there++
		hello := !d.chunk && kind(d.bytes[0]) == kindHello
		if ch.now >= f.wall[0] && ch.now < f.wall[1] || !hello && ch.rng.Float64() < f.eats {
			copies = 0
		}
	}
	for range copies {
		e := *d
		e.at = ch.now.Add(5 * mono.Microsecond)
		if d.second {
			e.at = e.at.Add(f.later)
		}
		if f.delay > 0 {
			e.at = e.at.Add(mono.Duration(ch.rng.Int64N(int64(f.delay))))
		}
		if f.rate > 0 {
			x := ch.nodes[d.to]
			x.busy = max(x.busy, ch.now)
			if int64(x.busy.Sub(ch.now))*f.rate/1e9 > int64(f.room) {
				continue // the queue is full
			}
			x.busy = x.busy.Add(mono.Duration(int64(len(d.bytes)+60) * 1e9 / f.rate))
			e.at = max(e.at, x.busy.Add(5*mono.Microsecond))
		}
		ch.sent++
		e.seq = ch.sent
		heap.Push(&ch.flying, &e)
	}
}

// land gives a datagram to its target.
func (ch *channel) land(d *datagram) {
	x := ch.nodes[d.to]
	peer := x.peers[d.from]
	if d.chunk {
		if x.ended[d.from][d.psn] {
			return // placed before: the queue pair drops it, and nobody hears of it
		}
		x.ended[d.from][d.psn] = true
		copy(x.memory[d.addr:], d.bytes)
		x.placed(ch.now, peer, d.psn)
		return
	}
	n := len(x.spares)
	if n == 0 {
		return // no receive is posted
	}
	slot := x.spares[n-1]
	x.spares, x.spare = x.spares[:n-1], x.spare-1
	copy(x.slot(slot, len(d.bytes)), d.bytes)
	x.arrived(ch.now, peer, slot, len(d.bytes))
	x.giveBack()
}

func (x *node) giveBack() {
	x.spares = append(x.spares, x.free...)
	x.spare = len(x.spares)
	x.free = x.free[:0]
}

// use posts what the scripts say, in random order, and handles completions.
func (x *node) use() {
	for x.done.len() > 0 {
		var wcs [1]verbs.WC
		x.done.read(wcs[:])
		x.completed(&wcs[0])
		x.giveBack()
	}
	for tries := 0; x.posted < x.most && tries < 8; tries++ {
		to := x.ch.rng.IntN(len(x.script))
		if s := x.script[to]; s.next < len(s.ops) && !x.post(x.ch.now, x.peers[to], x.wrOf(to, s), false) {
			return
		} else if s.next < len(s.ops) {
			s.next++
			x.posted++
			for x.nextPacket(x.ch.before, x.peers[to], &x.pk) {
				x.transmit(&x.pk)
			}
		}
	}
}

func (x *node) wrOf(to int, s *script) *verbs.SendWR {
	o := &s.ops[s.next]
	wr := &verbs.SendWR{WRID: uint64(to)<<32 | uint64(s.next), Opcode: verbs.OpSend, Flags: verbs.Signaled}
	if o.to >= 0 {
		wr.Opcode, wr.RemoteAddr, wr.RKey = verbs.OpRDMAWrite, uint64(o.to), 1
	}
	if o.inline {
		wr.Flags |= verbs.Inline
		wr.InlineData = o.source
	} else {
		wr.NumSGE = 1
		wr.SGL[0] = verbs.SGE{Addr: uint64(s.next), Length: uint32(len(o.source)), LKey: uint32(to)}
	}
	return wr
}

func (x *node) completed(wc *verbs.WC) {
	t := x.ch.t
	if wc.Opcode == verbs.OpRecv {
		from := int(wc.SrcQP)
		x.log(from, x.message(wc))
		x.received[from]++
		if wc.WRID >= partBase {
			x.parts.give(int32(wc.WRID - partBase))
		} else {
			x.free = append(x.free, int32(wc.WRID))
		}
		return
	}
	to, i := int(wc.WRID>>32), int(uint32(wc.WRID))
	s := x.script[to]
	if i != s.done {
		t.Fatalf("node %d: request %d to %d completes, but %d is the oldest", x.id, i, to, s.done)
	}
	if s.done++; wc.Status == verbs.Success {
		s.ok++
	}
	clear(s.ops[i].source) // it is the user's again
	x.posted--
	x.ch.ended = x.ch.now
}

// step moves the time to what comes next. false means that nothing will.
func (ch *channel) step() bool {
	at, busy := mono.Never, len(ch.flying) > 0
	if busy {
		at = ch.flying[0].at
	}
	for _, x := range ch.nodes {
		if at = min(at, x.assocs.Deadline()); x.more() {
			at = 0
		}
		if x.working() {
			busy = true
		}
	}
	if !busy {
		return false
	}
	ch.now = max(ch.now, at)
	for _, x := range ch.nodes {
		x.assocs.Date(ch.now)
	}
	for len(ch.flying) > 0 && ch.flying[0].at <= ch.now {
		ch.land(heap.Pop(&ch.flying).(*datagram))
	}
	for _, x := range ch.nodes {
		if x.assocs.TimersDue(ch.now) {
			x.timers(ch.now)
			x.giveBack()
		}
		x.use()
		for x.next(ch.now, &x.pk) {
			x.transmit(&x.pk)
		}
	}
	ch.before = ch.now
	return true
}

// working reports whether a node has something to do beside keeping connections alive.
func (x *node) working() bool {
	return x.more() || x.assocs.Deadline() == 0 || slices.ContainsFunc(x.conns, func(c *conn) bool {
		return c != nil && (c.cur != none || c.Snd.InFlight() > 0 || c.Rcv.Deadline() != mono.Never)
	})
}

// more reports whether a node has something to post, and room.
func (x *node) more() bool {
	if x.posted >= x.most || len(x.requests.free) == 0 {
		return false
	}
	for _, s := range x.script {
		if s.next < len(s.ops) {
			return true
		}
	}
	return false
}

// two gives the nodes a second path, for Writes of 500 bytes and more.
func (ch *channel) two() {
	for _, x := range ch.nodes {
		x.second, x.long, x.hello = true, 500, testPart
	}
}

// write fills the script of a node with messages and Writes to another one, each
// of them to a place of its own.
func (ch *channel) write(from, to, ops int) {
	x, y := ch.nodes[from], ch.nodes[to]
	for i := range ops {
		n := ch.rng.IntN(64)
		switch ch.rng.IntN(4) {
		case 0:
			n = ch.rng.IntN(testMost)
		case 1:
			n = ch.rng.IntN(testPart + 2)
		}
		o := op{to: -1, inline: n <= MaxInline && ch.rng.IntN(2) == 0}
		if ch.rng.IntN(3) == 0 {
			o.to = len(y.memory)
			y.memory = append(y.memory, make([]byte, n)...)
		}
		o.data = make([]byte, n)
		for k := range o.data {
			o.data[k] = byte(ch.rng.Uint32()) | 1 // never what clear leaves
		}
		if n >= 8 {
			binary.BigEndian.PutUint32(o.data, uint32(i))
		}
		o.source = bytes.Clone(o.data)
		x.script[to].ops = append(x.script[to].ops, o)
	}
	y.log = y.check
}

// check holds a message to the script: it is the next one, and all Writes before
// it are done.
func (x *node) check(from int, b []byte) {
	t := x.ch.t
	s := x.ch.nodes[from].script[x.id]
	seen := 0
	for i := range s.ops {
		o := &s.ops[i]
		if o.to >= 0 {
			if !bytes.Equal(x.memory[o.to:o.to+len(o.data)], o.data) {
				t.Fatalf("node %d: message %d of %d is there before the Write %d that precedes it", x.id, x.received[from], from, i)
			}
			continue
		}
		if seen == x.received[from] {
			if !bytes.Equal(b, o.data) {
				t.Fatalf("node %d: message %d of %d has %d bytes, not those %d that were sent", x.id, seen, from, len(b), len(o.data))
			}
			return
		}
		seen++
	}
	t.Fatalf("node %d: more messages of %d than it has sent", x.id, from)
}

// finish runs until nothing is left to do, and checks that nothing is left.
func (ch *channel) finish() {
	t := ch.t
	t.Helper()
	for steps := 0; ch.step(); steps++ {
		if steps > 5_000_000 {
			t.Fatal("it does not come to an end")
		}
	}
	for _, x := range ch.nodes {
		for to, s := range x.script {
			if s.ok != len(s.ops) {
				t.Fatalf("node %d: %d of %d requests to %d complete", x.id, s.ok, len(s.ops), to)
			}
			messages := 0
			for i := range s.ops {
				o := &s.ops[i]
				if o.to < 0 {
					messages++
				} else if !bytes.Equal(ch.nodes[to].memory[o.to:o.to+len(o.data)], o.data) {
					t.Fatalf("node %d: Write %d to %d did not arrive", x.id, i, to)
				}
			}
			if got := ch.nodes[to].received[x.id]; got != messages {
				t.Fatalf("node %d: %d of %d messages have arrived at %d", x.id, got, messages, to)
			}
		}
		x.checkIdle()
	}
}

// checkIdle checks that a node which has nothing to do holds no memory for it.
func (x *node) checkIdle() {
	t := x.ch.t
	t.Helper()
	if slots := len(x.rx) / x.stride; x.spare != slots || len(x.requests.free) != len(x.requests.all) || x.assocs.Waiting() != 0 {
		t.Fatalf("node %d, idle: %d of %d receive buffers, %d of %d requests free, %d peers in line", x.id, x.spare, slots, len(x.requests.free), len(x.requests.all), x.assocs.Waiting())
	}
	if len(x.parts.idle) != len(x.parts.all) {
		t.Fatalf("node %d, idle: %d of %d buffers of messages free", x.id, len(x.parts.idle), len(x.parts.all))
	}
	for _, p := range x.peers {
		if c := p.conn; c != nil && (c.held != nil || c.head != none || c.cur != none) {
			t.Fatalf("node %d, idle: %+v", x.id, c)
		}
	}
}
