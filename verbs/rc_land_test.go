package verbs

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// lander is a peer that sends messages to receives of their own buffers.
type lander struct {
	*rcPeer
	sent   int  // messages, each of which has other bytes
	landed bool // something was received into the buffer of a receive
}

// landRoom is how far apart the buffers of receives are.
const landRoom = 9000

// newLander makes one. Without vector the stream receives into one buffer at a time, so that nothing lands.
func newLander(t testing.TB, m rcMode, vector bool) *lander {
	l := &lander{rcPeer: newRCPeer(t, m)}
	l.queue().spoils = true
	if !vector {
		l.q.rc.in.predicted.from = nil
	}
	return l
}

// queue returns the one that receives are posted to.
func (l *lander) queue() *recvQueue {
	if l.srq != nil {
		return &l.srq.rq
	}
	return &l.q.rq
}

// receives posts receives of these lengths, each of a buffer of its own. Their ids are places of the slab.
func (l *lander) receives(lens ...int) {
	for i, n := range lens {
		wr := RecvWR{WRID: uint64(slabBuf + i*landRoom), NumSGE: 1, SGL: [MaxSGE]SGE{l.buf.SGE(i*landRoom, n)}}
		if l.srq != nil {
			ok(l, l.srq.PostRecv(&wr))
		} else {
			ok(l, l.q.PostRecv(&wr))
		}
	}
}

// body returns n bytes unlike those of other messages.
func (l *lander) body(n int) []byte {
	l.sent++
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((i+100*l.sent)%251) + 1
	}
	return b
}

// sends returns messages of these lengths.
func (l *lander) sends(lens ...int) (all []byte) {
	for _, n := range lens {
		all = append(all, l.fpdu(l.untagged(rdmap.Send, l.body(n)))...)
	}
	return all
}

// landing is what a peer and the user can see.
type landing struct {
	messages    [][]byte
	sent        []byte
	state       QPState
	completions []WC
	events      []EventType
}

// hear feeds what a peer sends, the first message and then chunk bytes at a time, and returns what comes of it.
func (l *lander) hear(stream []byte, chunk int, midway func(*lander)) (o landing) {
	size := int(binary.BigEndian.Uint16(stream))
	first := min(mpa.LengthLen+size+mpa.Pad(size)+mpa.CRCLen, len(stream))
	l.s.feed(stream[:first])
	l.step()
	for at := first; at < len(stream) && !l.s.closed && !l.s.ended; at += chunk {
		if midway != nil && at >= len(stream)/2 {
			midway(l)
			midway = nil
		}
		l.s.feed(stream[at:min(at+chunk, len(stream))])
		l.step()
		l.landed = l.landed || l.ctx.streams.lands[1] != nil
	}
	l.untouched([2]int{slabBuf, slabBuf + bufLen}, [2]int{slabRW, slabRW + regionLen})
	o = landing{nil, bytes.Clone(l.s.sent), l.q.State(), drain(l.rcq), l.asyncEvents()}
	for i := range o.completions {
		if wc := &o.completions[i]; wc.Status == Success {
			o.messages = append(o.messages, bytes.Clone(l.slab[wc.WRID:][:wc.ByteLen]))
		}
	}
	return o
}

// TestRC_landing has long messages come in pieces of all sizes, as long as the one before and not.
func TestRC_landing(t *testing.T) {
	type row struct {
		mode   rcMode
		lens   []int // of receives; none: 8 that suffice
		stream func(l *lander) []byte
		midway func(l *lander)
		waits  bool
		never  bool // nothing is to land
	}
	some := func(l *lander) []byte { return l.sends(8000, 8000, 8000, 8000) }
	for name, r := range map[string]row{
		"as long":                {stream: some},
		"as long, shared":        {stream: some, mode: rcMode{srq: true}},
		"padding":                {stream: func(l *lander) []byte { return l.sends(8001, 8001, 8001, 8001) }},
		"a short one":            {stream: func(l *lander) []byte { return l.sends(8000, 8000, 9, 8000, 8000) }},
		"a shorter one":          {stream: func(l *lander) []byte { return l.sends(8000, 5000, 8000, 7999) }},
		"a longer one":           {stream: func(l *lander) []byte { return l.sends(5000, 8000, 5000, 8000) }},
		"none fits":              {lens: []int{9000, 4000, 9000}, stream: some, never: true},
		"the third does not fit": {lens: []int{9000, 9000, 4000, 9000}, stream: some},
		"no receive":             {lens: []int{9000, 9000}, stream: some},
		"no receive, shared":     {lens: []int{9000, 9000}, stream: some, mode: rcMode{srq: true}},
		"waits for a receive":    {lens: []int{9000}, waits: true, stream: some, midway: func(l *lander) { l.receives(9000, 9000, 9000) }},
		"disconnected":           {stream: some, midway: func(l *lander) { ok(l, l.id.Disconnect()) }},
		"disconnected, shared":   {stream: some, mode: rcMode{srq: true}, midway: func(l *lander) { ok(l, l.id.Disconnect()) }},
		"a whole one within":     {stream: func(l *lander) []byte { return slices.Concat(l.sends(8000), l.segments()[:8024], l.sends(8000)) }},
		"no more a connection":   {stream: some, midway: func(l *lander) { ok(l, l.q.Modify(StateErr)) }},
		"the stream ends":        {stream: some, midway: func(l *lander) { l.s.end() }},
		"CRC":                    {stream: some, mode: rcMode{crc: true}, never: true},
		"markers":                {stream: some, mode: rcMode{markers: true}, never: true},
		"less than is worth it":  {stream: func(l *lander) []byte { return l.sends(4000, 4000, 4000) }, never: true},
		"a Write between": {stream: func(l *lander) []byte {
			return slices.Concat(l.sends(8000), l.fpdu(l.write(l.rw.RKey(), l.rw.Addr(), 100)), l.sends(8000))
		}},
		"a number left out": {stream: func(l *lander) []byte { return slices.Concat(l.sends(8000, 8000), l.skip(), l.sends(8000)) }},
		"a solicited one": {stream: func(l *lander) []byte {
			return append(l.sends(8000), l.fpdu(l.untagged(rdmap.SendSE, l.body(8000)))...)
		}},
		"one of several segments": {stream: func(l *lander) []byte { return slices.Concat(l.sends(8000), l.segments(), l.sends(8000)) }},
		"several in one buffer": {lens: []int{9000, 9000}, stream: func(l *lander) []byte {
			return append(l.sends(8000, 8000), l.fpdu(l.read(l.rw.RKey(), l.rw.Addr(), 50))...)
		}},
		"something else behind it": {stream: func(l *lander) []byte { return append(l.sends(8000, 8000), bytes.Repeat([]byte{0xff}, 9000)...) }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, chunk := range []int{1, 7, 4000, 8020, 8024, 8028, 10_000, 17_000, 1 << 20} {
				var o [2]landing
				for i, vector := range []bool{false, true} {
					l := newLander(t, r.mode, vector)
					l.q.recvWait = r.waits
					if l.receives(r.lens...); r.lens == nil {
						l.receives(9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000)
					}
					o[i] = l.hear(r.stream(l), chunk, r.midway)
					if lands := vector && !r.never; l.landed && !lands || !l.landed && lands && chunk == 1 {
						t.Errorf("pieces of %d, into several buffers %v: received into the buffer of a receive: %v", chunk, vector, l.landed)
					}
				}
				if !reflect.DeepEqual(o[1], o[0]) {
					t.Fatalf("pieces of %d: %d messages, %v, want %d, %v; %+v and %+v", chunk, len(o[1].messages), o[1].state, len(o[0].messages), o[0].state, o[1].completions, o[0].completions)
				}
			}
		})
	}
}

// skip leaves a number out.
func (l *lander) skip() []byte {
	l.untagged(rdmap.Send, nil)
	return nil
}

// segments returns a Send of two segments, the first one as long as other messages.
func (l *lander) segments() (all []byte) {
	first, last := l.untagged(rdmap.Send, nil), l.body(9000)
	var h ddp.Header
	h.Parse(first)
	h.Last = false
	all = l.fpdu(withBody(&h, last[:8000]))
	h.Last, h.MO = true, 8000
	return append(all, l.fpdu(withBody(&h, last[8000:]))...)
}

// TestRC_landingSpoils has a short message come behind a long one, and something else behind it: the memory behind it in its receive stays
// as it is, but where it may be written.
func TestRC_landingSpoils(t *testing.T) {
	for _, spoils := range []bool{false, true} {
		for _, srq := range []bool{false, true} {
			l := newLander(t, rcMode{srq: srq}, true)
			l.queue().spoils = spoils
			l.receives(9000, 9000, 9000)
			behind := l.slab[slabBuf+landRoom+5000:][:4000]
			before := bytes.Clone(behind)
			l.hear(l.sends(8000, 5000, 8000), 1<<20, nil)
			if got := !bytes.Equal(behind, before); got != spoils || l.landed != spoils {
				t.Errorf("shared %v, may be written %v: memory behind a message was written: %v, landed %v", srq, spoils, got, l.landed)
			}
		}
	}
}

// TestAllocs_landing is messages of the same length over the kernel's TCP, which land and allocate nothing.
func TestAllocs_landing(t *testing.T) {
	a, b := rcPair(t, ConnParam{})
	b.qp.rq.spoils = true
	const n = 16 << 10
	round := func() {
		must(t, b.qp.PostRecv(&RecvWR{NumSGE: 1, SGL: [MaxSGE]SGE{b.mr.SGE(0, n+100)}}))
		must(t, a.qp.PostSend(&SendWR{Opcode: OpSend, Flags: Signaled, NumSGE: 1, SGL: [MaxSGE]SGE{a.mr.SGE(0, n)}}))
		rcNext(t, a, b, b.rcq)
		rcNext(t, a, b, a.scq)
	}
	a.qp.rc.segmentMin, b.qp.rc.segmentMin = n+100, n+100
	for i := range 20 {
		for k := range a.mem[:n] {
			a.mem[k] = byte(k*7>>3+i) | 1
		}
		clear(b.ctx.streams.in)
		if round(); !bytes.Equal(b.mem[:n], a.mem[:n]) {
			t.Fatal("what was received is not what was sent")
		}
	}
	if b.ctx.streams.in[landHead+n-1] != 0 {
		t.Error("messages are not received into the buffers of their receives")
	}
	if n := testing.AllocsPerRun(50, round); n != 0 {
		t.Errorf("a Send allocates %v times", n)
	}
}

// FuzzRC_landing changes bytes of messages: what comes of that is the same where they land.
func FuzzRC_landing(f *testing.F) {
	f.Add(uint16(8000), uint16(8000), uint16(8024), byte(1), uint16(7000))
	f.Fuzz(func(t *testing.T, first, second, at uint16, change byte, chunk uint16) {
		var o [2]landing
		for i, vector := range []bool{false, true} {
			l := newLander(t, rcMode{}, vector)
			l.receives(landRoom, landRoom, landRoom, landRoom)
			stream := l.sends(int(first%landRoom), int(second%landRoom), int(second%landRoom), 8)
			stream[int(at)%len(stream)] ^= change
			o[i] = l.hear(stream, max(int(chunk), 50), nil)
		}
		if !reflect.DeepEqual(o[1], o[0]) {
			t.Fatalf("%+v, want %+v", o[1], o[0])
		}
	})
}
