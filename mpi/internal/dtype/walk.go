package dtype

import "sort"

// action is what is done with the bytes of a type.
type action uint8

const (
	pack   action = iota // memory to packed
	unpack               // packed to memory
	list                 // say where they are
)

// walk goes over the bytes of a program, from some position on and as far as
// there is room. It looks for that position once; whatever lies in between the
// first and the last byte as a whole is left to copyNode.
type walk struct {
	act    action
	mem    []byte
	packed []byte // pack, unpack: what is to be filled or emptied yet
	pieces []Piece
	n      int // pieces so far
	room   int // bytes that may follow; 0 ends the walk
	done   int // bytes so far
}

// node goes over one node at base, without its first skip bytes.
func (w *walk) node(nd *node, base, skip int) {
	if skip == 0 && nd.size <= w.room && w.act != list {
		copyNode(nd, w.mem, w.take(nd.size), base, w.act)
		return
	}
	switch nd.form {
	case formBlock:
		w.block(base+skip, nd.size-skip)
	case formLoop:
		w.loop(nd.child, nd.count, nd.step, base, skip)
	case formScatter:
		i := skip / nd.child.size
		skip -= i * nd.child.size
		for ; i < len(nd.at) && w.room > 0; i++ {
			w.node(nd.child, base+nd.at[i], skip)
			skip = 0
		}
	case formBlocks:
		i := nd.find(skip)
		skip -= nd.starts[i]
		for ; i < len(nd.at) && w.room > 0; i++ {
			w.block(base+nd.at[i]+skip, nd.starts[i+1]-nd.starts[i]-skip)
			skip = 0
		}
	case formList:
		i := nd.find(skip)
		skip -= nd.starts[i]
		for ; i < len(nd.at) && w.room > 0; i++ {
			w.node(nd.kids[i], base+nd.at[i], skip)
			skip = 0
		}
	}
}

// find returns the part that packed byte pos belongs to.
func (nd *node) find(pos int) int {
	if pos == 0 {
		return 0
	}
	return sort.SearchInts(nd.starts, pos+1) - 1
}

// loop goes over count times nd, each step behind the one before.
func (w *walk) loop(nd *node, count, step, base, skip int) {
	if nd.form == formBlock && step == nd.size {
		w.block(base+skip, count*nd.size-skip)
		return
	}
	i := skip / nd.size
	if skip -= i * nd.size; skip > 0 {
		w.node(nd, base+i*step, skip)
		i++
	}
	if w.act != list {
		whole := min(count-i, w.room/nd.size)
		copyLoop(nd, whole, step, w.mem, w.take(whole*nd.size), base+i*step, w.act)
		i += whole
	}
	for ; i < count && w.room > 0; i++ {
		w.node(nd, base+i*step, 0)
	}
}

// block goes over n bytes.
func (w *walk) block(at, n int) {
	n = min(n, w.room)
	switch w.act {
	case pack:
		copy(w.take(n), w.mem[at:])
	case unpack:
		copy(w.mem[at:], w.take(n))
	case list:
		if !w.note(at, n) {
			w.room = 0
			return
		}
		w.room -= n
		w.done += n
	}
}

// take returns the next n packed bytes.
func (w *walk) take(n int) []byte {
	b := w.packed[:n]
	w.packed = w.packed[n:]
	w.room -= n
	w.done += n
	return b
}

// note adds a piece to the list, or to the last piece if it lies behind it. It
// returns whether there was a place.
func (w *walk) note(at, n int) bool {
	if w.n > 0 {
		if last := &w.pieces[w.n-1]; last.At+last.Len == at {
			last.Len += n
			return true
		}
	}
	if w.n == len(w.pieces) {
		return false
	}
	w.pieces[w.n] = Piece{at, n}
	w.n++
	return true
}
