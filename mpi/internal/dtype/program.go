package dtype

// A program says where the packed bytes of a type lie in memory, as nested
// loops. It is a tree of immutable nodes, which types share: a constructor adds
// a node or two on top of what the old type has.
//
// A node starts at its first packed byte: all displacements count from there,
// and where the node itself lies is known to whoever holds it. So equal
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

// sequence puts parts one behind the other in the packed bytes. It keeps parts.
func sequence(parts []placed) placed {
	parts = merge(inline(parts))
	if len(parts) == 0 {
		return placed{}
	}
	first := parts[0]
	if len(parts) == 1 {
		return first
	}
	at := make([]int, len(parts))
	starts := make([]int, len(parts)+1)
	alike, regular, blocks := true, true, true
	for i, p := range parts {
		at[i] = p.off - first.off
		starts[i+1] = starts[i] + p.nd.size
		blocks = blocks && p.nd.form == formBlock
		alike = alike && same(p.nd, first.nd)
		regular = regular && at[i] == i*at[1]
	}
	size := starts[len(parts)]
	switch {
	case alike && regular:
		return placed{first.off, loop(first.nd, len(parts), at[1])}
	case alike:
		return placed{first.off, &node{form: formScatter, size: size, child: first.nd, at: at}}
	case blocks:
		return placed{first.off, &node{form: formBlocks, size: size, at: at, starts: starts}}
	}
	kids := make([]*node, len(parts))
	for i, p := range parts {
		kids[i] = p.nd
	}
	return placed{first.off, &node{form: formList, size: size, at: at, starts: starts, kids: kids}}
}

// inlined is how many parts a scatter or list may have to be dissolved in the
// list around it. It keeps structures of structures flat, without the same
// large list again and again in memory.
const inlined = 16

// inline leaves out what is nothing and dissolves small lists.
func inline(parts []placed) []placed {
	out := make([]placed, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.nd == nil:
		case len(p.nd.at) == 0 || len(p.nd.at) > inlined:
			out = append(out, p)
		default:
			for i, at := range p.nd.at {
				out = append(out, placed{p.off + at, p.nd.part(i)})
			}
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
