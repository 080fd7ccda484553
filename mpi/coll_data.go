package mpi

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// Most algorithms of collectives work on bytes that lie side by side. Data that does is
// used where it is. Other data is packed into memory of the schedule before, or
// unpacked from there when everything else is done: both are steps of the schedule.
// Those that pass on just what each rank was given, which are the ones that exchange
// something with neighbours or have lengths of their own for each rank, work on blocks,
// which messages pack and unpack as those of the program do.

// late is what is unpacked at the end of a schedule.
type late struct{ dst, src dtype.Cursor }

// read returns the bytes of d, which the schedule only reads.
func (k *call) read(d Data) []byte {
	b, ok := d.flat()
	if !ok && k.ok() {
		if cur, good := k.cursor(&d); good {
			b = k.s.Temp(cur.Len())
			k.s.CopyTyped(dense(b), cur)
		}
	}
	return b
}

// write returns as many bytes as d has, which become d at the end. What they hold
// before is of no use: see load.
func (k *call) write(d Data) []byte {
	b, ok := d.flat()
	if !ok && k.ok() {
		if cur, good := k.cursor(&d); good {
			b = k.s.Temp(cur.Len())
			k.late = append(k.late, late{cur, dense(b)})
		}
	}
	return b
}

// load makes b the bytes of d, unless they are.
func (k *call) load(b []byte, d Data) {
	src, ok := d.flat()
	switch {
	case !k.ok():
	case ok:
		k.s.Copy(b, src)
	default:
		if cur, good := k.cursor(&d); good {
			k.s.CopyTyped(dense(b), cur)
		}
	}
}

// aside returns a copy of the bytes of d.
func (k *call) aside(d Data) []byte {
	src, ok := d.flat()
	if ok {
		b := k.s.Temp(len(src))
		k.s.Copy(b, src)
		return b
	}
	return k.read(d) // which packs
}

// cursor is Data.cursor that refuses the call.
func (k *call) cursor(d *Data) (cur dtype.Cursor, ok bool) {
	cur, err := d.cursor(k.op)
	if err != nil && k.err == nil {
		k.err = err
	}
	return cur, err == nil
}

// seal writes down what is unpacked at the end.
func (k *call) seal() {
	for i := range k.late {
		k.s.CopyTyped(k.late[i].dst, k.late[i].src)
	}
	k.forget()
}

// forget drops what would be unpacked.
func (k *call) forget() {
	clear(k.late)
	k.late = k.late[:0]
	clear(k.data)
	k.data = k.data[:0]
}

// blocks returns the parts of d that counts and displs name, one for each rank; nil
// when they are wrong. displs nil: one part comes after the other.
func (k *call) blocks(d Data, counts, displs []int) []Data {
	return k.blocksOf(k.c.size, d, counts, displs)
}

// blocksOf is blocks for p ranks.
func (k *call) blocksOf(p int, d Data, counts, displs []int) []Data {
	if len(counts) != p || displs != nil && len(displs) != p {
		k.refuse(ErrArg, "%d counts and %d displacements for %d ranks", len(counts), len(displs), p)
		return nil
	}
	list, at := k.room(p), 0
	for i, n := range counts {
		if n == 0 { // a displacement of nothing does not count
			list[i] = d.part(0, 0)
			continue
		}
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > d.count || at > d.count-n {
			k.refuse(ErrCount, "%d elements from %d on, which rank %d has to do with, do not lie in a buffer of %d", n, at, i, d.count)
			return nil
		}
		list[i] = d.part(at, n)
		at += n
	}
	return list
}

// disjoint refuses a send buffer that shares memory with the receive buffer, for it is
// not determined what it holds when it is sent (MPI 4.1, section 2.3). Of elements that
// do not lie side by side it cannot be told: those of one matrix may well be in both.
func (k *call) disjoint(send, recv Data) bool {
	out, flat := send.flat()
	in, room := recv.flat()
	if k.ok() && flat && room && overlap(out, in) {
		k.refuse(ErrBuffer, "send and receive buffer share memory: give nil, or the zero Data, as one of them if it is to be in place")
	}
	return k.ok()
}

func overlap(a, b []byte) bool {
	at, bt := mem.AddressOf(a), mem.AddressOf(b)
	return len(a) > 0 && len(b) > 0 && at < bt+uint64(len(b)) && bt < at+uint64(len(a))
}

// room returns room for a list of n parts that is the call's.
func (k *call) room(n int) []Data {
	at := len(k.data)
	k.data = slices.Grow(k.data, n)[:at+n]
	return k.data[at : at+n : at+n]
}

// each calls one of read and write for all of a list.
func (k *call) each(list []Data, as func(k *call, d Data) []byte) [][]byte {
	if !k.ok() {
		return nil
	}
	b := k.s.Blocks(len(list))
	for i, d := range list {
		b[i] = as(k, d)
	}
	return b
}

// parts returns a list of data as blocks, which the schedule reads or writes where they
// are.
func (k *call) parts(list []Data) []coll.Block {
	if !k.ok() {
		return nil
	}
	blocks := k.s.Parts(len(list))
	for i := range list {
		d := &list[i]
		if b, flat := d.flat(); flat {
			blocks[i] = coll.Flat(b)
		} else if cur, good := k.cursor(d); good {
			blocks[i] = k.s.Over(cur)
		}
	}
	return blocks
}

// copies returns copies of a list of data.
func (k *call) copies(list []Data) []coll.Block {
	if !k.ok() {
		return nil
	}
	blocks := k.s.Parts(len(list))
	for i, d := range list {
		blocks[i] = coll.Flat(k.aside(d))
	}
	return blocks
}

// whole refuses n elements that are not the same number for each of p ranks.
func (k *call) whole(n, p int) bool {
	if k.ok() && n%p != 0 {
		k.refuse(ErrCount, "%d elements are not the same number for each of %d ranks", n, p)
	}
	return k.ok()
}

// own returns what this rank has of b, which has an equal part for each rank.
func (k *call) own(b []byte) []byte {
	n := len(b) / k.c.size
	return b[k.c.rank*n : (k.c.rank+1)*n]
}

// ownOf is own of the elements.
func (k *call) ownOf(d Data) Data {
	n := d.count / k.c.size
	return d.part(k.c.rank*n, n)
}
