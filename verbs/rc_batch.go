package verbs

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// Limits of what goes to a stream at a time.
const (
	batchBytes = 1 << 20 // about; a quarter of it costs a fifth of the bandwidth of kernel TCP
	batchBufs  = 1000    // IOV_MAX of Linux is 1024
	batchMarks = 512
	slabLen    = 512 << 10
	// copyMax is up to which length payload is copied behind its header; longer
	// ones go out from where they lie.
	copyMax = 1536
	// framing is the most that an FPDU has beside its payload, without markers.
	framing = mpa.LengthLen + ddp.UntaggedLen + 3 + mpa.CRCLen
)

// batch is a list of FPDUs on their way to one stream. All connections of a
// context use the same one in turns: what a stream does not take is not kept
// here.
type batch struct {
	bufs  [][]byte
	slab  []byte // headers, trailers, and short payload
	open  bool   // the last of bufs ends where slab does
	total int    // bytes
	marks []mark
	whole []byte // an FPDU that markers are put into
}

// mark is where an FPDU ends, and how far the connection is then.
type mark struct {
	end int // bytes from the start of the batch
	cur cursor
	tx  mpa.Tx
}

// init makes room, once, for bytes of the batch's own, buffers, and FPDUs.
func (b *batch) init(slab, bufs, marks int) {
	if b.slab == nil {
		b.slab = make([]byte, 0, slab)
		b.bufs = make([][]byte, 0, bufs)
		b.marks = make([]mark, 0, marks)
	}
}

func (b *batch) reset() {
	clear(b.bufs)
	b.bufs, b.slab, b.marks = b.bufs[:0], b.slab[:0], b.marks[:0]
	b.open, b.total = false, 0
}

// room reports whether one more FPDU of any length fits.
func (b *batch) room(mulpdu int, markers bool) bool {
	need := framing + copyMax
	if markers {
		need = mulpdu + mulpdu/64 + framing + 64 // 4 bytes in 512
	}
	return b.total < batchBytes && len(b.bufs)+MaxSGE+2 <= batchBufs && len(b.marks) < batchMarks && len(b.slab)+need <= cap(b.slab)
}

// take appends n bytes for the caller to fill.
func (b *batch) take(n int) []byte {
	at := len(b.slab)
	b.slab = b.slab[:at+n]
	if b.open {
		last := &b.bufs[len(b.bufs)-1]
		*last = (*last)[:len(*last)+n]
	} else {
		b.bufs = append(b.bufs, b.slab[at:])
		b.open = true
	}
	b.total += n
	return b.slab[at:]
}

// refer appends bytes that lie elsewhere.
func (b *batch) refer(p []byte) {
	if len(p) == 0 {
		return
	}
	b.bufs = append(b.bufs, p)
	b.open = false
	b.total += len(p)
}

// headerLen returns the length of a header, which may not be there.
func headerLen(h *ddp.Header) int {
	if h == nil {
		return 0
	}
	return h.Len()
}

// fpdu appends an FPDU (RFC 5044, section 4) of a header, or none, and n bytes
// of payload in up to MaxSGE pieces.
func (b *batch) fpdu(tx *mpa.Tx, h *ddp.Header, payload [][]byte, n int) {
	if tx.Markers {
		b.marked(tx, h, payload, n)
		return
	}
	hl := headerLen(h)
	head := b.take(mpa.LengthLen + hl)
	binary.BigEndian.PutUint16(head, uint16(hl+n))
	if h != nil {
		h.Put(head[mpa.LengthLen:])
	}
	if n <= copyMax {
		at := b.take(n)
		for _, p := range payload {
			at = at[copy(at, p):]
		}
	} else {
		for _, p := range payload {
			b.refer(p)
		}
	}
	var parts [1 + MaxSGE][]byte
	parts[0] = head
	k := 1 + copy(parts[1:], payload)
	tx.Trailer(b.take(mpa.Pad(hl+n)+mpa.CRCLen), parts[:k]...)
}

// marked is fpdu for a stream with markers: they fall anywhere, so the FPDU is
// put together first.
func (b *batch) marked(tx *mpa.Tx, h *ddp.Header, payload [][]byte, n int) {
	hl := headerLen(h)
	w := append(b.whole[:0], make([]byte, mpa.LengthLen+hl)...)
	binary.BigEndian.PutUint16(w, uint16(hl+n))
	if h != nil {
		h.Put(w[mpa.LengthLen:])
	}
	for _, p := range payload {
		w = append(w, p...)
	}
	end := len(w)
	w = append(w, make([]byte, mpa.TrailerMax)...)
	w = w[:end+tx.Trailer(w[end:], w[:end])]
	b.whole = w
	at := len(b.slab)
	out := tx.Mark(b.slab, w)
	copy(b.take(len(out)-at), out[at:]) // lies there already, unless the slab was too short
}

// mark notes that an FPDU ends here.
func (b *batch) mark(cur *cursor, tx *mpa.Tx) {
	b.marks = append(b.marks, mark{end: b.total, cur: *cur, tx: *tx})
}

// appendFrom appends the bytes from to to of the batch to dst.
func (b *batch) appendFrom(dst []byte, from, to int) []byte {
	for _, p := range b.bufs {
		if from < len(p) {
			dst = append(dst, p[from:min(len(p), to)]...)
			from = len(p)
		}
		from -= len(p)
		if to -= len(p); to <= 0 {
			break
		}
	}
	return dst
}
