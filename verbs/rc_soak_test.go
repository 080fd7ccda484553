package verbs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// soakEnd is one of two ends that are joined by a pipe which takes and gives as
// little as it likes, and what it knows of what the other end must see.
type soakEnd struct {
	*cmRig
	rng      *rand.Rand
	peer     *soakEnd
	s        *scriptedStream
	moved    int // bytes of s.sent that the peer has
	lent     int // bytes that Send may take before any has moved
	id       *CMID
	q        *QP
	scq, rcq *CQ
	srq      *SRQ

	src, dst, sink, in []byte // read by anyone; written by the peer; of Reads; of receives
	msrc, mdst, msink  *MR
	min                *MR
	want               []byte // what dst must be in the end
	added              uint64

	sends   []soakWR // posted and not complete
	recvs   []uint64 // likewise
	coming  []soakMsg
	wrid    uint64 // of the next request
	rwrid   uint64 // of the next receive
	ended   bool   // by force: what comes is flushed, or nothing
	silent  bool   // reset: completions may be missing
	flushed bool   // a completion was no success
	told    int    // CM events that tell the end
}

type soakWR struct {
	wrid     uint64
	op       Opcode
	from, to int // offsets of a Read: in the peer's src, in sink
	n        int
	signaled bool
}

// soakMsg is a message that the peer has posted.
type soakMsg struct {
	from, n int // in the peer's src
	imm     bool
	inv     *MR
	se      bool
}

const (
	soakMem   = 64 << 10
	soakMsgs  = 24 // receives that are posted, and slots of sink and in
	soakMax   = 9000
	soakCount = 256 // atomics have the end of dst
)

// soakLens are lengths where something may change: of one segment, of one
// FPDU, and of what is copied.
var soakLens = []int{0, 0, 1, 3, 4, 8, 100, copyMax, copyMax + 1, 1423, 1424, 1425, 1427, 1428, 1429, 2 * 1424, 2 * 1428, 4000, 5 * 1424, soakMax}

func newSoakEnd(t *testing.T, rng *rand.Rand) *soakEnd {
	e := &soakEnd{cmRig: newCMRig(t), rng: rng}
	e.src, e.dst = make([]byte, soakMem), make([]byte, soakMem)
	e.sink, e.in = make([]byte, soakMsgs*soakMax), make([]byte, soakMsgs*soakMax)
	for i := range e.src {
		e.src[i] = byte(rng.Uint32())
	}
	e.want = bytes.Clone(e.dst)
	reg := func(b []byte, a Access) *MR {
		m, err := e.pd.RegMR(b, a)
		ok(t, err)
		return m
	}
	e.msrc, e.mdst = reg(e.src, RemoteRead), reg(e.dst, LocalWrite|RemoteWrite|RemoteAtomic)
	e.msink, e.min = reg(e.sink, LocalWrite), reg(e.in, LocalWrite)
	var err error
	e.scq, err = e.ctx.CreateCQ(CQInit{})
	ok(t, err)
	e.rcq, err = e.ctx.CreateCQ(CQInit{})
	ok(t, err)
	init := QPInit{Type: RC, SendCQ: e.scq, RecvCQ: e.rcq, Cap: QPCap{MaxSendWR: []int{1, 3, 8, 33, 512}[rng.IntN(5)]}, SegmentMin: []int{0, 0, 4000}[rng.IntN(3)]}
	if rng.IntN(4) == 0 {
		e.srq, err = e.pd.CreateSRQ(SRQInit{})
		ok(t, err)
		init.SRQ = e.srq
	}
	e.q, err = e.pd.CreateQP(init)
	ok(t, err)
	return e
}

// soakPair connects two ends.
func soakPair(t *testing.T, seed uint64) (a, b *soakEnd) {
	rng := rand.New(rand.NewPCG(seed, 1))
	a, b = newSoakEnd(t, rng), newSoakEnd(t, rng)
	a.peer, b.peer = b, a
	depth := func() int { return []int{-1, 1, 2, 16}[rng.IntN(4)] }
	pa := ConnParam{QP: a.q, CRC: rng.IntN(2) == 0, Markers: rng.IntN(2) == 0, InitiatorDepth: depth(), ResponderResources: depth()}
	a.id, a.s = a.requesting(pa)
	l := b.newID()
	ok(t, l.BindAddr(netip.MustParseAddrPort("10.0.0.1:7")))
	ok(t, l.Listen(1))
	b.s = b.carrier.users[l.listens.carrier.ID()].(*scriptedListener).connect()
	b.s.feed(a.s.sent)
	asked := b.event(nil, CMConnectRequest)
	b.id = asked.ID
	pb := ConnParam{QP: b.q, Markers: rng.IntN(2) == 0, InitiatorDepth: depth(), ResponderResources: asked.Param.ResponderResources}
	if pb.InitiatorDepth > asked.Param.InitiatorDepth { // as a program does that is polite
		pb.InitiatorDepth = asked.Param.InitiatorDepth
	}
	ok(t, b.id.Accept(pb))
	b.event(b.id, CMEstablished)
	a.s.feed(b.s.sent)
	a.event(a.id, CMEstablished)
	for _, e := range []*soakEnd{a, b} {
		e.moved = len(e.s.sent)
		e.lent = 1 + rng.IntN([]int{1, 40, 3000, 200_000}[rng.IntN(4)])
		e.s.room = e.lent
		e.s.mss = []int{1448, 536, 1000, 8948}[rng.IntN(4)]
	}
	return a, b
}

// carry moves some bytes to the peer.
func (e *soakEnd) carry(most int) {
	n := min(len(e.s.sent)-e.moved, most)
	if n > 0 && !e.peer.s.closed {
		e.peer.s.feed(e.s.sent[e.moved : e.moved+n])
	}
	if e.moved += n; !e.s.closed {
		e.s.room = e.lent - (len(e.s.sent) - e.moved)
		e.s.news()
	}
	if e.moved == len(e.s.sent) {
		e.s.sent, e.moved = e.s.sent[:0], 0
		if (e.s.finished || e.s.closed) && !e.peer.s.closed && !e.peer.s.ended {
			if e.s.aborted {
				e.peer.s.fail(syscall.ECONNRESET)
			} else {
				e.peer.s.end()
			}
		}
	}
}

func (e *soakEnd) chance(n int) bool { return e.rng.IntN(n) == 0 }

// act does something that a program might do.
func (e *soakEnd) act() {
	for len(e.recvs) < soakMsgs {
		slot := int(e.rwrid % soakMsgs)
		cut := e.rng.IntN(soakMax)
		wr := RecvWR{WRID: e.rwrid, NumSGE: 2, SGL: [MaxSGE]SGE{e.min.SGE(slot*soakMax, cut), e.min.SGE(slot*soakMax+cut, soakMax-cut)}}
		var err error
		if e.srq != nil {
			err = e.srq.PostRecv(&wr)
		} else {
			err = e.q.PostRecv(&wr)
		}
		ok(e, err)
		e.recvs = append(e.recvs, e.rwrid)
		e.rwrid++
	}
	switch e.rng.IntN(20) {
	case 0:
		e.s.mss = []int{1448, 536, 1000, 8948, 65000, 1}[e.rng.IntN(6)]
	case 1:
		if e.q.State() == StateRTS {
			ok(e, e.q.Modify(StateSQD))
		}
	case 2, 3, 4:
		if e.q.State() == StateSQD {
			ok(e, e.q.Modify(StateRTS))
		}
	default:
		e.request()
	}
}

// request posts something, and notes what must come of it.
func (e *soakEnd) request() {
	n := soakLens[e.rng.IntN(len(soakLens))]
	from := e.rng.IntN(soakMem - soakMax)
	to := e.rng.IntN(soakMem - soakMax - soakCount)
	w := soakWR{wrid: e.wrid, from: from, n: n, to: int(e.wrid%soakMsgs) * soakMax}
	wr := SendWR{WRID: e.wrid, RemoteAddr: uint64(to), RKey: e.peer.mdst.RKey()}
	cut := e.rng.IntN(n + 1)
	wr.NumSGE, wr.SGL = 2, [MaxSGE]SGE{e.msrc.SGE(from, cut), e.msrc.SGE(from+cut, n-cut)}
	if e.chance(3) {
		wr.Flags |= Signaled
	}
	if e.chance(6) {
		wr.Flags |= Fence
	}
	msg := soakMsg{from: from, n: n}
	room := len(e.peer.coming) < soakMsgs
	wr.Opcode = []Opcode{OpSend, OpSend, OpSendWithInv, OpRDMAWrite, OpRDMAWriteWithImm, OpRDMARead, OpRDMARead, OpAtomicFetchAndAdd, OpLocalInv}[e.rng.IntN(9)]
	reads := wr.Opcode >= OpRDMARead && wr.Opcode <= OpAtomicSwap
	if wr.Opcode != OpRDMAWrite && wr.Opcode != OpLocalInv && !reads && !room || reads && e.q.rc.ord == 0 {
		return
	}
	if reads && len(e.sends) >= soakMsgs { // their sinks are in use
		return
	}
	if wr.Opcode < OpRDMARead && n <= MaxInline && e.chance(2) {
		wr.Flags |= Inline
		wr.NumSGE, wr.InlineData = 0, e.src[from:from+n]
	}
	switch wr.Opcode {
	case OpSend, OpSendWithInv, OpRDMAWriteWithImm:
		if msg.se = e.chance(3); msg.se {
			wr.Flags |= Solicited
		}
	}
	switch wr.Opcode {
	case OpSendWithInv:
		m, err := e.peer.pd.RegMR(make([]byte, 8), LocalWrite|RemoteInvalidate)
		ok(e, err)
		msg.inv, wr.InvKey = m, m.RKey()
	case OpRDMAWriteWithImm:
		msg.imm, wr.ImmData = true, e.wrid
	case OpRDMARead:
		wr.RKey, wr.RemoteAddr, wr.NumSGE = e.peer.msrc.RKey(), uint64(from), 1
		wr.SGL[0] = e.msink.SGE(w.to, n)
		if e.chance(3) {
			wr.NumSGE = 2
			wr.SGL = [MaxSGE]SGE{e.msink.SGE(w.to, cut), e.msink.SGE(w.to+cut, n-cut)}
		}
	case OpLocalInv:
		m, err := e.pd.RegMR(make([]byte, 8), LocalWrite)
		ok(e, err)
		wr.NumSGE, wr.InvKey = 0, m.LKey()
	case OpAtomicFetchAndAdd:
		wr.RemoteAddr, wr.NumSGE = soakMem-soakCount, 1
		wr.SGL[0] = e.msink.SGE(w.to, 8)
		wr.Atomic.Add = 3
	}
	switch err := e.q.PostSend(&wr); {
	case errors.Is(err, ErrQueueFull):
		return
	default:
		ok(e, err)
	}
	w.op, w.signaled = wr.Opcode, wr.Flags&Signaled != 0
	e.sends = append(e.sends, w)
	e.wrid++
	switch wr.Opcode {
	case OpSend, OpSendWithInv:
		e.peer.coming = append(e.peer.coming, msg)
	case OpRDMAWriteWithImm:
		e.peer.coming = append(e.peer.coming, msg)
		copy(e.peer.want[to:], e.src[from:from+n])
	case OpRDMAWrite:
		copy(e.peer.want[to:], e.src[from:from+n])
	case OpAtomicFetchAndAdd:
		e.peer.added += 3
	}
}

// look takes completions and holds them to what they must be.
func (e *soakEnd) look() {
	for _, wc := range drain(e.scq) {
		for len(e.sends) > 0 && e.sends[0].wrid != wc.WRID && !e.sends[0].signaled && (!e.flushed || e.silent) {
			e.sends = e.sends[1:] // done, and not worth a word
		}
		if len(e.sends) == 0 || e.sends[0].wrid != wc.WRID {
			e.Fatalf("completion %+v; outstanding %v", wc, e.sends)
		}
		w := e.sends[0]
		e.sends = e.sends[1:]
		switch {
		case wc.Status != Success:
			if !e.ended {
				e.Fatalf("%+v", wc)
			}
			e.flushed = true
		case e.flushed:
			e.Fatalf("success behind a failure: %+v", wc)
		case w.op == OpRDMARead && !bytes.Equal(e.sink[w.to:w.to+w.n], e.peer.src[w.from:w.from+w.n]):
			e.Fatalf("Read %+v has read something else", w)
		}
	}
	for _, wc := range drain(e.rcq) {
		if len(e.recvs) == 0 || e.recvs[0] != wc.WRID {
			e.Fatalf("completion %+v; posted %v", wc, e.recvs)
		}
		e.recvs = e.recvs[1:]
		if wc.Status != Success {
			if !e.ended {
				e.Fatalf("%+v", wc)
			}
			continue
		}
		if len(e.coming) == 0 {
			e.Fatalf("nobody has sent %+v", wc)
		}
		m := e.coming[0]
		e.coming = e.coming[1:]
		slot := int(wc.WRID % soakMsgs)
		switch {
		case m.imm && wc.Opcode != OpRecvRDMAWithImm, (m.inv != nil) != (wc.Flags&WCWithInv != 0), m.se != (wc.Flags&WCWithSolicited != 0),
			m.inv != nil && m.inv.RKey() != 0:
			e.Fatalf("%+v for %+v", wc, m)
		case !m.imm && (int(wc.ByteLen) != m.n || !bytes.Equal(e.in[slot*soakMax:slot*soakMax+m.n], e.peer.src[m.from:m.from+m.n])):
			e.Fatalf("%+v has got something else than %+v", wc, m)
		}
	}
	for ev, got := e.ch.GetEvent(); got; ev, got = e.ch.GetEvent() {
		if ev.Type != CMDisconnected || !e.ended {
			e.Fatalf("%v: %v", ev.Type, ev.Err)
		}
		e.told++
	}
}

// turn lets both ends do something, and some bytes move.
func soakTurn(a, b *soakEnd, act bool) {
	for _, e := range []*soakEnd{a, b} {
		if act && !e.ended {
			e.act()
		}
		e.carry(1 + e.rng.IntN([]int{1, 50, 5000, 200_000}[e.rng.IntN(4)]))
		if e.chance(2) || !act {
			e.ctx.Engine().Step()
		}
		e.look()
	}
}

// Everything arrives as it was sent, in order and once, however little the
// stream takes and gives at a time.
func TestRC_soak(t *testing.T) {
	for seed := range uint64(60) {
		a, b := soakPair(t, seed)
		ends := []*soakEnd{a, b}
		for range 400 {
			soakTurn(a, b, true)
		}
		for _, e := range ends {
			if e.q.State() == StateSQD {
				ok(t, e.q.Modify(StateRTS))
			}
			e.lent = 1 << 20
		}
		for range 3000 {
			soakTurn(a, b, false)
		}
		for i, e := range ends {
			for _, w := range e.sends {
				if w.signaled {
					t.Fatalf("seed %d: end %d: %+v does not complete", seed, i, w)
				}
			}
			if e.q.rc.requests.head != e.q.rc.requests.tail || len(e.coming) > 0 {
				t.Fatalf("seed %d: end %d: %d requests, %d messages are left", seed, i, e.q.rc.requests.tail-e.q.rc.requests.head, len(e.coming))
			}
			counter := order.Uint64(e.dst[soakMem-soakCount:])
			order.PutUint64(e.want[soakMem-soakCount:], e.added)
			if counter != e.added || !bytes.Equal(e.dst, e.want) {
				t.Fatalf("seed %d: end %d: the memory is not what was written; %d added, want %d", seed, i, counter, e.added)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// soakEnds are the ways to end a connection, by the end e.
var soakEnds = map[string]func(e *soakEnd){
	"Disconnect":         func(e *soakEnd) { ok(e, e.id.Disconnect()) },
	"Destroy":            func(e *soakEnd) { e.q.Destroy() },
	"Destroy identifier": func(e *soakEnd) { ok(e, e.id.Destroy()); e.told++ },
	"Modify to ERR":      func(e *soakEnd) { ok(e, e.q.Modify(StateErr)) },
	"Modify to RESET":    func(e *soakEnd) { ok(e, e.q.Modify(StateReset)); e.silent = true },
	"failure": func(e *soakEnd) {
		e.s.fail(syscall.ECONNRESET)
		e.peer.s.fail(syscall.ETIMEDOUT)
	},
	"both disconnect": func(e *soakEnd) { ok(e, e.id.Disconnect()); ok(e, e.peer.id.Disconnect()) },
	"half close":      func(e *soakEnd) { e.peer.s.end() },
	"deregistered":    func(e *soakEnd) { ok(e, e.msrc.Dereg()); ok(e, e.mdst.Dereg()) },
	"Close": func(e *soakEnd) {
		ok(e, e.ctx.Close())
		e.told++
	},
}

// Whenever and however a connection ends, each request completes once, and the
// streams are given back.
func TestRC_soakEnds(t *testing.T) {
	seeds := uint64(60)
	if Slow {
		seeds = 10
	}
	for how, end := range soakEnds {
		t.Run(how, func(t *testing.T) {
			for seed := range seeds {
				a, b := soakPair(t, seed)
				for range seed * 3 % 181 {
					soakTurn(a, b, true)
				}
				a.ended, b.ended = true, true
				end(a)
				soakEnded(t, fmt.Sprint("seed ", seed), how, a, b)
			}
		})
	}
}

func soakEnded(t *testing.T, seed, how string, a, b *soakEnd) {
	t.Helper()
	for range 200 {
		soakTurn(a, b, false)
	}
	if how == "deregistered" && a.q.State() != StateErr { // the peer has not noticed: nothing was left to do
		ok(t, a.id.Disconnect())
	}
	for range 20 { // seconds: the peer of a peer may wait too
		for _, e := range []*soakEnd{a, b} {
			e.clock.now = e.clock.now.Add(mono.Second)
		}
		for range 50 {
			soakTurn(a, b, false)
		}
	}
	for i, e := range []*soakEnd{a, b} {
		for _, w := range e.sends {
			if !e.silent && (w.signaled || e.flushed) {
				t.Fatalf("%s: end %d: %+v does not complete", seed, i, w)
			}
		}
		if e.srq == nil && !e.silent && len(e.recvs) > 0 {
			t.Fatalf("%s: end %d: receives %v do not complete", seed, i, e.recvs)
		}
		if want := e.q.State(); !e.silent && !e.q.closed && want != StateErr {
			t.Fatalf("%s: end %d is in state %v", seed, i, want)
		}
		if !e.s.closed || e.told != 1 {
			t.Fatalf("%s: end %d: stream closed %v, end told %d times; %+v", seed, i, e.s.closed, e.told, e.q.rc)
		}
		if r := e.q.rc; r.requests.len() != 0 || r.rest != nil || r.in.part != nil || r.stream != nil || r.in.msg.used || r.phase != rcIdle {
			t.Fatalf("%s: end %d: something is left: %+v", seed, i, r)
		}
	}
}

// TestRC_segmentMin looks at how long the first segment of a message is.
func TestRC_segmentMin(t *testing.T) {
	looked := [2]int{}
	for seed := range uint64(60) {
		a, _ := soakPair(t, seed)
		if a.q.rc.tx.Markers {
			continue
		}
		a.s.mss, a.s.room = 1448, 1<<20
		ok(t, a.q.PostSend(&SendWR{Opcode: OpSend, NumSGE: 1, SGL: [MaxSGE]SGE{a.msrc.SGE(0, 5000)}}))
		a.step()
		got, want, is := int(binary.BigEndian.Uint16(a.s.sent[a.moved:])), 1448-6, 0
		if a.q.rc.segmentMin == 4000 {
			want, is = 4000-6, 1
		}
		if looked[is]++; got > want || got < want-8 {
			t.Errorf("the first ULPDU has %d bytes, want %d", got, want)
		}
	}
	if looked[0] == 0 || looked[1] == 0 {
		t.Errorf("%v connections were looked at", looked)
	}
}
