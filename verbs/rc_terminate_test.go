package verbs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// refusal is something that a peer must not say, and what it gets.
type refusal struct {
	what   string
	recvs  int                    // receives of bufLen that are posted
	before func(*rcPeer)          // what is in order
	bad    func(p *rcPeer) []byte // ULPDU
	cause  iwarp.Cause
	copied string    // of the Terminate: M, D, R
	event  EventType // default EventQPReqErr
	// short: the first receive completes with LocLenErr; else all are flushed.
	short bool
	// into is how many bytes were placed before the error was found.
	into int
	siw  string // what Linux's siw answers, if it is something else, and why we do not
}

// The causes that are not here are never sent:
//   - RDMAP 0/00, 2/08 and 2/ff: our own failures, which are panics, and causes
//     that have a better name. DDP 0/00 is sent for want of one.
//   - RDMAP 1/ff: likewise.
//   - LLP 0/01, the connection is lost: there is no way to say so.
//   - LLP 0/04 and 0/06, start-up: see TestConnect_terminates. LLP 0/07 at an
//     initiator likewise; at a responder it is TestRC_noFirstMessage.
var refusals = []refusal{
	// Tagged segments (RFC 5041, section 7.1).
	{what: "Write, unknown STag", bad: func(p *rcPeer) []byte { return p.write(p.rw.RKey()+1<<8, 0, 64) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},
	{what: "Write, wrong key byte", bad: func(p *rcPeer) []byte { return p.write(p.rw.RKey()^1, 0, 64) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},
	{what: "Write, STag 0", bad: func(p *rcPeer) []byte { return p.write(0, 0, 1) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},
	{what: "Write across the end", bad: func(p *rcPeer) []byte { return p.write(p.rw.RKey(), regionLen-63, 64) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Write behind the end", bad: func(p *rcPeer) []byte { return p.write(p.rw.RKey(), regionLen, 1) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Write before a window", bad: func(p *rcPeer) []byte { return p.write(p.window(p.q).RKey(), 63, 2) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Write behind a window, inside its region", bad: func(p *rcPeer) []byte { return p.write(p.window(p.q).RKey(), 127, 2) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Write past 2^64", bad: func(p *rcPeer) []byte { return p.write(p.rw.RKey(), math.MaxUint64-7, 64) },
		cause: ddp.TOWrap, copied: "MD", event: EventQPAccessErr},
	{what: "Write without the right", bad: func(p *rcPeer) []byte { return p.write(p.local.RKey(), 0, 64) },
		cause: rdmap.AccessRights, copied: "MD", event: EventQPAccessErr, siw: "DDP 1/00: DDP has no code for rights, RDMAP has"},
	{what: "Write, foreign protection domain", bad: func(p *rcPeer) []byte { return p.write(p.foreign.RKey(), 0, 64) },
		cause: ddp.NotAssociated, copied: "MD", event: EventQPAccessErr},
	{what: "Write, window of another queue pair", bad: func(p *rcPeer) []byte { return p.write(p.window(p.other).RKey(), 64, 1) },
		cause: ddp.NotAssociated, copied: "MD", event: EventQPAccessErr},
	{what: "Write, second segment out of bounds", before: func(p *rcPeer) { p.say(more(p.write(p.rw.RKey(), regionLen-8, 8))) },
		bad:   func(p *rcPeer) []byte { return p.write(p.rw.RKey(), regionLen, 8) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Write behind the Send that has invalidated its STag", recvs: 1, before: func(p *rcPeer) { p.say(p.invalidate(p.inv.RKey())) },
		bad:   func(p *rcPeer) []byte { return p.write(p.gone, 0, 8) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},
	{what: "Write, DDP version 0", bad: func(p *rcPeer) []byte { return not(p.write(p.rw.RKey(), 0, 8), 0, 0xc0) },
		cause: ddp.TaggedVersion},
	{what: "Write, DDP version 2", bad: func(p *rcPeer) []byte { return not(p.write(p.rw.RKey(), 0, 8), 0, 0xc2) },
		cause: ddp.TaggedVersion},

	// Read Responses.
	{what: "Read Response nobody asked for", bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.rw.RKey(), 0, 64) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr, siw: "DDP 0/00, as for a failure of its own"},
	{what: "Read Response, another STag", before: asks, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.rw.RKey(), 0, 64) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response, another offset", before: asks, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 1, 64) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response, too long", before: asks, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 65) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response, ends early", before: asks, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 63) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response, empty", before: asks, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 0) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response, does not end", before: asks, bad: func(p *rcPeer) []byte { return more(p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 64)) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response with a hole", before: func(p *rcPeer) {
		asks(p)
		p.say(more(p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 32)))
	}, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 33, 31) },
		cause: ddp.BaseBounds, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response twice", before: func(p *rcPeer) {
		asks(p)
		p.say(p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 64))
	}, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 64) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},
	{what: "Read Response for an atomic", before: func(p *rcPeer) { p.post(50, OpAtomicFetchAndAdd, 8) },
		bad:   func(p *rcPeer) []byte { return p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 8) },
		cause: ddp.InvalidSTag, copied: "MD", event: EventQPAccessErr},

	// Read Requests and atomics (RFC 5040, section 7.1).
	{what: "Read, unknown STag", bad: func(p *rcPeer) []byte { return p.read(p.rw.RKey()+1<<8, 0, 64) },
		cause: rdmap.InvalidSTag, copied: "MDR", event: EventQPAccessErr},
	{what: "Read, wrong key byte", bad: func(p *rcPeer) []byte { return p.read(p.rw.RKey()^1, 0, 64) },
		cause: rdmap.InvalidSTag, copied: "MDR", event: EventQPAccessErr},
	{what: "Read across the end", bad: func(p *rcPeer) []byte { return p.read(p.rw.RKey(), 8, regionLen) },
		cause: rdmap.BaseBounds, copied: "MDR", event: EventQPAccessErr},
	{what: "Read of 4 GiB", bad: func(p *rcPeer) []byte { return p.read(p.rw.RKey(), 8, math.MaxUint32) },
		cause: rdmap.BaseBounds, copied: "MDR", event: EventQPAccessErr},
	{what: "Read past 2^64", bad: func(p *rcPeer) []byte { return p.read(p.rw.RKey(), math.MaxUint64-7, 64) },
		cause: rdmap.TOWrap, copied: "MDR", event: EventQPAccessErr},
	{what: "Read without the right", bad: func(p *rcPeer) []byte { return p.read(p.local.RKey(), 0, 64) },
		cause: rdmap.AccessRights, copied: "MDR", event: EventQPAccessErr, siw: "the data: it does not check this right"},
	{what: "Read, foreign protection domain", bad: func(p *rcPeer) []byte { return p.read(p.foreign.RKey(), 0, 64) },
		cause: rdmap.NotAssociated, copied: "MDR", event: EventQPAccessErr},
	{what: "Read, window of another queue pair", bad: func(p *rcPeer) []byte { return p.read(p.window(p.other).RKey(), 64, 1) },
		cause: rdmap.NotAssociated, copied: "MDR", event: EventQPAccessErr},
	{what: "Reads beyond the IRD", before: reads(16), bad: func(p *rcPeer) []byte { return p.read(p.rw.RKey(), 0, 8) },
		cause: rdmap.StreamCatastrophic, copied: "MDR", siw: "the same, without a copy of the Read Request's own header"},
	{what: "Read Request, MSN + 1", bad: func(p *rcPeer) []byte { p.msn[1]++; return p.read(p.rw.RKey(), 0, 8) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Read Request, MSN 0", bad: func(p *rcPeer) []byte { p.msn[1]--; return p.read(p.rw.RKey(), 0, 8) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Read Request, too long", bad: func(p *rcPeer) []byte { return append(p.read(p.rw.RKey(), 0, 8), 0, 0, 0, 0) },
		cause: ddp.MessageTooLong, copied: "MD", siw: "FIN without a word"},
	{what: "Read Request, too short", bad: func(p *rcPeer) []byte { b := p.read(p.rw.RKey(), 0, 8); return b[:len(b)-4] },
		cause: rdmap.OperationUnspecified, copied: "MD", siw: "nothing: it waits for the rest"},
	{what: "Read Request that goes on", bad: func(p *rcPeer) []byte { return more(p.read(p.rw.RKey(), 0, 8)) },
		cause: ddp.MessageTooLong, copied: "MD"},
	{what: "Read Request, MO 4", bad: func(p *rcPeer) []byte { return not(p.read(p.rw.RKey(), 0, 8), 17, 4) },
		cause: ddp.InvalidMO, copied: "MD"},
	{what: "Read Request on queue 0", bad: func(p *rcPeer) []byte { return not(p.read(p.rw.RKey(), 0, 8), 9, 0) },
		cause: ddp.InvalidQN, copied: "MD"},
	{what: "atomic, unknown STag", bad: func(p *rcPeer) []byte { return p.atomic(rdmap.FetchAdd, p.rw.RKey()^1, 0) },
		cause: rdmap.InvalidSTag, copied: "MDR", event: EventQPAccessErr},
	{what: "atomic across the end", bad: func(p *rcPeer) []byte { return p.atomic(rdmap.Swap, p.rw.RKey(), regionLen) },
		cause: rdmap.BaseBounds, copied: "MDR", event: EventQPAccessErr},
	{what: "atomic without the right", bad: func(p *rcPeer) []byte { return p.atomic(rdmap.CmpSwap, p.local.RKey(), 0) },
		cause: rdmap.AccessRights, copied: "MDR", event: EventQPAccessErr},
	{what: "atomic, misaligned", bad: func(p *rcPeer) []byte { return p.atomic(rdmap.FetchAdd, p.rw.RKey(), 4) },
		cause: rdmap.StreamCatastrophic, copied: "MDR"},
	{what: "atomic, region that is not aligned", bad: func(p *rcPeer) []byte {
		return p.atomic(rdmap.FetchAdd, p.region(p.pd, slabRW+4, 16, LocalWrite|RemoteAtomic).RKey(), 0)
	}, cause: rdmap.StreamCatastrophic, copied: "MDR"},
	{what: "atomic, unknown operation", bad: func(p *rcPeer) []byte { return p.atomic(3, p.rw.RKey(), 0) },
		cause: rdmap.UnexpectedOpcode, copied: "MDR"},
	{what: "atomics beyond the IRD", before: reads(16), bad: func(p *rcPeer) []byte { return p.atomic(rdmap.FetchAdd, p.rw.RKey(), 0) },
		cause: rdmap.StreamCatastrophic, copied: "MDR"},
	{what: "atomic, MSN + 1", bad: func(p *rcPeer) []byte { p.msn[1]++; return p.atomic(rdmap.FetchAdd, p.rw.RKey(), 0) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "atomic response nobody asked for", bad: func(p *rcPeer) []byte { return p.untagged(rdmap.AtomicResponse, filler(rdmap.AtomicRespLen)) },
		cause: rdmap.UnexpectedOpcode, copied: "MD"},
	{what: "atomic response for a Read", before: asks, bad: func(p *rcPeer) []byte { return p.untagged(rdmap.AtomicResponse, filler(rdmap.AtomicRespLen)) },
		cause: rdmap.UnexpectedOpcode, copied: "MD"},
	{what: "atomic response for another atomic", before: func(p *rcPeer) { p.post(50, OpAtomicFetchAndAdd, 8) },
		bad:   func(p *rcPeer) []byte { return p.untagged(rdmap.AtomicResponse, filler(rdmap.AtomicRespLen)) },
		cause: rdmap.UnexpectedOpcode, copied: "MD"},
	{what: "atomic response, MSN + 1", before: func(p *rcPeer) { p.post(50, OpAtomicFetchAndAdd, 8) },
		bad: func(p *rcPeer) []byte {
			p.msn[3]++
			return p.untagged(rdmap.AtomicResponse, filler(rdmap.AtomicRespLen))
		},
		cause: ddp.MSNRange, copied: "MD"},

	// Sends (RFC 5041, section 7.2).
	{what: "Send, MSN + 1", recvs: 2, bad: func(p *rcPeer) []byte { p.msn[0]++; return p.send(4) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Send, MSN + 1, of several segments", recvs: 2, bad: func(p *rcPeer) []byte { p.msn[0]++; return more(p.send(4)) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Send twice", recvs: 2, before: func(p *rcPeer) { p.say(p.send(0)) }, bad: func(p *rcPeer) []byte { p.msn[0]--; return p.send(4) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Send inside a Send", recvs: 2, before: func(p *rcPeer) { p.say(more(p.send(0))) }, bad: func(p *rcPeer) []byte { return p.send(4) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Immediate Data inside a Send", recvs: 2, before: func(p *rcPeer) { p.say(more(p.send(0))) },
		bad:   func(p *rcPeer) []byte { return p.untagged(rdmap.Immediate, filler(rdmap.ImmLen)) },
		cause: ddp.MSNRange, copied: "MD"},
	{what: "Send, MO 8 first", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 17, 8) },
		cause: ddp.InvalidMO, copied: "MD"},
	{what: "Send with a hole", recvs: 1, before: func(p *rcPeer) { p.say(more(p.send(0))) },
		bad:   func(p *rcPeer) []byte { p.msn[0]--; return not(p.send(4), 17, 8) },
		cause: ddp.InvalidMO, copied: "MD"},
	{what: "Send that goes back", recvs: 1, before: func(p *rcPeer) { p.say(more(p.send(4))) },
		bad:   func(p *rcPeer) []byte { p.msn[0]--; return p.send(4) },
		cause: ddp.InvalidMO, copied: "MD"},
	{what: "Send, MO past 2^32", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(64), 14, 0xff, 0xff, 0xff, 0xf0) },
		cause: ddp.InvalidMO, copied: "MD"},
	{what: "Send becomes another operation", recvs: 1, before: func(p *rcPeer) { p.say(more(p.send(4))) },
		bad:   func(p *rcPeer) []byte { p.msn[0]--; return not(p.untagged(rdmap.SendSE, filler(4)), 17, 4) },
		cause: rdmap.UnexpectedOpcode, copied: "MD"},
	{what: "Send on queue 1", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 9, 1) },
		cause: ddp.InvalidQN, copied: "MD"},
	{what: "Send on queue 3", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 9, 3) },
		cause: ddp.InvalidQN, copied: "MD"},
	{what: "Send on queue 2^32 - 1", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 6, 0xff, 0xff, 0xff, 0xff) },
		cause: ddp.InvalidQN, copied: "MD"},
	{what: "Send without a receive", bad: func(p *rcPeer) []byte { return p.send(4) },
		cause: ddp.NoBuffer, copied: "MD"},
	{what: "Send of several segments without a receive", bad: func(p *rcPeer) []byte { return more(p.send(4)) },
		cause: ddp.NoBuffer, copied: "MD"},
	{what: "second Send without a receive", recvs: 1, before: func(p *rcPeer) { p.say(p.send(0)) }, bad: func(p *rcPeer) []byte { return p.send(4) },
		cause: ddp.NoBuffer, copied: "MD"},
	{what: "Immediate Data without a receive", bad: func(p *rcPeer) []byte { return p.untagged(rdmap.Immediate, filler(rdmap.ImmLen)) },
		cause: ddp.NoBuffer, copied: "MD"},
	{what: "Send, longer than the receive", before: func(p *rcPeer) { p.postRecvs(2, 3) }, recvs: -2, bad: func(p *rcPeer) []byte { return p.send(4) },
		cause: ddp.MessageTooLong, copied: "MD", short: true, siw: "DDP 2/02, no buffer"},
	{what: "Send, longer than the receive in its last segment", before: func(p *rcPeer) {
		p.postRecvs(2, 8)
		p.say(more(p.send(8)))
	}, recvs: -2, bad: func(p *rcPeer) []byte { p.msn[0]--; return not(p.send(1), 17, 8) },
		cause: ddp.MessageTooLong, copied: "MD", short: true, siw: "DDP 2/02, no buffer"},
	{what: "Immediate Data, too long", recvs: 1, bad: func(p *rcPeer) []byte { return p.untagged(rdmap.ImmediateSE, filler(rdmap.ImmLen+1)) },
		cause: ddp.MessageTooLong, copied: "MD"},
	{what: "Immediate Data, too short", recvs: 1, bad: func(p *rcPeer) []byte { return p.untagged(rdmap.ImmediateSE, filler(rdmap.ImmLen-1)) },
		cause: rdmap.OperationUnspecified, copied: "MD"},
	{what: "Send, DDP version 0", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 0, 0x40) },
		cause: ddp.UntaggedVersion},
	{what: "Send, DDP version 3", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 0, 0x43) },
		cause: ddp.UntaggedVersion},
	{what: "Send with Invalidate, unknown STag", recvs: 1, bad: func(p *rcPeer) []byte { return p.invalidate(p.rw.RKey() ^ 1) },
		cause: rdmap.OperationInvalidate, copied: "MD", into: 4, siw: "nothing: RFC 5040, section 5.3, asks for a Terminate"},
	{what: "Send with Invalidate, region that does not allow it", recvs: 1, bad: func(p *rcPeer) []byte { return p.invalidate(p.rw.RKey()) },
		cause: rdmap.CannotInvalidate, copied: "MD", into: 4, event: EventQPAccessErr, siw: "nothing: it does as told"},
	{what: "Send with Invalidate, foreign protection domain", recvs: 1, bad: func(p *rcPeer) []byte { return p.invalidate(p.foreign.RKey()) },
		cause: rdmap.CannotInvalidate, copied: "MD", into: 4, event: EventQPAccessErr},
	{what: "Send with Invalidate, window of another queue pair", recvs: 1, bad: func(p *rcPeer) []byte { return p.invalidate(p.window(p.other).RKey()) },
		cause: rdmap.CannotInvalidate, copied: "MD", into: 4, event: EventQPAccessErr},
	{what: "Send with Invalidate, region with windows", recvs: 1, bad: func(p *rcPeer) []byte { p.windowOf(p.q, p.inv); return p.invalidate(p.inv.RKey()) },
		cause: rdmap.OperationInvalidate, copied: "MD", into: 4},

	// What makes no sense at all (RFC 5040, section 7.2).
	{what: "RDMAP version 0", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 1, 0x03) },
		cause: rdmap.InvalidVersion},
	{what: "RDMAP version 2, tagged", bad: func(p *rcPeer) []byte { return not(p.write(p.rw.RKey(), 0, 4), 1, 0x80) },
		cause: rdmap.InvalidVersion},
	{what: "opcode 13", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(4), 1, 0x4d) },
		cause: rdmap.UnexpectedOpcode, copied: "MD", siw: "the same, without copies"},
	{what: "Write-Record, which is of datagrams", bad: func(p *rcPeer) []byte { return p.tagged(rdmap.WriteRecord, p.rw.RKey(), 0, 64) },
		cause: rdmap.UnexpectedOpcode, copied: "MD"},
	{what: "Send, tagged", recvs: 1, bad: func(p *rcPeer) []byte { return p.tagged(rdmap.Send, p.rw.RKey(), 0, 4) },
		cause: rdmap.UnexpectedOpcode, copied: "MD", siw: "DDP 2/01, as if a tagged segment had a queue"},
	{what: "Write, untagged", recvs: 1, bad: func(p *rcPeer) []byte { return not(p.send(16), 1, 0x40) },
		cause: rdmap.UnexpectedOpcode, copied: "MD", siw: "DDP 1/00, with what is no STag"},
	{what: "Terminate, too short", bad: func(p *rcPeer) []byte { return p.untagged(rdmap.Terminate, filler(3)) },
		cause: rdmap.OperationUnspecified, copied: "MD"},
	{what: "Terminate on queue 0", bad: func(p *rcPeer) []byte { return not(p.untagged(rdmap.Terminate, filler(4)), 9, 0) },
		cause: ddp.InvalidQN, copied: "MD"},
	{what: "untagged header that is cut off", bad: func(p *rcPeer) []byte { return p.send(4)[:17] },
		cause: ddp.LocalCatastrophic, siw: "nothing: it waits for the rest"},

	// MPA (RFC 5044, section 8).
	{what: "ULPDU of 4 bytes", bad: func(p *rcPeer) []byte { return p.send(4)[:4] },
		cause: iwarp.LLPCatastrophic, siw: "nothing: it waits for the rest"},
	{what: "ULPDU of 13 bytes", bad: func(p *rcPeer) []byte { return p.write(0, 0, 0)[:13] },
		cause: iwarp.LLPCatastrophic, siw: "nothing: it waits for the rest"},
	{what: "FPDU without a ULPDU", before: func(p *rcPeer) { p.say(p.write(0, 0, 0)) }, bad: func(p *rcPeer) []byte { return nil },
		cause: iwarp.LLPCatastrophic, siw: "nothing: it waits for the rest"},
}

// asks posts a Read of 64 bytes, which the peer has heard of.
func asks(p *rcPeer) {
	p.say(p.write(0, 0, 0)) // a responder waits for the first word
	p.post(50, OpRDMARead, 64)
	p.heard()
}

// reads has n Reads of the peer arrive that cannot be answered yet.
func reads(n int) func(p *rcPeer) {
	return func(p *rcPeer) {
		p.s.room = 0
		for range n {
			p.say(p.read(p.rw.RKey(), 0, 8))
		}
	}
}

// window binds a window to bytes 64 to 128 of the region with all rights.
func (p *rcPeer) window(q *QP) *MW { return p.windowOf(q, p.rw) }

func (p *rcPeer) windowOf(q *QP, m *MR) *MW {
	w, err := p.pd.AllocMW()
	ok(p, err)
	ok(p, (&Bind{MW: w, MR: m, Offset: 64, Length: 64, Access: RemoteRead | RemoteWrite | RemoteAtomic}).do(q))
	return w
}

// wantTerminate builds the Terminate of RFC 5040, section 4.8, from its bits.
func wantTerminate(cause iwarp.Cause, copied string, bad []byte) []byte {
	u := []byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0} // L, version 1; Terminate; queue 2, MSN 1, MO 0
	u = binary.BigEndian.AppendUint16(u, uint16(cause))
	bits := map[string]byte{"": 0, "MD": 0xc0, "MDR": 0xe0}[copied]
	if u = append(u, bits, 0); bits == 0 {
		return u
	}
	u = binary.BigEndian.AppendUint16(u, uint16(len(bad)))
	header := 18
	if bad[0]&0x80 != 0 {
		header = 14
	}
	if copied == "MDR" {
		header = len(bad) // of requests all is header
	}
	return append(u, bad[:header]...)
}

// Each thing that a peer must not say gets its Terminate, then FIN. The queue
// pair goes to Err, everything outstanding is flushed once, memory that was not
// granted is as it was, and the connection manager hears why.
func TestRC_refuses(t *testing.T) {
	for mode, m := range rcModes {
		for i := range refusals {
			f := &refusals[i]
			t.Run(mode+"/"+f.what, func(t *testing.T) { f.run(newRCPeer(t, m)) })
		}
	}
}

func (f *refusal) run(p *rcPeer) {
	recvs := max(f.recvs, -f.recvs)
	if f.recvs > 0 {
		p.postRecvs(f.recvs, bufLen)
	}
	p.gone = p.inv.RKey()
	if f.before != nil {
		f.before(p)
	}
	p.heard()
	done := drain(p.rcq)
	drain(p.scq)
	asked := p.q.rc.requests.tail != p.q.rc.requests.head
	bad := f.bad(p)
	copy(p.was, p.slab)
	p.say(bad, p.write(p.rw.RKey(), 0, 64)) // what comes behind is not heard
	p.s.grant(1 << 20)
	p.heardTerminate(wantTerminate(f.cause, f.copied, bad))
	p.untouched([2]int{slabBuf, slabBuf + f.into})
	p.flushed(recvs, len(done), f.short)
	if want := map[bool]statuses{true: {50: WRFlushErr}, false: {}}[asked]; true {
		p.completed(p.scq, want)
	}
	event := f.event
	if event == 0 {
		event = EventQPReqErr
	}
	if got := p.asyncEvents(); len(got) != 1 || got[0] != event {
		p.Errorf("events %v, want %v", got, event)
	}
	p.over(&iwarp.TerminateError{Cause: f.cause})
}

// heardTerminate checks that the last that was said is want.
func (p *rcPeer) heardTerminate(want []byte) {
	p.Helper()
	all := p.heard()
	if len(all) == 0 || !bytes.Equal(all[len(all)-1], want) {
		p.Errorf("said %.400x\nwant %x", all, want)
	}
}

// flushed checks that n receives were flushed, but for the first done ones;
// short: the next one was too short.
func (p *rcPeer) flushed(n, done int, short bool) {
	p.Helper()
	want := statuses{}
	for i := done; i < n; i++ {
		want[uint64(100+i)] = WRFlushErr
	}
	if short {
		want[uint64(100+done)] = LocLenErr
	}
	p.completed(p.rcq, want)
}

// A bad CRC, a marker that is none, and a length in the stream that has neither
// header nor end: what MPA itself refuses.
func TestRC_refusesFPDU(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, bit := range []int{0, 8, 9, 70, 100, 300} { // not the length: then the rest would be waited for
			p := newRCPeer(t, rcMode{crc: true, markers: markers})
			p.postRecvs(1, bufLen)
			b := p.fpdu(p.send(20))
			b[6+bit/8] ^= 1 << (bit % 8)
			p.s.feed(b)
			p.heardTerminate(wantTerminate(iwarp.LLPCRC, "", nil))
			p.flushed(1, 0, false)
			p.completed(p.scq, nil)
			p.untouched()
			if got := fmt.Sprint(p.asyncEvents()); got != fmt.Sprint([]EventType{EventQPReqErr}) {
				t.Errorf("events %v", got)
			}
			p.over(&iwarp.TerminateError{Cause: iwarp.LLPCRC})
		}
	}
	p := newRCPeer(t, rcMode{markers: true})
	p.postRecvs(1, bufLen)
	b := p.fpdu(p.send(1000))
	b[512+3] ^= 4 // FPDUPTR of the second marker; the first one begins the stream
	p.s.feed(b)
	p.heardTerminate(wantTerminate(iwarp.LLPMarker, "", nil))
	p.flushed(1, 0, false)
	p.untouched()
	p.over(&iwarp.TerminateError{Cause: iwarp.LLPMarker})
}

// In peer-to-peer mode the first message must come in time.
func TestRC_noFirstMessage(t *testing.T) {
	for _, kind := range []mpa.RTR{mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead} {
		p := newRCPeer(t, rcMode{rtr: kind})
		p.postRecvs(1, bufLen)
		p.post(1, OpSend, 8)
		p.sleep(mpa.RequestTimeout - 1)
		if all := p.heard(); len(all) > 0 {
			t.Fatalf("a responder speaks first: %x", all)
		}
		p.sleep(1)
		p.heardTerminate(wantTerminate(iwarp.LLPNoRTR, "", nil))
		p.flushed(1, 0, false)
		p.completed(p.scq, statuses{1: WRFlushErr})
		p.s.end()
		if e := p.event(p.id, CMConnectError); !isTerminate(e.Err, iwarp.LLPNoRTR, false) {
			t.Errorf("%v", e.Err)
		}
	}
}

// A region that is read is revoked before the answer is out.
func TestRC_revoked(t *testing.T) {
	for _, under := range []bool{false, true} { // part of the answer is out
		p := newRCPeer(t, rcMode{})
		m := p.region(p.pd, 0, slabSize, LocalWrite|RemoteRead)
		read := p.read(m.RKey(), 0, 20_000)
		p.s.room = 0
		if under {
			p.s.room = 5000
		}
		p.say(read)
		ok(t, m.Dereg())
		p.s.grant(1 << 20)
		p.heardTerminate(wantTerminate(rdmap.InvalidSTag, "MDR", read))
		p.untouched()
		p.over(&iwarp.TerminateError{Cause: rdmap.InvalidSTag})
	}
}

// A peer that does not close, or does not even read, does not keep us.
func TestRC_refusesDeafPeer(t *testing.T) {
	for _, room := range []int{0, 1, 1 << 20} {
		p := newRCPeer(t, rcMode{})
		p.s.room = room
		p.say(p.send(4))
		p.sleep(closeAfter - 1)
		if p.s.closed {
			t.Fatal("closed too early")
		}
		p.sleep(mono.Duration(1))
		if !p.s.closed || p.s.aborted == p.s.finished {
			t.Errorf("closed %v, aborted %v behind a FIN: %v", p.s.closed, p.s.aborted, p.s.finished)
		}
		p.over(&iwarp.TerminateError{Cause: ddp.NoBuffer})
	}
}

// An initiator that cannot live with the Reply says so, framed as the Reply asks
// for: with it the responder is in full operation.
func TestConnect_terminates(t *testing.T) {
	for what, row := range map[string]struct {
		p     ConnParam
		reply mpa.Config // what the responder says
		bad   func(reply []byte) []byte
		cause iwarp.Cause
	}{
		"not a Reply":              {bad: func([]byte) []byte { return filler(20) }, cause: iwarp.LLPStartup},
		"too many Reads":           {p: ConnParam{ResponderResources: 2}, bad: func(b []byte) []byte { return not(b, 23, 3) }, cause: iwarp.LLPResources},
		"CRC, asked for by us":     {p: ConnParam{ResponderResources: 2, CRC: true}, bad: func(b []byte) []byte { return not(b, 23, 3) }, cause: iwarp.LLPResources},
		"CRC, asked for by it":     {p: ConnParam{ResponderResources: 2}, reply: mpa.Config{CRC: true}, bad: func(b []byte) []byte { return not(b, 23, 3) }, cause: iwarp.LLPResources},
		"markers, asked for by it": {p: ConnParam{ResponderResources: 2}, reply: mpa.Config{Markers: true}, bad: func(b []byte) []byte { return not(b, 23, 3) }, cause: iwarp.LLPResources},
	} {
		t.Run(what, func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.requesting(row.p)
			seen := len(s.sent)
			s.feed(row.bad(r.reply(s, row.reply, "")))
			e := r.event(id, CMConnectError)
			rx := mpa.Rx{CRC: row.reply.CRC || row.p.CRC, Markers: row.reply.Markers}
			u, n, _, _, good := rx.Next(s.sent[seen:])
			if !good || n != len(s.sent)-seen || !bytes.Equal(u, wantTerminate(row.cause, "", nil)) {
				t.Errorf("said %x", s.sent[seen:])
			}
			if !errors.Is(e.Err, row.cause) || !s.closed || s.aborted {
				t.Errorf("%v; closed %v, aborted %v", e.Err, s.closed, s.aborted)
			}
		})
	}
}

// In peer-to-peer mode the responder hears an empty Write before it hears why it
// is over, and there is time on both sides of it: a Terminate that comes first, or
// in one piece with the Write, is the end of a host with Linux's siw.
func TestConnect_terminatesPeerToPeer(t *testing.T) {
	emptyWrite := []byte{0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	for what, row := range map[string]struct {
		p     ConnParam
		reply mpa.Config
		bad   func(reply []byte) []byte
		cause iwarp.Cause
	}{
		"Write for a Send":      {p: ConnParam{RTR: mpa.RTRSend}, reply: mpa.Config{RTR: mpa.RTRWrite}, cause: iwarp.LLPNoRTR},
		"Send for a Write, CRC": {p: ConnParam{RTR: mpa.RTRWrite, CRC: true}, reply: mpa.Config{CRC: true, RTR: mpa.RTRSend}, cause: iwarp.LLPNoRTR},
		"markers":               {p: ConnParam{RTR: mpa.RTRSend}, reply: mpa.Config{Markers: true, RTR: mpa.RTRWrite}, cause: iwarp.LLPNoRTR},
		"too many Reads":        {p: ConnParam{RTR: mpa.RTRWrite, ResponderResources: 2}, bad: func(b []byte) []byte { return not(b, 23, 3) }, cause: iwarp.LLPResources},
		"not a Reply":           {p: ConnParam{RTR: mpa.RTRWrite}, bad: func([]byte) []byte { return filler(20) }, cause: iwarp.LLPStartup},
	} {
		t.Run(what, func(t *testing.T) {
			r := newCMRig(t)
			id, s := r.requesting(row.p)
			seen := len(s.sent)
			reply := r.reply(s, row.reply, "")
			if row.bad != nil {
				reply = row.bad(reply)
			}
			s.feed(reply)
			rx := mpa.Rx{CRC: row.reply.CRC || row.p.CRC, Markers: row.reply.Markers}
			for _, want := range [][]byte{emptyWrite, wantTerminate(row.cause, "", nil)} {
				r.noEvent()
				r.expect(id, IDTerminating)
				if len(s.sent) > seen || s.finished || s.closed {
					t.Fatalf("%x is said at once; FIN %v, closed %v", s.sent[seen:], s.finished, s.closed)
				}
				r.clock.now = r.clock.now.Add(nudgeAfter)
				r.step()
				u, n, _, _, good := rx.Next(s.sent[seen:])
				if !good || n != len(s.sent)-seen || !bytes.Equal(u, want) {
					t.Fatalf("said %x, want %x", s.sent[seen:], want)
				}
				seen = len(s.sent)
			}
			if e := r.event(id, CMConnectError); !errors.Is(e.Err, row.cause) || !s.closed || s.aborted {
				t.Errorf("%v; closed %v, aborted %v", e.Err, s.closed, s.aborted)
			}
		})
	}
}

// A peer that goes while it is being told why does not keep the user waiting.
func TestConnect_terminatesWhoGoes(t *testing.T) {
	r := newCMRig(t)
	id, s := r.inState(IDTerminating)
	s.feed(filler(2 * frameRoom)) // is not looked at
	s.end()
	if e := r.event(id, CMConnectError); !errors.Is(e.Err, iwarp.LLPNoRTR) || !s.closed {
		t.Errorf("%v; closed %v", e.Err, s.closed)
	}
}
