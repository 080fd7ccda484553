package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// data is the memory of a message: one range of bytes, or what a datatype picks
// out of it.
type data struct {
	buf   []byte
	typed bool
	cur   dtype.Cursor // when typed
}

// dataOf returns the bytes before the cursor, which the data owns from now on.
func dataOf(cur dtype.Cursor) data {
	if b, ok := cur.Contiguous(); ok {
		return data{buf: b}
	}
	return data{cur: cur, typed: true}
}

// len returns how many bytes are left.
func (d *data) len() int {
	if d.typed {
		return d.cur.Rest()
	}
	return len(d.buf)
}

// view returns what is left, to be copied.
func (d *data) view() view {
	if d.typed {
		return view{cur: &d.cur}
	}
	return view{buf: d.buf}
}

// view is what a transport copies a message from: bytes that lie side by side, or those
// behind a cursor.
type view struct {
	buf []byte
	cur *dtype.Cursor // or nil
}

func (v view) len() int {
	if v.cur == nil {
		return len(v.buf)
	}
	return v.cur.Rest()
}

// copyTo fills dst with the first of them. It is small enough to be inlined.
func (v view) copyTo(dst []byte) {
	if v.cur == nil {
		copy(dst, v.buf)
	} else {
		pack(v.cur, dst)
	}
}

//go:noinline
func pack(cur *dtype.Cursor, dst []byte) {
	at := *cur
	at.Pack(dst)
}

// skip moves behind the next n bytes.
func (d *data) skip(n int) {
	if d.typed {
		d.cur.Seek(d.cur.Pos() + n)
		return
	}
	d.buf = d.buf[n:]
}

// fill copies src to where the next bytes belong, moves behind them and returns
// how many there were.
func (d *data) fill(src []byte) int {
	if d.typed {
		return d.cur.Unpack(src)
	}
	n := mem.CopyAcross(d.buf, src)
	d.buf = d.buf[n:]
	return n
}

// copyFrom copies from src until one of them is at its end, and returns how many
// bytes that were.
func (d *data) copyFrom(src *data) int {
	switch {
	case !src.typed:
		return d.fill(src.buf)
	case !d.typed:
		return src.cur.Pack(d.buf)
	}
	return dtype.Copy(&d.cur, &src.cur)
}

// clear forgets the memory.
func (d *data) clear() {
	d.buf = nil
	if d.typed {
		*d = data{}
	}
}
