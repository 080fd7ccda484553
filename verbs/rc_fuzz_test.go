package verbs

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// fuzzMode tells from one byte how a connection is made. Without CRC: a
// mutation would not get past it.
func fuzzMode(b byte) rcMode {
	return rcMode{markers: b&1 != 0, initiator: b&2 != 0, srq: b&4 != 0, rtr: []mpa.RTR{0, 0, mpa.RTRSend, mpa.RTRRead}[b>>3&3]}
}

// fuzzedPeer is a peer of a queue pair with something of everything outstanding.
func fuzzedPeer(t testing.TB, mode byte) (p *rcPeer, sends, recvs int) {
	p = newRCPeer(t, fuzzMode(mode))
	recvs = 3
	p.postRecvs(recvs, 600)
	if p.q.State() == StateRTS {
		for i, op := range posted {
			p.post(uint64(i+1), op, 8)
		}
		sends = len(posted)
	}
	if mode&32 != 0 {
		p.s.room = 100
	}
	p.step()
	return p, sends, recvs
}

// settled holds a queue pair to what must be true after any input: it has hurt
// no memory that was not granted, and once the connection is over everything
// has completed once, and nothing is left.
func (p *rcPeer) settled(sends, recvs int) {
	p.Helper()
	p.step()
	p.untouched([2]int{slabRW, slabRW + regionLen}, [2]int{slabInv, slabInv + regionLen}, [2]int{slabBuf, slabBuf + 600})
	p.s.end()
	p.s.grant(1 << 20)
	p.step()
	for range 3 {
		p.sleep(closeAfter + mpa.RequestTimeout)
	}
	if !p.s.closed || p.q.State() != StateErr {
		p.Fatalf("stream closed %v, state %v", p.s.closed, p.q.State())
	}
	ends := 0
	for e, got := p.ch.GetEvent(); got; e, got = p.ch.GetEvent() {
		if e.Type == CMDisconnected || e.Type == CMConnectError {
			ends++
		}
	}
	once := map[uint64]bool{}
	for _, wc := range append(drain(p.scq), drain(p.rcq)...) {
		if once[wc.WRID] {
			p.Errorf("twice: %+v", wc)
		}
		once[wc.WRID] = true
	}
	if p.srq != nil {
		recvs -= p.srq.Len()
	}
	if r := p.q.rc; ends != 1 || len(once) != sends+recvs || r.rest != nil || r.in.part != nil || r.in.msg.used {
		p.Errorf("%d ends, %d completions for %d and %d requests, left %d, %d", ends, len(once), sends, recvs, len(r.rest), len(r.in.part))
	}
}

// Any bytes behind the start-up: no panic, no memory but what was granted, no
// hang, and everything completes once.
func FuzzRC_bytes(f *testing.F) {
	p := newRCPeer(f, rcMode{})
	for mode := range byte(64) {
		f.Add(mode, p.fpdu(p.send(4)))
	}
	f.Add(byte(0), p.fpdu(p.write(1, 0, 0)))
	f.Add(byte(2), []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, mode byte, b []byte) {
		p, sends, recvs := fuzzedPeer(t, mode)
		p.s.feed(b)
		p.settled(sends, recvs)
	})
}

// fuzzStream makes messages from a recipe of 4 bytes each: which one, how long,
// and a byte of it that is changed.
func (p *rcPeer) fuzzStream(recipe []byte) (all [][]byte) {
	for ; len(recipe) >= 4; recipe = recipe[4:] {
		n := int(recipe[1]) * 3
		var u []byte
		switch recipe[0] % 16 {
		case 0, 1:
			u = p.send(n)
		case 2:
			u = more(p.send(n))
		case 3: // the next segment of the last one
			p.msn[0]--
			u = p.send(n)
			binary.BigEndian.PutUint32(u[14:], p.q.rc.in.msg.len)
		case 4:
			u = p.write(p.rw.RKey(), uint64(recipe[2])*2, n)
		case 5:
			u = p.write(p.inv.RKey(), uint64(recipe[2]), n)
		case 6:
			u = p.read(p.rw.RKey(), uint64(recipe[2]), uint32(n))
		case 7:
			u = p.atomic(rdmap.AtomicOp(recipe[1]%4), p.rw.RKey(), uint64(recipe[2]))
		case 8:
			u = p.invalidate(p.inv.RKey())
		case 9:
			u = p.untagged(rdmap.Immediate, filler(rdmap.ImmLen))
		case 10, 11:
			u = p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, 8)
		case 12:
			u = more(p.tagged(rdmap.ReadResponse, p.buf.LKey(), 0, n%8))
		case 13:
			var b [rdmap.AtomicRespLen]byte
			(&rdmap.AtomicResp{ID: p.oldestName(), Value: 5}).Put(b[:])
			u = p.untagged(rdmap.AtomicResponse, b[:])
		case 14:
			var t rdmap.Term
			if len(all) > 0 {
				t.Blame(iwarp.Cause(recipe[1])<<4, all[0], len(all[0]))
			}
			u = p.terminate(&t)
		case 15:
			u = filler(n)
		}
		if recipe[3] != 0 {
			at := int(recipe[2]) % max(min(len(u), ddp.UntaggedLen+rdmap.AtomicReqLen), 1)
			if at < len(u) {
				u[at] ^= recipe[3]
			}
		}
		all = append(all, u)
	}
	return all
}

func (p *rcPeer) oldestName() uint32 {
	if w := p.q.rc.oldest(); w != nil {
		return w.name
	}
	return 0
}

// Messages that are right, or nearly: they get further than any bytes.
func FuzzRC_messages(f *testing.F) {
	for mode := range byte(64) {
		f.Add(mode, []byte{4, 10, 10, 0, 10, 0, 0, 0, 10, 0, 0, 0, 13, 0, 0, 0, 0, 9, 0, 0, 2, 5, 0, 0, 3, 5, 0, 0, 6, 5, 9, 0, 7, 0, 8, 0, 8, 0, 0, 0, 9, 0, 0, 0})
		f.Add(mode, []byte{14, 0x11, 0, 0})
		f.Add(mode, []byte{4, 10, 10, 0, 0, 9, 13, 1, 4, 1, 9, 255})
	}
	f.Fuzz(func(t *testing.T, mode byte, recipe []byte) {
		if len(recipe) > 400 {
			return
		}
		p, sends, recvs := fuzzedPeer(t, mode)
		for _, u := range p.fuzzStream(recipe) {
			p.s.feed(p.fpdu(u))
			if mode&64 != 0 {
				p.step()
			}
		}
		p.settled(sends, recvs)
	})
}

// However a stream is cut, the same comes of it.
func FuzzRC_segments(f *testing.F) {
	f.Add(byte(0), []byte{4, 10, 10, 0, 0, 9, 0, 0, 2, 5, 0, 0, 3, 5, 0, 0, 6, 5, 9, 0}, []byte{1, 2, 3})
	f.Add(byte(3), []byte{4, 10, 10, 0, 0, 9, 0, 0, 2, 5, 0, 0, 3, 5, 0, 0, 6, 5, 9, 0, 10, 0, 0, 0}, []byte{1})
	f.Fuzz(func(t *testing.T, mode byte, recipe, cuts []byte) {
		mode &= 7
		if len(recipe) > 100 {
			return
		}
		whole, sends, recvs := fuzzedPeer(t, mode)
		parts, _, _ := fuzzedPeer(t, mode)
		whole.say(whole.write(0, 0, 0)) // else a responder's Reads go out in the midst of it
		parts.say(parts.write(0, 0, 0))
		for _, u := range whole.fuzzStream(recipe) {
			whole.s.feed(whole.fpdu(u))
		}
		var b []byte
		for _, u := range parts.fuzzStream(recipe) {
			b = append(b, parts.fpdu(u)...)
		}
		for i := 0; len(b) > 0; i++ {
			n := len(b)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)]))
			}
			parts.s.feed(b[:n])
			parts.ctx.Engine().Step()
			b = b[n:]
		}
		whole.step()
		parts.step()
		if !bytes.Equal(whole.slab, parts.slab) || whole.q.State() != parts.q.State() || whole.rcq.Len() != parts.rcq.Len() || whole.scq.Len() != parts.scq.Len() {
			t.Errorf("whole: state %v, %d and %d completions; in parts: state %v, %d and %d",
				whole.q.State(), whole.rcq.Len(), whole.scq.Len(), parts.q.State(), parts.rcq.Len(), parts.scq.Len())
		}
		whole.settled(sends, recvs)
		parts.settled(sends, recvs)
	})
}
