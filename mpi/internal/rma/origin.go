package rma

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// readMin is from how many bytes on a Get is an RDMA Read: a shorter one is a message and
// its answer, which need no registration.
const readMin = 8 << 10

// Op is an operation on memory of a target: on the bytes of Layout, at an offset. The call that
// does it uses it up: Layout is at its end then, and Target the last one of a part.
type Op struct {
	Target int32
	At     int64        // bytes from the start of the target's memory to where Layout counts from
	Layout dtype.Cursor // see dtype.Type.Layout
	Kind   dtype.Kind   // accumulates: of the elements
	Op     *dtype.Op    // accumulates
	Tally  *Tally       // or nil: of the caller that waits for the end
}

// contiguous returns where the bytes are at the target, if they are in one piece.
func (o *Op) contiguous() (at int64, ok bool) {
	rest := o.Layout
	first, _ := rest.Next(rest.Rest())
	return o.At + int64(first), rest.Rest() == 0
}

// first returns where the next byte is at the target.
func (o *Op) first() uint64 {
	at, rest := 0, o.Layout
	if rest.Rest() > 0 {
		at, _ = rest.Next(1)
	}
	return uint64(o.At + int64(at))
}

// Put writes bytes to memory of a target in one piece.
func (w *Window) Put(rank int32, off uint64, src []byte, tally *Tally) error {
	if err := w.may(rank); err != nil {
		return err
	}
	t := w.target(rank)
	if t.Own.twin != 0 && t.Follows {
		rank, t = follow(&w.flow, rank, t)
	}
	if t.others != nil {
		if n := t.others.piece(off, len(src)); n < len(src) {
			if err := w.Put(rank, off, src[:n], tally); err != nil {
				return err
			}
			return w.Put(rank, off+uint64(n), src[n:], tally)
		}
		rank, t = w.choose(rank, off, len(src))
	}
	w.counts.served[t.by].Puts++
	if t.near != nil {
		b, err := w.near.within(rank, t, off, len(src))
		if err == nil {
			copy(b, src)
		}
		return err
	}
	if !t.plain || len(src) <= gatherMost {
		if !w.own(rank) && w.gather.addBytes(rank, t, off, src) {
			w.touch(rank, t)
			return nil
		}
		cur, layout := plain(src)
		return w.move(sayPut, &Op{Target: rank, At: int64(off), Layout: layout, Tally: tally}, &cur, nil)
	}
	if err := w.sendGathered(0, 0); err != nil {
		return err
	}
	if len(src) > w.in.WriteMax() {
		w.awaitPending()
		p := pending{r: w.in.Write(w.context, t.world, t.Key, t.Addr+off, src), target: rank, tally: tally.more()}
		if p.apart = p.r.Apart(); p.apart {
			w.listen(rank, t)
			t.apart++
		} else {
			w.touch(rank, t)
			t.writes++
		}
		w.pending = append(w.pending, p)
		return nil
	}
	w.touch(rank, t)
	for !w.in.TryWrite(t.world, t.Key, t.Addr+off, src) {
		if err := w.in.Trouble(w.context, t.world); err != nil {
			return err
		}
		w.in.Progress()
	}
	return nil
}

// Get reads bytes of memory of a target in one piece.
func (w *Window) Get(rank int32, off uint64, dst []byte, tally *Tally) error {
	if err := w.may(rank); err != nil {
		return err
	}
	t := w.target(rank)
	if t.Own.twin != 0 && t.Follows {
		rank, t = follow(&w.flow, rank, t)
	}
	if t.others != nil {
		if n := t.others.piece(off, len(dst)); n < len(dst) {
			if err := w.Get(rank, off, dst[:n], tally); err != nil {
				return err
			}
			return w.Get(rank, off+uint64(n), dst[n:], tally)
		}
		rank, t = w.choose(rank, off, len(dst))
	}
	w.counts.served[t.by].Gets++
	if t.near != nil {
		b, err := w.near.within(rank, t, off, len(dst))
		if err == nil {
			copy(dst, b)
		}
		return err
	}
	if !t.reached || len(dst) < readMin {
		cur, layout := plain(dst)
		return w.move(sayGet, &Op{Target: rank, At: int64(off), Layout: layout, Tally: tally}, nil, &cur)
	}
	if err := w.sendGathered(0, 0); err != nil {
		return err
	}
	w.listen(rank, t)
	w.awaitPending()
	r := w.in.Read(w.context, t.world, t.Key, t.Addr+off, dst)
	t.apart++
	w.pending = append(w.pending, pending{r: r, target: rank, apart: true, tally: tally.more()})
	return nil
}

// listen is touch for what the target need not be asked about.
func (w *flow) listen(rank int32, t *target) {
	dirty := t.dirty
	w.touch(rank, t)
	t.dirty = dirty
}

// more counts one more part of an operation.
func (t *Tally) more() *Tally {
	if t != nil {
		t.Left++
	}
	return t
}

// plain returns cursors over bytes here, and over as many at a target. There cannot be
// too many of them.
func plain(b []byte) (here, there dtype.Cursor) {
	here, _ = dtype.Byte.Cursor(b, 0, len(b))
	there, _ = dtype.Byte.Layout(len(b))
	return here, there
}

// PutOver writes the bytes before src to those of o.Layout.
func (w *Window) PutOver(o *Op, src *dtype.Cursor) error {
	if b, ok := src.Contiguous(); ok {
		if at, ok := o.contiguous(); ok {
			return w.Put(o.Target, uint64(at), b, o.Tally)
		}
	}
	if err := w.may(o.Target); err != nil {
		return err
	}
	t := bind(&w.flow, o)
	w.counts.served[t.by].Puts++
	if t.near != nil {
		return w.near.transfer(o, t, src, nil)
	}
	return w.move(sayPut, o, src, nil)
}

// GetOver reads the bytes of o.Layout into those before dst.
func (w *Window) GetOver(o *Op, dst *dtype.Cursor) error {
	if b, ok := dst.Contiguous(); ok {
		if at, ok := o.contiguous(); ok {
			return w.Get(o.Target, uint64(at), b, o.Tally)
		}
	}
	if err := w.may(o.Target); err != nil {
		return err
	}
	t := bind(&w.flow, o)
	w.counts.served[t.by].Gets++
	if t.near != nil {
		return w.near.transfer(o, t, nil, dst)
	}
	return w.move(sayGet, o, nil, dst)
}

// noteAccumulate counts an accumulate on n bytes for the target that does it, or that begins one that is
// divided, and returns that target.
func noteAccumulate(w *Window, o *Op, n int, direct bool) int32 {
	t, best := w.target(o.Target), o.Target
	if t.others != nil {
		best = ownerOf(&w.flow, o.Target, o.first())
		w.note(best, n)
		t = w.target(best)
	}
	w.counts.accumulate(t, o.Target == w.me, direct).Accumulates++
	return best
}

// Accumulate combines the elements of src with those of o.Layout.
func (w *Window) Accumulate(o *Op, src *dtype.Cursor) error {
	return combine(w, sayAccumulate, o, src, nil)
}

// Fetch is Accumulate that brings what was there before to dst. Of NoOp src is nil.
func (w *Window) Fetch(o *Op, src, dst *dtype.Cursor) error {
	return combine(w, sayFetch, o, src, dst)
}

// combine is both of them.
func combine(w *Window, say int32, o *Op, src, dst *dtype.Cursor) error {
	if err := w.may(o.Target); err != nil {
		return err
	}
	t := w.target(o.Target)
	direct := t.near != nil && atomicKind(o.Kind)
	noteAccumulate(w, o, o.Layout.Rest(), direct)
	if direct {
		return w.near.combine(say, o, t, src, dst)
	}
	return w.move(say, o, src, dst)
}

// FetchOne is Fetch of one element, in the same place of the target's memory as o says.
func (w *Window) FetchOne(o *Op, value, dst []byte) error {
	if err := w.may(o.Target); err != nil {
		return err
	}
	t := w.target(o.Target)
	direct := t.near != nil && atomicKind(o.Kind)
	if direct {
		if done, err := w.near.one(sayFetch, o, t, len(value), value, dst); done {
			w.counts.served[ByItself].Accumulates++
			return err
		}
	}
	if t = w.target(ownerOf(&w.flow, o.Target, uint64(o.At))); t.fit(o, len(value)) {
		if a, ok := atomicOf(o, value); ok {
			o.Target = noteAccumulate(w, o, len(value), false)
			return byVerbs(&w.flow, o, &a, dst)
		}
	}
	src, layout := plain(value)
	cur, _ := plain(dst)
	o.Layout = layout
	noteAccumulate(w, o, len(value), direct)
	if o.Op == dtype.NoOp { // a message, as what is done here was tried before; so value need not be in the heap
		return w.move(sayFetch, o, nil, &cur)
	}
	return w.move(sayFetch, o, &src, &cur)
}

// Swap puts value in the place of an element if that is equal to compare, bit by bit, and
// brings what was there before to dst. All are elements of o.Kind.
func (w *Window) Swap(o *Op, compare, value []byte, dst []byte) error {
	if err := w.may(o.Target); err != nil {
		return err
	}
	var both [2 * 32]byte
	n := copy(both[:], compare)
	n += copy(both[n:], value)
	t := w.target(o.Target)
	if t.near != nil {
		if done, err := w.near.one(saySwap, o, t, len(value), both[:n], dst); done {
			w.counts.served[ByItself].Accumulates++
			return err
		}
	}
	o.Target = noteAccumulate(w, o, len(value), false)
	if t = w.target(o.Target); t.fit(o, len(value)) {
		a := p2p.Atomic{Op: p2p.AtomicCompare}
		a.Operands.Compare, a.Operands.Swap = binary.NativeEndian.Uint64(compare), binary.NativeEndian.Uint64(value)
		return byVerbs(&w.flow, o, &a, dst)
	}
	src, _ := plain(both[:n])
	cur, _ := plain(dst)
	f := front{kind: o.Kind, n: 1}
	f.blocks[0] = block{uint64(o.At), uint32(len(value))}
	return w.post(saySwap, o, &f, &src, n, &cur)
}

// move does an operation, in messages as long as the target takes them.
func (w *Window) move(say int32, o *Op, src, dst *dtype.Cursor) error {
	f := front{kind: o.Kind}
	element, gapped := 1, false
	if o.Op != nil {
		var ok bool
		if f.op, ok = number(o.Op); !ok {
			return notPredefined(o)
		}
		element, _, gapped = shapeOf(o.Kind)
	}
	rank, parts := o.Target, w.target(o.Target).others
	owned := w.spread.owned && parts != nil && o.Op != nil // the ghost for a Put was chosen before
	for o.Layout.Rest() > 0 {
		if owned {
			o.Target = ownerOf(&w.flow, rank, o.first())
		}
		n, room := 0, int(w.target(o.Target).chunk)-frontLen
		for f.n = 0; f.n < maxBlocks; f.n++ {
			left := room - (f.n+1)*blockLen - n
			if owned {
				left = min(left, parts.share(rank, o, element))
			}
			if left -= left % element; gapped {
				left = min(left, element)
			}
			at, size := o.Layout.Next(left)
			for gapped && size > 0 && size < element { // the rest of the element
				_, more := o.Layout.Next(element - size)
				size += more
			}
			if size <= 0 {
				break
			}
			f.blocks[f.n] = block{uint64(o.At + int64(at)), uint32(size)}
			n += size
		}
		if n == 0 {
			panic("rma: no element fits a message")
		}
		data := n
		if src == nil {
			data = 0
		}
		if err := w.post(say, o, &f, src, data, dst); err != nil {
			return err
		}
	}
	return nil
}

func notPredefined(o *Op) error {
	return &Error{Code: Type, Target: o.Target, Detail: fmt.Sprintf("%v: accumulates have the predefined operations only", o.Op)}
}

// shapeOf returns how many bytes of data an element has, how many it reaches over, and
// whether there are gaps among them, or behind it.
func shapeOf(k dtype.Kind) (size, reach int, gapped bool) {
	t := k.Type()
	_, extent := t.Extent()
	_, reach = t.TrueExtent()
	return t.Size(), reach, extent != t.Size()
}

// post sends one message of an operation, with the next n bytes before src. What it
// brings back goes to dst.
func (w *Window) post(say int32, o *Op, f *front, src *dtype.Cursor, n int, dst *dtype.Cursor) error {
	t := w.target(o.Target)
	if dst == nil {
		w.touch(o.Target, t)
		if added, err := w.add(say, o, f, src, n); added || err != nil {
			return err
		}
	}
	var head [frontLen + maxBlocks*blockLen]byte
	a := p2p.Active{What: say, Head: head[:f.put(head[:])], Over: src, Bytes: n}
	if dst != nil {
		if err := w.sendGathered(0, 0); err != nil {
			return err
		}
		for w.flying >= fetchMost {
			if err := w.in.Trouble(w.context, t.world); err != nil {
				return err
			}
			if w.abandonLost(); w.flying >= fetchMost {
				w.in.Progress()
			}
		}
		w.listen(o.Target, t)
		i, r := w.record()
		r.cur, r.bytes, r.target, r.tally = *dst, f.bytes(), o.Target, o.Tally.more()
		t.fetches++
		a.ID = uint32(i)
		dst.Seek(dst.Pos() + r.bytes)
	}
	if err := w.send(o.Target, &a); err != nil {
		w.abandon(o.Target, err)
		return t.take()
	}
	if src != nil {
		src.Seek(src.Pos() + n)
	}
	return nil
}
