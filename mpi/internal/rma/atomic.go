package rma

import (
	"bytes"
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Accumulates by atomic instructions of the processor, in memory that several ranks of a
// host have mapped. All processes use them on the same elements, so whole elements change at
// once whichever other one is at work. Several elements are changed by words of 8 bytes, and single
// ones of up to 4 bytes by the word of 4 around them: that fails where anything else in it
// has changed, and is tried again.

// atomicKind reports whether the processor does accumulates on elements of a kind, where
// they are aligned.
func atomicKind(k dtype.Kind) bool {
	size, _, gapped := shapeOf(k)
	return !gapped && size <= 8 && size&(size-1) == 0
}

// atomic reports whether c is for instructions of the processor on these elements.
func (c *combination) atomic(there []byte) bool {
	size := c.size
	switch c.what {
	case saySwap:
		size = len(there)
	case sayAccumulate, sayFetch:
		if c.gapped {
			return false
		}
	default:
		return false
	}
	return len(there) > 0 && size <= 8 && size&(size-1) == 0 && mem.AddressOf(there)%uint64(size) == 0
}

// applyAll does the operation on each of the elements there, and leaves in old, if there is
// some, what was there before.
func (c *combination) applyAll(there, data, old []byte) {
	if c.what == saySwap {
		c.apply(there, data, old)
		return
	}
	for n := 0; len(there) > 0; there = there[n:] {
		at := mem.AddressOf(there)
		if len(there) >= 16 && at%8 == 0 {
			n = min(len(there)&^7, stageLen)
			c.applyWords(there[:n], upTo(data, n), upTo(old, n))
		} else {
			if n = c.size; n < 4 && len(there) >= 4 && at%4 == 0 {
				n = 4
			}
			c.apply(there[:n], upTo(data, n), upTo(old, n))
		}
		data, old = data[min(n, len(data)):], old[min(n, len(old)):]
	}
}

// upTo returns the first n bytes of b, or none if there are none.
func upTo(b []byte, n int) []byte { return b[:min(n, len(b))] }

// applyWords does the operation on aligned words of 8 bytes, at most stageLen bytes: on what
// is there now in all of them, and once more in each word that changes meanwhile.
func (c *combination) applyWords(there, data, old []byte) {
	was, now := c.s.words.was[:len(there)], c.s.words.now[:len(there)]
	for at := 0; at < len(there); at += 8 {
		w, _ := mem.Load64(there[at:])
		binary.NativeEndian.PutUint64(was[at:], w)
	}
	copy(now, was)
	copy(old, was)
	if !c.change(now, data) {
		return
	}
	for at := 0; at < len(there); at += 8 {
		w, to := binary.NativeEndian.Uint64(was[at:]), binary.NativeEndian.Uint64(now[at:])
		if w != to && !mem.CompareAndSwap64(there[at:], w, to) {
			c.apply(there[at:at+8], data[at:at+8], upTo(old[min(at, len(old)):], 8))
		}
	}
}

// apply does the operation on the elements of one word.
func (c *combination) apply(there, data, old []byte) {
	n := len(there)
	if n == 8 {
		now := c.s.one[:8]
		for {
			was, _ := mem.Load64(there) // it is aligned: see atomic
			binary.NativeEndian.PutUint64(now, was)
			copy(old, now)
			if !c.change(now, data) || mem.CompareAndSwap64(there, was, binary.NativeEndian.Uint64(now)) {
				return
			}
		}
	}
	w, at := mem.Word32(there)
	now := c.s.one[:4]
	for {
		was := w.Load()
		binary.NativeEndian.PutUint32(now, was)
		copy(old, now[at:at+n])
		if !c.change(now[at:at+n], data) || w.CompareAndSwap(was, binary.NativeEndian.Uint32(now)) {
			return
		}
	}
}

// change puts in the place of elements what they are to become. false: they stay what they are.
func (c *combination) change(now, data []byte) bool {
	switch {
	case c.what == saySwap:
		n := len(now)
		if !bytes.Equal(now, data[:n]) {
			return false
		}
		copy(now, data[n:])
	case len(data) == 0:
		return false
	default:
		c.reduce.Apply(data, now, len(data)/c.size)
	}
	return true
}
