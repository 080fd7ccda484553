package verbs

import (
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// blameWays is how the peers that there are say what a Terminate is about.
var blameWays = map[string]func(t *rdmap.Term, u []byte, cause iwarp.Cause) []byte{
	"RFC": func(t *rdmap.Term, u []byte, cause iwarp.Cause) []byte {
		t.Blame(cause, u, len(u))
		var b [rdmap.TermMaxLen]byte
		return b[:t.Put(b[:])]
	},
	// The bits of the control word are swapped, the length is that of the
	// payload, and of a Read Request the size stands where the MSN was, if its
	// own header is there too.
	"siw": func(t *rdmap.Term, u []byte, cause iwarp.Cause) []byte {
		t.Blame(cause, u, len(u)-ddp.LenOf(u[0]))
		t.Swapped = true
		var b [rdmap.TermMaxLen]byte
		n := t.Put(b[:])
		if t.HasRDMAP && len(u) == ddp.UntaggedLen+rdmap.ReadReqLen {
			b[4], b[5] = 0, 0
			copy(b[6+10:6+14], b[6+18+12:6+18+16])
			clear(b[6+18+12 : 6+18+16])
		}
		return b[:n]
	},
}

// posted are the requests that stand in line when a Terminate comes: the peer
// has heard of the first six, and the stream takes no more.
var posted = []Opcode{OpRDMARead, OpRDMARead, OpAtomicFetchAndAdd, OpSend, OpRDMAWrite, OpSendWithInv, OpRDMARead}

// A Terminate blames the request that it is about, with the status of its
// cause. Those before are not blamed, and nothing is done any more.
func TestRC_blamed(t *testing.T) {
	rows := []struct {
		what   string
		cause  iwarp.Cause
		wrid   uint64 // whose ULPDU it is about
		status Status
	}{
		{"Read, InvalidSTag", rdmap.InvalidSTag, 2, RemAccessErr},
		{"Read, BaseBounds", rdmap.BaseBounds, 2, RemAccessErr},
		{"Read, AccessRights", rdmap.AccessRights, 1, RemAccessErr},
		{"Read, NotAssociated", rdmap.NotAssociated, 2, RemAccessErr},
		{"Read, TOWrap", rdmap.TOWrap, 2, RemAccessErr},
		{"Read, unspecified protection error", rdmap.ProtectionUnspecified, 2, RemAccessErr},
		{"Read, UnexpectedOpcode", rdmap.UnexpectedOpcode, 2, RemInvReqErr},
		{"Read, StreamCatastrophic", rdmap.StreamCatastrophic, 2, RemInvReqErr},
		{"Read, GlobalCatastrophic", rdmap.GlobalCatastrophic, 2, RemInvReqErr},
		{"Read, unspecified operation error", rdmap.OperationUnspecified, 2, RemInvReqErr},
		{"Read, InvalidQN", ddp.InvalidQN, 2, RemInvReqErr},
		{"Read, NoBuffer", ddp.NoBuffer, 2, RemInvReqErr},
		{"Read, MSNRange", ddp.MSNRange, 2, RemInvReqErr},
		{"Read, InvalidMO", ddp.InvalidMO, 2, RemInvReqErr},
		{"Read, MessageTooLong", ddp.MessageTooLong, 2, RemInvReqErr},
		{"atomic, UnexpectedOpcode", rdmap.UnexpectedOpcode, 3, RemInvReqErr}, // siw knows none
		{"atomic, InvalidSTag", rdmap.InvalidSTag, 3, RemAccessErr},
		{"atomic, StreamCatastrophic", rdmap.StreamCatastrophic, 3, RemInvReqErr},
		{"Send, NoBuffer", ddp.NoBuffer, 4, RemInvReqErr},
		{"Send, MessageTooLong", ddp.MessageTooLong, 4, RemInvReqErr},
		{"Send with Invalidate, CannotInvalidate", rdmap.CannotInvalidate, 6, RemAccessErr},
		{"Send with Invalidate, OperationInvalidate", rdmap.OperationInvalidate, 6, RemAccessErr},
		{"Write, InvalidSTag", ddp.InvalidSTag, 5, RemAccessErr},
		{"Write, BaseBounds", ddp.BaseBounds, 5, RemAccessErr},
		{"Write, NotAssociated", ddp.NotAssociated, 5, RemAccessErr},
		{"Write, TOWrap", ddp.TOWrap, 5, RemAccessErr},
		{"Write, AccessRights", rdmap.AccessRights, 5, RemAccessErr},
	}
	for way, put := range blameWays {
		for _, row := range rows {
			t.Run(way+"/"+row.what, func(t *testing.T) {
				p := newRCPeer(t, rcMode{initiator: true})
				said := p.posted()
				var term rdmap.Term
				p.say(p.untagged(rdmap.Terminate, put(&term, said[row.wrid-1], row.cause)))
				p.blamed(row.wrid, row.status, row.cause)
			})
		}
	}
}

// posted posts them, with the numbers from 1, and returns their ULPDUs. Sends
// and Writes wait behind the Reads: they would be complete as soon as they are
// sent.
func (p *rcPeer) posted() (said [][]byte) {
	for i, op := range posted {
		p.post(uint64(i+1), op, 8)
	}
	said = p.heard()
	if len(said) != len(posted) {
		p.Fatalf("%d messages were sent", len(said))
	}
	return said
}

// blamed checks that the connection is over because of a Terminate, which
// blames one request; 0: none.
func (p *rcPeer) blamed(wrid uint64, status Status, cause iwarp.Cause) {
	p.Helper()
	want := statuses{}
	for i := range posted {
		want[uint64(i+1)] = WRFlushErr
	}
	if wrid != 0 {
		want[wrid] = status
	}
	p.completed(p.scq, want)
	if got := p.asyncEvents(); len(got) != 1 || got[0] != EventQPFatal {
		p.Errorf("events %v", got)
	}
	if all := p.heard(); len(all) > 0 {
		p.Errorf("a Terminate is answered: %x", all)
	}
	p.untouched()
	p.over(&iwarp.TerminateError{Cause: cause, Remote: true})
}

// A Terminate that is about nothing of ours, or does not say what, blames
// nobody.
func TestRC_blamesNobody(t *testing.T) {
	about := func(u []byte, cause iwarp.Cause) *rdmap.Term {
		var t rdmap.Term
		t.Blame(cause, u, len(u))
		return &t
	}
	for what, term := range map[string]func(p *rcPeer, said [][]byte) *rdmap.Term{
		"local failure":        func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: rdmap.LocalCatastrophic} },
		"local failure of DDP": func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: ddp.LocalCatastrophic} },
		"lost":                 func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: iwarp.LLPLost} },
		"CRC":                  func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: iwarp.LLPCRC} },
		"marker":               func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: iwarp.LLPMarker} },
		"startup":              func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: iwarp.LLPStartup} },
		"failure of MPA":       func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: iwarp.LLPCatastrophic} },
		"version of DDP":       func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: ddp.UntaggedVersion} },
		"version of tagged":    func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: ddp.TaggedVersion} },
		"version of RDMAP":     func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: rdmap.InvalidVersion} },
		"a cause of no RFC":    func(*rcPeer, [][]byte) *rdmap.Term { return &rdmap.Term{Cause: 0x3456} },
		"a Send that is to come": func(p *rcPeer, said [][]byte) *rdmap.Term {
			return about(not(said[3], 13, 99), ddp.NoBuffer)
		},
		"an answer to an atomic, MSN 1 as the first Send": func(p *rcPeer, said [][]byte) *rdmap.Term {
			u := withBody(&ddp.Header{Last: true, ULP: rdmap.Control(rdmap.AtomicResponse), QN: iwarp.QNAtomicResp, MSN: 1}, filler(12))
			return about(u, ddp.MSNRange)
		},
		"a Terminate, MSN 1 as the first Send": func(p *rcPeer, said [][]byte) *rdmap.Term {
			u := withBody(&ddp.Header{Last: true, ULP: rdmap.Control(rdmap.Terminate), QN: iwarp.QNTerminate, MSN: 1}, filler(4))
			return about(u, ddp.InvalidQN)
		},
		"a Read Response, STag and offset as the Write": func(p *rcPeer, said [][]byte) *rdmap.Term {
			return about(p.tagged(rdmap.ReadResponse, 0x5000, 64*5, 8), ddp.InvalidSTag)
		},
		"a Write to somewhere else": func(p *rcPeer, said [][]byte) *rdmap.Term {
			return about(p.write(0x5000, 64*5+8, 8), ddp.BaseBounds)
		},
		"a Read of somewhere else": func(p *rcPeer, said [][]byte) *rdmap.Term {
			return about(not(said[1], 18+27, 1), rdmap.InvalidSTag)
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := newRCPeer(t, rcMode{initiator: true})
			said := p.posted()
			term := term(p, said)
			p.say(p.terminate(term))
			p.blamed(0, 0, term.Cause)
		})
	}
}

// What the bytes 20 06 and 20 07 mean depends on how far the connection is: as long as
// the peer has had no message of ours they are an initiator's word on our Reply, and
// later siw's on that message, in its order of bits.
func TestRC_terminateWithoutHeaders(t *testing.T) {
	send := func(p *rcPeer) { p.post(1, OpSend, 8) }
	for what, row := range map[string]struct {
		m      rcMode
		before func(p *rcPeer)
		word   [4]byte
		cause  iwarp.Cause
	}{
		"behind our Reply, insufficient IRD":     {word: [4]byte{0x20, 0x06}, cause: iwarp.LLPResources},
		"behind our Reply, no first message":     {word: [4]byte{0x20, 0x07}, cause: iwarp.LLPNoRTR},
		"behind our Reply, siw's order":          {word: [4]byte{0x02, 0x06}, cause: iwarp.LLPResources},
		"behind our Reply, CRC, siw's order":     {m: rcMode{crc: true}, word: [4]byte{0x02, 0x06}, cause: iwarp.LLPResources},
		"initiator that has said nothing":        {m: rcMode{initiator: true}, word: [4]byte{0x20, 0x07}, cause: iwarp.LLPNoRTR},
		"initiator, answer to an atomic":         {m: rcMode{initiator: true}, before: func(p *rcPeer) { p.post(1, OpAtomicFetchAndAdd, 8) }, word: [4]byte{0x20, 0x06}, cause: rdmap.UnexpectedOpcode},
		"initiator, answer to Immediate Data":    {m: rcMode{initiator: true}, before: func(p *rcPeer) { p.post(1, OpRDMAWriteWithImm, 8) }, word: [4]byte{0x20, 0x06}, cause: rdmap.UnexpectedOpcode},
		"initiator, answer to too many Reads":    {m: rcMode{initiator: true}, before: func(p *rcPeer) { p.post(1, OpRDMARead, 8) }, word: [4]byte{0x20, 0x07}, cause: rdmap.StreamCatastrophic},
		"initiator, RFC 5040's order":            {m: rcMode{initiator: true}, before: send, word: [4]byte{0x02, 0x06}, cause: rdmap.UnexpectedOpcode},
		"behind our Reply and an empty Write":    {before: func(p *rcPeer) { p.say(p.write(0, 0, 0)) }, word: [4]byte{0x20, 0x07}, cause: iwarp.LLPNoRTR},
		"responder that has spoken":              {before: func(p *rcPeer) { p.say(p.write(0, 0, 0)); send(p) }, word: [4]byte{0x20, 0x06}, cause: rdmap.UnexpectedOpcode},
		"responder that has answered":            {before: func(p *rcPeer) { p.say(p.read(p.rw.RKey(), 0, 8)) }, word: [4]byte{0x20, 0x06}, cause: rdmap.UnexpectedOpcode},
		"responder that has spoken first":        {before: func(p *rcPeer) { send(p); p.sleep(speakAfter) }, word: [4]byte{0x20, 0x06}, cause: rdmap.UnexpectedOpcode},
		"responder that was not let speak first": {before: send, word: [4]byte{0x20, 0x06}, cause: iwarp.LLPResources},
	} {
		t.Run(what, func(t *testing.T) {
			p := newRCPeer(t, row.m)
			if row.before != nil {
				row.before(p)
				p.heard()
			}
			p.say(p.untagged(rdmap.Terminate, row.word[:]))
			p.over(&iwarp.TerminateError{Cause: row.cause, Remote: true})
		})
	}
}

// A copy of the header that is cut off, or makes no sense, does no harm.
func TestRC_blameCutOff(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	said := p.posted()[1]
	var term rdmap.Term
	term.Blame(rdmap.InvalidSTag, said, len(said))
	var whole [rdmap.TermMaxLen]byte
	n := term.Put(whole[:])
	for cut := rdmap.TermMinLen; cut < n; cut++ {
		p := newRCPeer(t, rcMode{initiator: true})
		p.posted()
		p.say(p.untagged(rdmap.Terminate, whole[:cut]))
		wrid := uint64(0)
		if cut >= 6+ddp.UntaggedLen {
			wrid = 2 // the MSN tells
		}
		p.blamed(wrid, RemAccessErr, rdmap.InvalidSTag)
	}
}

// Both ends end the connection at the same time: nobody answers the other's
// Terminate.
func TestRC_terminatesCross(t *testing.T) {
	p := newRCPeer(t, rcMode{initiator: true})
	p.postRecvs(1, bufLen)
	bad := p.write(1, 0, 8)
	p.say(bad, p.terminate(&rdmap.Term{Cause: iwarp.LLPCatastrophic}))
	p.heardTerminate(wantTerminate(ddp.InvalidSTag, "MD", bad))
	p.flushed(1, 0, false)
	p.over(&iwarp.TerminateError{Cause: ddp.InvalidSTag})
}

// What Linux's siw puts up with, and so do we (probe-responder of the notes on
// it); the rest of what it was asked is in refusals.
func TestRC_accepts(t *testing.T) {
	for mode, m := range rcModes {
		for what, say := range map[string]func(p *rcPeer){
			"Write of nothing, STag 0":       func(p *rcPeer) { p.say(p.write(0, 0, 0)) },
			"Write of nothing, unknown STag": func(p *rcPeer) { p.say(p.write(99, 1<<63, 0)) },
			"Write of nothing, offset 2^64 - 1": func(p *rcPeer) {
				p.say(p.write(p.rw.RKey(), 1<<64-1, 0))
			},
			"reserved bits of DDP": func(p *rcPeer) {
				p.say(not(p.write(p.rw.RKey(), 0, 8), 0, 0xfd), not(p.write(p.rw.RKey(), 0, 8), 0, 0xbd))
			},
			"reserved bits of RDMAP": func(p *rcPeer) { p.say(not(p.write(p.rw.RKey(), 0, 8), 1, 0x70)) },
			"garbage instead of a CRC": func(p *rcPeer) {
				b := p.fpdu(p.write(p.rw.RKey(), 0, 8))
				if !p.tx.CRC {
					binary.BigEndian.PutUint32(b[len(b)-4:], 0xdeadbeef)
				}
				p.s.feed(b)
				p.step()
			},
			"garbage instead of a pad": func(p *rcPeer) {
				b := p.fpdu(p.write(p.rw.RKey(), 0, 9))
				if !p.tx.CRC {
					b[len(b)-5] = 0xff
				}
				p.s.feed(b)
				p.step()
			},
			"Write without L, and another one": func(p *rcPeer) {
				p.say(more(p.write(p.rw.RKey(), 0, 8)), p.write(p.rw.RKey(), 100, 8), p.write(p.rw.RKey(), 8, 8))
			},
			"longest FPDUs": func(p *rcPeer) {
				p.postRecvs(2, bufLen)
				p.say(p.send(60_000))
				if n := 65535 - ddp.UntaggedLen; !p.tx.Markers { // else a marker could not point back to its length
					p.say(p.send(n))
				} else {
					p.say(p.send(60_001))
				}
				p.completed(p.rcq, statuses{100: Success, 101: Success})
			},
			"a Write inside a Send": func(p *rcPeer) {
				p.postRecvs(1, bufLen)
				p.say(more(p.send(8)))
				p.say(p.write(p.rw.RKey(), 0, 64))
				p.msn[0]--
				p.say(not(p.send(8), 17, 8))
				p.completed(p.rcq, statuses{100: Success})
			},
		} {
			t.Run(mode+"/"+what, func(t *testing.T) {
				p := newRCPeer(t, m)
				say(p)
				if all := p.heard(); len(all) > 0 || p.s.finished || p.q.State() != StateRTS {
					t.Fatalf("not accepted: %x", all)
				}
				p.postRecvs(1, bufLen)
				p.say(p.send(4))
				p.completed(p.rcq, statuses{100: Success})
				p.untouched([2]int{slabRW, slabRW + 108}, [2]int{slabBuf, slabBuf + bufLen})
			})
		}
	}
}

// A Read of nothing asks for no right.
func TestRC_readOfNothing(t *testing.T) {
	for _, key := range []uint32{0, 99} {
		p := newRCPeer(t, rcMode{})
		p.say(p.read(key, 1<<63, 0))
		all := p.heard()
		want := withBody(&ddp.Header{Tagged: true, Last: true, ULP: rdmap.Control(rdmap.ReadResponse), STag: 0x100, TO: 0x10000}, nil)
		if len(all) != 1 || string(all[0]) != string(want) {
			t.Errorf("answered %x, want %x", all, want)
		}
	}
}

// The peer ends its half: between FPDUs that is in order, inside of one, or of
// a message, it is not.
func TestRC_peerEnds(t *testing.T) {
	for what, row := range map[string]struct {
		say  func(p *rcPeer)
		lost bool
	}{
		"between FPDUs": {func(p *rcPeer) { p.say(p.send(4)) }, false},
		"inside an FPDU": {func(p *rcPeer) {
			p.s.feed(p.fpdu(p.send(4))[:11])
		}, true},
		"after the length": {func(p *rcPeer) { p.s.feed(p.fpdu(p.send(4))[:1]) }, true},
		"inside a Send":    {func(p *rcPeer) { p.say(more(p.send(4))) }, true},
		"inside a Read Response": {func(p *rcPeer) {
			p.say(more(p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 8)))
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			p := newRCPeer(t, rcMode{initiator: true})
			p.postRecvs(1, 8)
			p.post(1, OpRDMARead, 16)
			p.heard()
			row.say(p)
			p.s.end()
			p.step()
			want := statuses{1: WRFlushErr}
			err := error(nil)
			if row.lost {
				want[1], err = RetryExcErr, iwarp.LLPLost
			}
			p.completed(p.scq, want)
			drain(p.rcq)
			if p.q.State() != StateErr || !p.s.closed || p.s.aborted != row.lost {
				t.Errorf("state %v, closed %v, aborted %v", p.q.State(), p.s.closed, p.s.aborted)
			}
			p.over(err)
		})
	}
}
