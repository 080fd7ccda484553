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
// there is room. Only at its start does it look for that position; from there
// on it runs the loops as they are.
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
	case formList:
		w.list(nd, base, skip)
	}
}

func (w *walk) list(nd *node, base, skip int) {
	i := 0
	if skip > 0 {
		i = sort.SearchInts(nd.starts, skip+1) - 1
		skip -= nd.starts[i]
	}
	for ; i < len(nd.kids) && w.room > 0; i++ {
		if kid := nd.kids[i]; kid.form == formBlock {
			w.block(base+nd.at[i]+skip, kid.size-skip)
		} else {
			w.node(kid, base+nd.at[i], skip)
		}
		skip = 0
	}
}

// loop goes over count times nd, each step behind the one before.
func (w *walk) loop(nd *node, count, step, base, skip int) {
	if nd.form == formBlock {
		w.blocks(nd.size, count, step, base, skip)
		return
	}
	i := skip / nd.size
	skip -= i * nd.size
	for ; i < count && w.room > 0; i++ {
		w.node(nd, base+i*step, skip)
		skip = 0
	}
}

// blocks goes over count blocks of size bytes.
func (w *walk) blocks(size, count, step, base, skip int) {
	if step == size {
		w.block(base+skip, count*size-skip)
		return
	}
	i := 0
	if skip > 0 {
		i = skip / size
		if skip -= i * size; skip > 0 {
			w.block(base+i*step+skip, size-skip)
			i++
		}
	}
	if w.act == list {
		for ; i < count && w.room > 0; i++ {
			w.block(base+i*step, size)
		}
		return
	}
	whole := min(count-i, w.room/size)
	n := whole * size
	if w.act == pack {
		gather(w.packed[:n], w.mem, base+i*step, size, step)
	} else {
		spread(w.mem, w.packed[:n], base+i*step, size, step)
	}
	w.packed = w.packed[n:]
	w.room -= n
	w.done += n
	if i += whole; i < count && w.room > 0 {
		w.block(base+i*step, size)
	}
}

// block goes over n bytes.
func (w *walk) block(at, n int) {
	n = min(n, w.room)
	switch w.act {
	case pack:
		copyBlock(w.packed[:n], w.mem[at:at+n])
		w.packed = w.packed[n:]
	case unpack:
		copyBlock(w.mem[at:at+n], w.packed[:n])
		w.packed = w.packed[n:]
	case list:
		if !w.note(at, n) {
			w.room = 0
			return
		}
	}
	w.room -= n
	w.done += n
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
