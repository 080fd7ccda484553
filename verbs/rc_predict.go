package verbs

import (
	"bytes"
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// Header prediction. Segments of a long Write follow each other, so that each header, and where the payload behind it belongs, is
// known before it comes. If the region is granted with SequentialWrite, the payload of several segments is received
// where it belongs, in one system call, and the headers between them beside it, where they are compared with what
// was predicted. From the first one that differs on, all bytes are taken in as without this: what lies in the region
// until then is of that region's peer, and is not determined anyway.

// Limits of it.
const (
	predictedHead = mpa.LengthLen + ddp.TaggedLen
	predictLeast  = 4 << 10 // bytes of a segment, or the copy takes less than what is around it
	predictGap    = predictedHead + 3 + mpa.CRCLen
	predictGaps   = inLen/predictLeast + 1
	predictFirst  = 64 << 10 // what is received at a time before anything is predicted, where that is usual
)

// prediction is what is predicted of a connection's inbound segments.
type prediction struct {
	from  fabric.VectorReceiver // the stream, or nil: it receives into one buffer at a time
	piece int                   // payload of each segment but the last; 0: nothing is predicted
	pos   int                   // bytes of the segment at hand that have come, framing included
	key   iwarp.STag
	ulp   uint8
	to    uint64 // of the segment at hand
	end   uint64 // behind the last byte of the region
	usual bool   // the region of the latest long segment, but for last ones, has SequentialWrite
}

// segment returns the payload and the whole length of the FPDU at to, and writes how it begins to head.
func (a *prediction) segment(head *[predictedHead]byte, to uint64) (n, whole int) {
	n = int(min(uint64(a.piece), a.end-to))
	h := ddp.Header{Tagged: true, Last: to+uint64(n) == a.end, ULP: a.ulp, STag: a.key, TO: to}
	binary.BigEndian.PutUint16(head[:], uint16(ddp.TaggedLen+n))
	h.Put(head[mpa.LengthLen:])
	return n, predictedHead + n + mpa.Pad(ddp.TaggedLen+n) + mpa.CRCLen
}

// predict notes that a segment of a Write of n bytes was placed.
func (r *rcReceiver) predict(h *ddp.Header, n int) {
	a := &r.predicted
	if a.from == nil || h.Last || n < predictLeast || r.rx.CRC || r.rx.Markers {
		return
	}
	reg := r.q.ctx.keys.lookup(uint32(h.STag))
	end := reg.addr + uint64(len(reg.buf))
	a.usual = reg.access&SequentialWrite != 0
	if to := h.TO + uint64(n); a.usual && to < end {
		a.piece, a.pos, a.key, a.ulp, a.to, a.end = n, 0, h.STag, h.ULP, to, end
	}
}

// region returns the memory that is predicted to be written next, or nil if it may not be any more.
func (r *rcReceiver) region() []byte {
	a := &r.predicted
	if r.phase != rcOpen || !r.q.takesInbound() {
		return nil
	}
	b, _ := r.q.grant(uint32(a.key), a.to, uint32(min(a.end-a.to, uint64(inLen+a.piece))), RemoteWrite|SequentialWrite)
	return b
}

// adopt takes in the beginning of an FPDU, if it is the one that is predicted.
func (r *rcReceiver) adopt(b []byte) bool {
	a := &r.predicted
	if a.piece == 0 {
		return false
	}
	var head [predictedHead]byte
	n, _ := a.segment(&head, a.to)
	region := r.region()
	if k := min(len(b), predictedHead); region == nil || !bytes.Equal(b[:k], head[:k]) {
		a.piece = 0
		return false
	}
	a.pos = len(b)
	copy(region[:n], b[min(len(b), predictedHead):])
	return true
}

// retreat makes what has come of the segment at hand the beginning of an FPDU again, when the region may not be
// written to any more. Its payload does not matter: it will be refused, or dropped.
func (r *rcReceiver) retreat() {
	a := &r.predicted
	if a.pos > 0 {
		var head [predictedHead]byte
		_, whole := a.segment(&head, a.to)
		r.part = append(append(r.q.ctx.streams.buffer(), head[:]...), make([]byte, whole-predictedHead)...)[:a.pos]
	}
	a.piece, a.pos = 0, 0
}

// receivePredicted receives what is predicted where it belongs, and what comes behind it into streams.in. It returns how many
// bytes came, how many of them lie in streams.in and are to be taken in, and whether there may be more.
func (r *rcReceiver) receivePredicted() (n, have int, more, eof bool) {
	a, s := &r.predicted, &r.q.ctx.streams
	region := r.region()
	if region == nil {
		return 0, 0, false, false // the next step retreats
	}
	b := &s.gaps
	b.init(predictGaps*predictGap, 2*predictGaps+2, 0)
	b.reset()
	var head [predictedHead]byte
	to, pos := a.to, a.pos
	for to < a.end && b.total+a.piece+predictGap+predictedHead <= inLen {
		size, whole := a.segment(&head, to)
		at := region[to-a.to:][:size]
		if pos < predictedHead {
			b.take(predictedHead - pos)
		}
		b.refer(at[min(max(pos-predictedHead, 0), size):])
		b.take(whole - max(pos, predictedHead+size))
		to, pos = to+uint64(size), 0
	}
	if to == a.end {
		b.refer(s.in[:inLen-predictedHead-b.total])
	}
	n, eof = a.from.RecvVector(b.bufs)
	return n, r.compare(b, n, to), n == b.total, eof
}

// compare looks whether n bytes, received as b says up to a segment at to, are those that were predicted, and moves
// what is not to streams.in. It returns how much that is.
func (r *rcReceiver) compare(b *batch, n int, to uint64) (have int) {
	a := &r.predicted
	off, gap := 0, b.slab
	for a.to < to && off < n {
		var head [predictedHead]byte
		size, whole := a.segment(&head, a.to)
		if k := max(predictedHead-a.pos, 0); k > 0 {
			if c := min(k, n-off); !bytes.Equal(gap[:c], head[a.pos:a.pos+c]) {
				return r.deviate(b, head[:a.pos], off, n)
			}
			gap = gap[k:]
		}
		gap = gap[whole-max(a.pos, predictedHead+size):]
		come := min(whole-a.pos, n-off)
		off += come
		if a.pos += come; a.pos < whole {
			return 0
		}
		a.to, a.pos = a.to+uint64(size), 0
	}
	if a.to < a.end {
		return 0
	}
	a.piece = 0
	return n - off // lies there
}

// deviate moves an FPDU that is not the one that was predicted, and what is behind it, to streams.in: head was known
// before, the rest is the bytes from off to n of b.
func (r *rcReceiver) deviate(b *batch, head []byte, off, n int) (have int) {
	r.predicted.piece, r.predicted.pos = 0, 0
	all := b.appendFrom(append(make([]byte, 0, len(head)+n-off), head...), off, n) // some of it may be in streams.in
	return copy(r.q.ctx.streams.in, all)
}
