package llp

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// writer builds one datagram in frames of the carrier.
type writer struct {
	frames [fabric.MaxBufs]mem.Addr
	n      int                         // frames taken
	at     int                         // frame being written
	cur    []byte                      // room left in it
	size   int                         // bytes written so far, header included
	first  []byte                      // the first frame from the header on
	direct [fabric.MaxBufs]fabric.Desc // payload behind the frames that is sent from where it lies
	pieces int
}

// open takes enough frames for size bytes of payload, the LLP header included.
// It takes none and returns false when the carrier has too few.
func (w *writer) open(dg fabric.Datagram, a *mem.Arena, headroom, size int) bool {
	need := (headroom + size + mem.FrameSize - 1) / mem.FrameSize
	for w.n = 0; w.n < need; w.n++ {
		f, ok := dg.Frame()
		if !ok {
			for ; w.n > 0; w.n-- {
				dg.Unframe(w.frames[w.n-1])
			}
			return false
		}
		w.frames[w.n] = f
	}
	w.at, w.pieces = 0, 0
	w.first = a.At(w.frames[0]+mem.Addr(headroom), mem.FrameSize-headroom)
	w.cur = w.first[dgram.HeaderLen:]
	w.size = dgram.HeaderLen
	return true
}

// put appends b; there is room for it.
func (w *writer) put(a *mem.Arena, b []byte) {
	w.size += len(b)
	for {
		n := copy(w.cur, b)
		w.cur, b = w.cur[n:], b[n:]
		if len(b) == 0 {
			return
		}
		w.at++
		w.cur = a.At(w.frames[w.at], mem.FrameSize)
	}
}

// zeros appends n zero bytes; there is room for them.
func (w *writer) zeros(a *mem.Arena, n int) {
	w.size += n
	for {
		part := min(n, len(w.cur))
		clear(w.cur[:part])
		w.cur = w.cur[part:]
		if n -= part; n == 0 {
			return
		}
		w.at++
		w.cur = a.At(w.frames[w.at], mem.FrameSize)
	}
}

// attach appends n bytes of the arena without copying them, in pieces that do
// not cross the boundary of a frame. The owner leaves them alone until the
// carrier has sent them.
func (w *writer) attach(addr mem.Addr, n int) {
	w.size += n
	for n > 0 {
		part := min(n, mem.FrameSize-int(addr&(mem.FrameSize-1)))
		w.direct[w.pieces] = fabric.Desc{Addr: addr, Len: uint32(part), Flags: fabric.More}
		w.pieces++
		addr += mem.Addr(part)
		n -= part
	}
}

// attached returns how many bytes of the datagram are not in frames.
func (w *writer) attached() (n int) {
	for i := range w.pieces {
		n += int(w.direct[i].Len)
	}
	return n
}

// reserve returns the next n bytes to be written by the caller. There is room
// for them in the frame.
func (w *writer) reserve(n int) []byte {
	b := w.cur[:n:n]
	w.cur = w.cur[n:]
	w.size += n
	return b
}

// crc returns the CRC32C of the datagram as it stands, over all behind the CRC.
func (w *writer) crc(a *mem.Arena) uint32 {
	left := w.size - w.attached()
	n := min(left, len(w.first))
	c := dgram.CRC(0, w.first[dgram.CRCLen:n])
	for i := 1; left > n; i++ {
		left -= n
		n = min(left, mem.FrameSize)
		c = dgram.CRC(c, a.At(w.frames[i], n))
	}
	for i := range w.pieces {
		d := &w.direct[i]
		c = dgram.CRC(c, a.At(d.Addr, int(d.Len)))
	}
	return c
}

// emit appends the datagram to a batch.
func (w *writer) emit(b *fabric.Batch, headroom int, to fabric.Path, sealed bool) {
	p := fabric.Packet{First: int32(len(b.Descs)), Bufs: int32(w.at + 1 + w.pieces), Len: int32(w.size), To: to, Sealed: sealed}
	left := w.size - w.attached()
	off := headroom
	for i := 0; i <= w.at; i++ {
		n := min(left, mem.FrameSize-off)
		b.Descs = append(b.Descs, fabric.Desc{Addr: w.frames[i] + mem.Addr(off), Len: uint32(n), Flags: fabric.More})
		left -= n
		off = 0
	}
	b.Descs = append(b.Descs, w.direct[:w.pieces]...)
	b.Descs[len(b.Descs)-1].Flags = 0
	b.Pkts = append(b.Pkts, p)
}
