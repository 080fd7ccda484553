package verbs

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// Requests of our own, which no user posts.
const (
	opTerminate      Opcode = opcodeCount + iota // tells a peer why it was refused
	opReadResponse                               // answers a Read of the peer
	opAtomicResponse                             // answers an atomic of the peer
	opCount
)

// onWire is what the segments of a request are in DDP and RDMAP.
type onWire struct {
	op  rdmap.Opcode
	hdr uint8    // length of their headers
	qn  iwarp.QN // if they are untagged, or Immediate Data follow
}

var wire = [opCount]onWire{
	OpSend:              {rdmap.Send, ddp.UntaggedLen, iwarp.QNSend},
	OpSendWithInv:       {rdmap.SendInv, ddp.UntaggedLen, iwarp.QNSend},
	OpRDMAWrite:         {op: rdmap.Write, hdr: ddp.TaggedLen},
	OpRDMAWriteWithImm:  {rdmap.Write, ddp.TaggedLen, iwarp.QNSend},
	OpRDMARead:          {rdmap.ReadRequest, ddp.UntaggedLen, iwarp.QNReadReq},
	OpAtomicCmpAndSwp:   {rdmap.AtomicRequest, ddp.UntaggedLen, iwarp.QNReadReq},
	OpAtomicFetchAndAdd: {rdmap.AtomicRequest, ddp.UntaggedLen, iwarp.QNReadReq},
	OpAtomicSwap:        {rdmap.AtomicRequest, ddp.UntaggedLen, iwarp.QNReadReq},
	OpRDMAWriteRecord:   {op: rdmap.WriteRecord, hdr: ddp.TaggedLen + record.ChunkLen},
	opTerminate:         {rdmap.Terminate, ddp.UntaggedLen, iwarp.QNTerminate},
	opReadResponse:      {op: rdmap.ReadResponse, hdr: ddp.TaggedLen},
	opAtomicResponse:    {rdmap.AtomicResponse, ddp.UntaggedLen, iwarp.QNAtomicResp},
}

// wqe is a message to send: a request that was posted, or an answer to the peer. It
// owns the payload until it is acknowledged: lost segments are built again from it.
type wqe struct {
	wrid   uint64
	op     Opcode
	flags  SendFlags
	status Status // RC: what a local request has come to
	bufN   uint8
	inside bool // bufs[0] is all, and lies in the arena at addr
	built  bool // what is sent lies in data
	begun  bool // RD, UD: its first segment was cut
	done   bool // RD: complete, once those before it are
	links
	total  uint32 // bytes of the message, without Immediate Data behind it
	sent   uint32 // RD, UD: bytes that were cut into segments
	size   uint32 // bytes that the completion tells of: sent, or read
	msn    uint32 // of untagged messages; of a Read Response: of the request
	record uint32 // number of a Write-Record
	dst    uint32 // UD: number of the destination queue pair
	inv    uint32 // key that a Send invalidates
	key    uint32 // STag of tagged segments
	pending
	raddr uint64 // tagged offset where they begin
	addr  mem.Addr
	imm   [rdmap.ImmLen]byte // as they are sent
	ah    *AH                // the destination: requests of UD, Reads and atomics of RD
	bufs  [MaxSGE][]byte     // payload, or what a Read or an atomic reads into
	// data is what is sent if built is set: inline data, or a message for RDMAP. A Read
	// Response keeps the request here that it answers.
	data [MaxInline]byte
}

// links are the neighbours of an entry of a sendQueue.
type links struct {
	next  int32 // in its line
	after int32 // the user's request that was posted to the same peer after it
}

// pending is how far the answer to a Read or an atomic is.
type pending struct {
	name uint32 // that it comes under; 0 when there is none
	got  uint32 // bytes that have arrived
	// On RD the answer may come before the acknowledgement of the request. It ends
	// with both: until then its segment may have to be sent again.
	answered, acked bool
}

// isRead reports whether w is done only when its answer has come.
func (w *wqe) isRead() bool { return w.op >= OpRDMARead && w.op <= OpAtomicSwap }

// isLocal reports whether w has no peer.
func (w *wqe) isLocal() bool { return w.op == OpLocalInv || w.op == OpBindMW }

// tagged reports whether w goes out in tagged segments.
func (w *wqe) tagged() bool { return w.headerLen() != ddp.UntaggedLen }

// number gives w its MSN, the next one of its queue.
func (w *wqe) number(sent *[4]uint32) {
	if w.op == OpRDMAWrite || w.op == OpRDMAWriteRecord {
		return
	}
	n := &sent[wire[w.op].qn]
	*n++
	w.msn = *n
}

// end returns how many bytes are cut into segments: the message, and what is sent
// behind it.
func (w *wqe) end() uint32 {
	if w.op == OpRDMAWriteWithImm {
		return w.total + rdmap.ImmLen
	}
	return w.total
}

// headerLen returns the length of the headers of each of w's segments but for
// Immediate Data.
func (w *wqe) headerLen() int { return int(wire[w.op].hdr) }

// isImm reports whether the segment that begins at off is Immediate Data, which go behind
// their Write in a segment of another kind (RFC 7306, section 6).
func (w *wqe) isImm(off uint32) bool { return w.op == OpRDMAWriteWithImm && off == w.total }

// headerAt returns the length of the headers of the segment that begins at off.
func (w *wqe) headerAt(off uint32) int {
	if w.isImm(off) {
		return ddp.UntaggedLen
	}
	return w.headerLen()
}

// segment returns the payload and header length of the segment that begins at off, in a
// ULPDU of at most most bytes.
func (w *wqe) segment(off uint32, most int) (n, hdr int) {
	if w.isImm(off) {
		return rdmap.ImmLen, ddp.UntaggedLen
	}
	hdr = w.headerLen()
	return min(int(w.total-off), most-hdr), hdr
}

// header fills in h, which is empty, for the segment with the n bytes from off on.
func (w *wqe) header(h *ddp.Header, off uint32, n int) {
	k := &wire[w.op]
	op, imm := k.op, w.isImm(off)
	h.Last = off+uint32(n) >= w.total
	if k.hdr != ddp.UntaggedLen && !imm {
		h.Tagged, h.STag, h.TO = true, iwarp.STag(w.key), w.raddr+uint64(off)
		h.ULP = rdmap.Control(op)
		return
	}
	h.QN, h.MSN, h.MO, h.ULP2 = k.qn, iwarp.MSN(w.msn), off, w.inv
	switch {
	case imm && w.flags&Solicited != 0:
		op, h.MO = rdmap.ImmediateSE, 0
	case imm:
		op, h.MO = rdmap.Immediate, 0
	case w.flags&Solicited != 0:
		op += rdmap.SendSE - rdmap.Send
	}
	h.ULP = rdmap.Control(op)
}

// payload lists where the n bytes of w's segment from off on lie, and returns in how many
// pieces.
func (w *wqe) payload(to *[MaxSGE][]byte, off uint32, n int) int {
	switch {
	case off == w.total && n > 0:
		to[0] = w.imm[:n]
		return 1
	case w.built:
		to[0] = w.data[off : off+uint32(n)]
		return 1
	}
	return pieces(to, &w.bufs, int(off), n)
}

// pieces lists where n bytes from off on lie in bufs, and returns in how many pieces.
func pieces(to, bufs *[MaxSGE][]byte, off, n int) (k int) {
	for i := 0; n > 0; i++ {
		b := bufs[i]
		if off >= len(b) {
			off -= len(b)
			continue
		}
		b = b[off:min(len(b), off+n)]
		n -= len(b)
		off = 0
		to[k] = b
		k++
	}
	return k
}

// scatter copies n bytes to offset off of the buffers of a Read.
func (w *wqe) scatter(off int, rd *llp.Reader, n int) {
	var to [MaxSGE][]byte
	for _, b := range to[:pieces(&to, &w.bufs, off, n)] {
		rd.Copy(b)
	}
}

// sendQueue is a table of requests with a stack of free entries. Answers to
// peers have entries of their own behind the user's, which are made when they
// are needed: at most twice maxReads for each peer.
type sendQueue struct {
	wqes        []wqe
	free        []int32
	freeAnswers []int32
	cap         int // entries of the user's
	begun       int // requests of the user that have begun and are not complete
}

func (s *sendQueue) init(n int) {
	s.wqes, s.cap = make([]wqe, n), n
	s.free = make([]int32, n)
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
}

// first returns the entry that take takes; there is one.
func (s *sendQueue) first() int32 { return s.free[len(s.free)-1] }

// take removes an entry from the stack of free ones; there is one.
func (s *sendQueue) take() { s.free = s.free[:len(s.free)-1] }

// answer returns an entry for an answer to a peer.
func (s *sendQueue) answer() int32 {
	if n := len(s.freeAnswers); n > 0 {
		i := s.freeAnswers[n-1]
		s.freeAnswers = s.freeAnswers[:n-1]
		return i
	}
	s.wqes = append(s.wqes, wqe{})
	return int32(len(s.wqes) - 1)
}

// answersKept is how many entries for answers stay when none is in use.
const answersKept = 1024

// trim gives the memory of answers back after very many were under way at a
// time. No pointer to an entry may be kept.
func (s *sendQueue) trim() {
	if n := len(s.wqes) - s.cap; n > answersKept && len(s.freeAnswers) == n {
		s.wqes = append(make([]wqe, 0, s.cap), s.wqes[:s.cap]...)
		s.freeAnswers = nil
	}
}

// give puts an entry back, whosever it was.
func (s *sendQueue) give(i int32) {
	w := &s.wqes[i]
	clear(w.bufs[:w.bufN])
	w.name = 0
	if int(i) < s.cap {
		if w.begun {
			s.begun--
		}
		s.free = append(s.free, i)
	} else {
		s.freeAnswers = append(s.freeAnswers, i)
	}
}

// cut notes that n bytes of request i go into a segment, and returns where they begin.
func (s *sendQueue) cut(i int32, n int) (off uint32) {
	w := &s.wqes[i]
	off = w.sent
	w.sent += uint32(n)
	if !w.begun {
		w.begun = true
		if int(i) < s.cap {
			s.begun++
		}
	}
	return off
}

// append puts entry i at the end of a line.
func (s *sendQueue) append(l *requestList, i int32) {
	s.wqes[i].next = none
	if l.cur == none {
		l.cur = i
	} else {
		s.wqes[l.tail].next = i
	}
	l.tail = i
}

// requestList is a list of requests, linked by wqe.next, whose first is being cut
// into segments.
type requestList struct{ cur, tail int32 }

// none ends a list of requests.
const none = -1
