package llp

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Reader walks over the payload of one datagram, which may lie in several
// frames. It never copies more than was asked for.
type Reader struct {
	cur     []byte // rest of the buffer that is being read
	rest    []fabric.Desc
	arena   *mem.Arena
	left    int // bytes left in all
	scratch [64]byte
}

// open points the reader at n bytes: those in cur and those in the buffers rest.
func (r *Reader) open(a *mem.Arena, cur []byte, rest []fabric.Desc, n int) {
	r.arena, r.left = a, n
	r.cur, r.rest = cur, rest
	r.advance()
}

// advance makes cur hold the next byte, if there is one.
func (r *Reader) advance() {
	if len(r.cur) == 0 && len(r.rest) > 0 {
		r.nextBuffer()
	}
}

func (r *Reader) nextBuffer() {
	for len(r.cur) == 0 && len(r.rest) > 0 {
		r.cur = r.arena.At(r.rest[0].Addr, int(r.rest[0].Len))
		r.rest = r.rest[1:]
	}
}

// Len returns how many bytes are left.
func (r *Reader) Len() int { return r.left }

// Peek returns the next n bytes in one piece without consuming them; the
// caller has checked Len, and n is at most 64. The bytes are valid until the
// next call.
func (r *Reader) Peek(n int) []byte {
	if n <= len(r.cur) {
		return r.cur[:n]
	}
	have := copy(r.scratch[:n], r.cur)
	for i := 0; have < n; i++ {
		d := r.rest[i]
		have += copy(r.scratch[have:n], r.arena.At(d.Addr, int(d.Len)))
	}
	return r.scratch[:n]
}

// Piece returns what comes next and lies in one piece, without consuming it.
func (r *Reader) Piece() []byte { return r.cur }

// Skip consumes n bytes; the caller has checked Len.
func (r *Reader) Skip(n int) {
	r.left -= n
	for n > len(r.cur) {
		n -= len(r.cur)
		r.cur = nil
		r.advance()
	}
	r.cur = r.cur[n:]
	r.advance()
}

// Copy consumes len(dst) bytes into dst; the caller has checked Len.
func (r *Reader) Copy(dst []byte) {
	r.left -= len(dst)
	for {
		n := copy(dst, r.cur)
		dst, r.cur = dst[n:], r.cur[n:]
		r.advance()
		if len(dst) == 0 {
			return
		}
	}
}

// Over points the reader at bytes that lie in one piece.
func (r *Reader) Over(b []byte) { r.cur, r.rest, r.left = b, nil, len(b) }
