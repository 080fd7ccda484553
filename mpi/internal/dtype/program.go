package dtype

import "slices"

// A program says where the packed bytes of a type lie in memory, as nested
// loops. It is a tree of immutable nodes, which types share: a constructor adds
// a node or two on top of what the old type has.
//
// A node starts at its first packed byte: all displacements count from there,
// and where the node itself lies is known to what holds it. So equal
// patterns at different places are the same node.
type node struct {
	form  form
	size  int   // packed bytes, never 0
	count int   // loop: repetitions
	step  int   // loop: bytes from one repetition to the next, may be negative
	child *node // loop, scatter: what is repeated
	at    []int // scatter, blocks, list: where the parts lie; at[0] is 0
	// starts are the positions of the parts of blocks and lists in the packed
	// bytes, with the size behind the last.
	starts []int
	kids   []*node // list: the parts
}

type form uint8

const (
	formBlock   form = iota // size bytes side by side
	formLoop                // child at 0, step, 2*step, ...
	formScatter             // child at any displacements
	formBlocks              // blocks of different sizes at any displacements
	formList                // different kids at any displacements
)

// placed is a node and where it lies. Without a node it is nothing.
type placed struct {
	off int
	nd  *node
}

func block(n int) *node { return &node{form: formBlock, size: n} }

// loop repeats nd. The product of count and the size is known to fit.
func loop(nd *node, count, step int) *node {
	switch {
	case nd == nil || count == 0:
		return nil
	case count == 1:
		return nd
	case nd.form == formBlock && step == nd.size:
		return block(count * nd.size)
	case nd.form == formLoop && step == nd.count*nd.step: // the outer loop goes on where the inner one ends
		return &node{form: formLoop, size: count * nd.size, count: count * nd.count, step: nd.step, child: nd.child}
	}
	return &node{form: formLoop, size: count * nd.size, count: count, step: step, child: nd}
}

// sequence puts parts one behind the other in the packed bytes. It changes
// parts.
func sequence(parts []placed) placed {
	parts = slices.DeleteFunc(parts, func(p placed) bool { return p.nd == nil })
	if len(parts) == 0 {
		return placed{}
	}
	if alike(parts) && (regular(parts) || parts[0].nd.form != formBlock) {
		return repetition(parts)
	}
	if parts = merge(inline(parts)); len(parts) == 1 || alike(parts) {
		return repetition(parts)
	}
	nd := &node{form: formBlocks, at: make([]int, len(parts)), starts: make([]int, len(parts)+1)}
	for i, p := range parts {
		nd.at[i] = p.off - parts[0].off
		nd.starts[i+1] = nd.starts[i] + p.nd.size
		if p.nd.form != formBlock {
			nd.form = formList
		}
	}
	nd.size = nd.starts[len(parts)]
	if nd.form == formList {
		for _, p := range parts {
			nd.kids = append(nd.kids, p.nd)
		}
	}
	return placed{parts[0].off, nd}
}

// alike reports whether all parts are of the same node.
func alike(parts []placed) bool {
	for _, p := range parts {
		if !same(p.nd, parts[0].nd) {
			return false
		}
	}
	return true
}

// regular reports whether all parts are equally far apart.
func regular(parts []placed) bool {
	for i := 2; i < len(parts); i++ {
		if parts[i].off-parts[i-1].off != parts[1].off-parts[0].off {
			return false
		}
	}
	return true
}

// repetition is parts of the same node.
func repetition(parts []placed) placed {
	first := parts[0]
	switch {
	case len(parts) == 1:
		return first
	case regular(parts):
		return placed{first.off, loop(first.nd, len(parts), parts[1].off-first.off)}
	}
	nd := &node{form: formScatter, size: len(parts) * first.nd.size, child: first.nd, at: make([]int, len(parts))}
	for i, p := range parts {
		nd.at[i] = p.off - first.off
	}
	return placed{first.off, nd}
}

// inlined is how many parts a sequence and a part of it may have so that the
// part is dissolved. It keeps structures of structures flat, without the same
// long list again and again in memory.
const inlined = 16

// inline dissolves short lists in a short list.
func inline(parts []placed) []placed {
	if len(parts) > inlined {
		return parts
	}
	out := make([]placed, 0, len(parts))
	for _, p := range parts {
		if len(p.nd.at) == 0 || len(p.nd.at) > inlined {
			out = append(out, p)
			continue
		}
		for i, at := range p.nd.at {
			out = append(out, placed{p.off + at, p.nd.part(i)})
		}
	}
	return out
}

func (nd *node) part(i int) *node {
	switch nd.form {
	case formScatter:
		return nd.child
	case formBlocks:
		return block(nd.starts[i+1] - nd.starts[i])
	}
	return nd.kids[i]
}

// merge makes one block of blocks that lie side by side. It works in place.
func merge(parts []placed) []placed {
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.nd.form == formBlock && out[n-1].nd.form == formBlock && out[n-1].off+out[n-1].nd.size == p.off {
			out[n-1].nd = block(out[n-1].nd.size + p.nd.size)
			continue
		}
		out = append(out, p)
	}
	return out
}

// same reports whether a and b are known to do the same. Lists are not looked
// into: they are the same when they are one.
func same(a, b *node) bool {
	for a != b {
		if a.form != b.form || a.size != b.size || a.count != b.count || a.step != b.step || len(a.at) != 0 || len(b.at) != 0 {
			return false
		}
		if a.form == formBlock {
			return true
		}
		a, b = a.child, b.child
	}
	return true
}
