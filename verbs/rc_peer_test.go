package verbs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// rcMode is how a connection is made.
type rcMode struct {
	crc, markers bool
	initiator    bool // the end under test is the one that connects
	rtr          mpa.RTR
	ird, ord     int // of the end under test; 0: 16
	srq          bool
}

// rcModes are the modes that change what is on the wire.
var rcModes = map[string]rcMode{
	"plain":             {},
	"CRC":               {crc: true},
	"markers":           {markers: true},
	"CRC, markers":      {crc: true, markers: true},
	"initiator":         {initiator: true},
	"initiator, all on": {initiator: true, crc: true, markers: true},
}

// rcPeer is a peer of an RC queue pair that speaks MPA, and otherwise says what
// it likes. Its memory at the end under test is a slab with what is granted in
// the middle of what is not.
type rcPeer struct {
	*cmRig
	s        *scriptedStream
	id       *CMID
	q, other *QP // other has no connection
	scq, rcq *CQ
	srq      *SRQ
	tx       mpa.Tx // of the peer
	rx       mpa.Rx
	seen     int // bytes of s.sent that were looked at
	msn      [4]uint32

	slab, was           []byte
	rw, local, inv, buf *MR    // all rights; LocalWrite; all and RemoteInvalidate, bindable; receives and sinks
	foreign             *MR    // of another protection domain
	gone                uint32 // key of inv, for when that has none any more
}

// Layout of the slab. Between the regions nothing is granted.
const (
	slabRW      = 256
	slabLocal   = 1024
	slabInv     = 2048
	slabForeign = 3072
	slabBuf     = 4096
	slabSize    = 4096 + 80<<10
	regionLen   = 512
	bufLen      = 72 << 10
)

func newRCPeer(t testing.TB, m rcMode) *rcPeer {
	t.Helper()
	p := &rcPeer{cmRig: newCMRig(t)}
	p.slab = make([]byte, slabSize)
	for i := range p.slab {
		p.slab[i] = byte(i*7 + i>>8)
	}
	p.was = bytes.Clone(p.slab)
	all := LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic
	p.rw = p.region(p.pd, slabRW, regionLen, all|MWBind)
	p.local = p.region(p.pd, slabLocal, regionLen, LocalWrite)
	p.inv = p.region(p.pd, slabInv, regionLen, all|RemoteInvalidate|MWBind)
	p.foreign = p.region(newPD(t, p.ctx), slabForeign, regionLen, all)
	p.buf = p.region(p.pd, slabBuf, bufLen, LocalWrite)
	var err error
	p.scq, err = p.ctx.CreateCQ(CQInit{})
	ok(t, err)
	p.rcq, err = p.ctx.CreateCQ(CQInit{})
	ok(t, err)
	init := QPInit{Type: RC, SendCQ: p.scq, RecvCQ: p.rcq}
	if m.srq {
		p.srq, err = p.pd.CreateSRQ(SRQInit{})
		ok(t, err)
		init.SRQ = p.srq
	}
	p.q, err = p.pd.CreateQP(init)
	ok(t, err)
	p.other, err = p.pd.CreateQP(init)
	ok(t, err)
	p.connect(m)
	return p
}

func (p *rcPeer) region(pd *PD, at, n int, access Access) *MR {
	p.Helper()
	m, err := pd.RegMR(p.slab[at:at+n], access)
	ok(p, err)
	return m
}

// connect connects the queue pair under test.
func (p *rcPeer) connect(m rcMode) {
	p.Helper()
	param := ConnParam{QP: p.q, CRC: m.crc, Markers: m.markers, ResponderResources: m.ird, InitiatorDepth: m.ord}
	config := mpa.Config{CRC: m.crc, Markers: m.markers, IRD: 16, ORD: 16}
	p.tx, p.rx = mpa.Tx{CRC: m.crc, Markers: m.markers}, mpa.Rx{CRC: m.crc, Markers: m.markers, Empty: true}
	p.msn = [4]uint32{}
	if m.initiator {
		param.RTR = m.rtr
		p.id, p.s = p.requesting(param)
		p.seen = len(p.s.sent)
		if m.ird != 0 {
			config.ORD = uint16(max(m.ird, 0))
		}
		p.s.feed(p.reply(p.s, config, ""))
		p.event(p.id, CMEstablished)
		return
	}
	_, carrier := p.listener(0)
	p.s = carrier.connect()
	config.RTR = m.rtr
	p.s.feed(p.request(config, ""))
	p.id = p.event(nil, CMConnectRequest).ID
	ok(p, p.id.Accept(param))
	if p.step(); m.rtr == 0 {
		p.event(p.id, CMEstablished)
	}
	p.seen = len(p.s.sent)
}

// fpdu frames a ULPDU; it is the next one of the stream.
func (p *rcPeer) fpdu(u []byte) []byte {
	b := append(binary.BigEndian.AppendUint16(nil, uint16(len(u))), u...)
	var trailer [mpa.TrailerMax]byte
	b = append(b, trailer[:p.tx.Trailer(trailer[:], b)]...)
	return p.tx.Mark(nil, b)
}

// say sends ULPDUs, all at once.
func (p *rcPeer) say(ulpdus ...[]byte) {
	var b []byte
	for _, u := range ulpdus {
		b = append(b, p.fpdu(u)...)
	}
	p.s.feed(b)
	p.step()
}

// heard returns the ULPDUs that have come since.
func (p *rcPeer) heard() (all [][]byte) {
	p.Helper()
	p.step()
	for {
		u, n, _, cause, good := p.rx.Next(p.s.sent[p.seen:])
		if !good {
			p.Fatalf("a bad FPDU was sent: %v", cause)
		}
		if n == 0 {
			return all
		}
		all = append(all, bytes.Clone(u))
		p.seen += n
	}
}

// Messages of the peer. The MSN counts on.

func (p *rcPeer) untagged(op rdmap.Opcode, body []byte) []byte {
	qn := op.QN()
	p.msn[qn]++
	return withBody(&ddp.Header{Last: true, ULP: rdmap.Control(op), QN: qn, MSN: iwarp.MSN(p.msn[qn])}, body)
}

func withBody(h *ddp.Header, body []byte) []byte {
	u := make([]byte, h.Len(), h.Len()+len(body))
	h.Put(u)
	return append(u, body...)
}

func (p *rcPeer) send(n int) []byte { return p.untagged(rdmap.Send, filler(n)) }

func (p *rcPeer) tagged(op rdmap.Opcode, stag uint32, to uint64, n int) []byte {
	return withBody(&ddp.Header{Tagged: true, Last: true, ULP: rdmap.Control(op), STag: iwarp.STag(stag), TO: to}, filler(n))
}

func (p *rcPeer) write(stag uint32, to uint64, n int) []byte {
	return p.tagged(rdmap.Write, stag, to, n)
}

func (p *rcPeer) read(stag uint32, to uint64, n uint32) []byte {
	req := rdmap.ReadReq{SinkSTag: 0x100, SinkTO: 0x10000, Size: n, SrcSTag: iwarp.STag(stag), SrcTO: to}
	var b [rdmap.ReadReqLen]byte
	req.Put(b[:])
	return p.untagged(rdmap.ReadRequest, b[:])
}

func (p *rcPeer) atomic(op rdmap.AtomicOp, stag uint32, to uint64) []byte {
	req := rdmap.AtomicReq{Op: op, ID: 77, STag: iwarp.STag(stag), TO: to, Data: 1}
	var b [rdmap.AtomicReqLen]byte
	req.Put(b[:])
	return p.untagged(rdmap.AtomicRequest, b[:])
}

func (p *rcPeer) invalidate(key uint32) []byte {
	u := p.untagged(rdmap.SendInv, filler(4))
	binary.BigEndian.PutUint32(u[2:], key)
	return u
}

func (p *rcPeer) terminate(t *rdmap.Term) []byte {
	var b [rdmap.TermMaxLen]byte
	return p.untagged(rdmap.Terminate, b[:t.Put(b[:])])
}

// not sets a header field of a ULPDU to what it should not be.
func not(u []byte, at int, with ...byte) []byte {
	copy(u[at:], with)
	return u
}

// more takes the flag L away.
func more(u []byte) []byte {
	u[0] &^= 0x40
	return u
}

func filler(n int) []byte { return bytes.Repeat([]byte{0xee}, n) }

// Requests of the end under test.

func (p *rcPeer) postRecvs(n, size int) {
	p.Helper()
	for i := range n {
		wr := RecvWR{WRID: uint64(100 + i), NumSGE: 1, SGL: [MaxSGE]SGE{p.buf.SGE(0, size)}}
		if p.srq != nil {
			ok(p, p.srq.PostRecv(&wr))
		} else {
			ok(p, p.q.PostRecv(&wr))
		}
	}
}

func (p *rcPeer) post(wrid uint64, op Opcode, n int) {
	p.Helper()
	wr := SendWR{WRID: wrid, Opcode: op, Flags: Signaled, RKey: 0x5000, RemoteAddr: 64 * wrid, NumSGE: 1, SGL: [MaxSGE]SGE{p.buf.SGE(0, n)}}
	if op == OpSendWithInv {
		wr.InvKey = 9
	}
	ok(p, p.q.PostSend(&wr))
}

func drain(q *CQ) (all []WC) {
	var wc [8]WC
	for n := q.Poll(wc[:]); n > 0; n = q.Poll(wc[:]) {
		all = append(all, wc[:n]...)
	}
	return all
}

// statuses is what completions are expected to say, by WRID.
type statuses map[uint64]Status

// completed checks that the completions are those, each once, in the order of
// their WRIDs.
func (p *rcPeer) completed(q *CQ, want statuses) {
	p.Helper()
	last := uint64(0)
	for _, wc := range drain(q) {
		status, known := want[wc.WRID]
		switch {
		case !known:
			p.Errorf("unexpected, or twice: %+v", wc)
		case wc.Status != status:
			p.Errorf("request %d: %v, want %v", wc.WRID, wc.Status, status)
		case wc.WRID < last:
			p.Errorf("request %d completes after %d", wc.WRID, last)
		}
		last = wc.WRID
		delete(want, wc.WRID)
	}
	for wrid := range want {
		p.Errorf("request %d does not complete", wrid)
	}
}

// untouched checks that the slab is what it was outside of what was granted,
// which lies at the given ranges of offsets.
func (p *rcPeer) untouched(granted ...[2]int) {
	p.Helper()
	for _, g := range granted {
		copy(p.was[g[0]:g[1]], p.slab[g[0]:g[1]])
	}
	if !bytes.Equal(p.slab, p.was) {
		at := slices.IndexFunc(p.slab, func(byte) bool { return true })
		for at = range p.slab {
			if p.slab[at] != p.was[at] {
				break
			}
		}
		p.Errorf("memory was written at %d of the slab", at)
	}
}

// asyncEvents takes the asynchronous events that there are.
func (p *rcPeer) asyncEvents() (all []EventType) {
	for e, got := p.ctx.GetAsyncEvent(); got; e, got = p.ctx.GetAsyncEvent() {
		if e.QP != p.q {
			p.Errorf("an event of another queue pair: %v", e.Type)
		}
		all = append(all, e.Type)
	}
	return all
}

// over ends the peer's half, and checks that the connection ends here with
// that error; an iwarp.TerminateError is compared, others by errors.Is.
func (p *rcPeer) over(want error) {
	p.Helper()
	if p.q.State() != StateErr {
		p.Errorf("the queue pair is in state %v", p.q.State())
	}
	if !p.s.closed {
		if !p.s.finished {
			p.Error("no FIN was sent")
		}
		p.s.end()
	}
	e := p.event(p.id, CMDisconnected)
	var term, got *iwarp.TerminateError
	switch {
	case errors.As(want, &term):
		if !errors.As(e.Err, &got) || *got != *term {
			p.Errorf("the connection ended with %v, want %v", e.Err, want)
		}
	case !errors.Is(e.Err, want):
		p.Errorf("the connection ended with %v, want %v", e.Err, want)
	}
	if !p.s.closed {
		p.Error("the stream is open")
	}
	p.noEvent()
}

// isTerminate reports whether an error tells of a Terminate with this cause.
func isTerminate(err error, cause iwarp.Cause, remote bool) bool {
	var e *iwarp.TerminateError
	return errors.As(err, &e) && *e == iwarp.TerminateError{Cause: cause, Remote: remote}
}
