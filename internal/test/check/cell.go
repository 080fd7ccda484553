package check

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// cell is a word of 64 bits that only atomics touch. There are two kinds, each
// made so that what an operation returns tells which others came before it.
//
// A counter sees FetchAndAdd only, and each operation adds a digit of its own,
// in base 4: the value is the set of those that have happened, and a digit of 2
// is one that happened twice.
//
// A register sees Swap and CmpAndSwp, and each puts a value of its own there:
// what it returns names the one before it.
type cell struct {
	counter bool
	ops     []*atomic
	seen    uint64 // value when it was last looked at
}

// atomic is an operation on a cell.
type atomic struct {
	op  *Op
	old uint64 // with op.ok: what it returned
}

// digitsMax is how many operations a counter takes.
const digitsMax = 32

// digit is what operation number i adds to a counter.
func digit(i int) uint64 { return 1 << (2 * i) }

// before reports whether a surely happened before b: it had ended when b was
// posted, or it went ahead of it to the same peer.
func before(a, b *Op) bool {
	return a.ok && a.ended <= b.posted || a.Stream == b.Stream && a.pos < b.pos
}

// check says what is wrong with the cell, given what it holds now.
func (c *cell) check(value uint64, now mono.Time, linger mono.Duration) error {
	if c.counter {
		return c.checkCounter(value)
	}
	return c.checkRegister(value, now, linger)
}

func (c *cell) checkCounter(value uint64) error {
	if err := c.checkSet(value, "the word holds"); err != nil {
		return err
	}
	if c.seen&^value != 0 {
		return fmt.Errorf("the word went from %#x to %#x: operations were undone", c.seen, value)
	}
	c.seen = value
	chain := make([]int, 0, len(c.ops)) // of those that returned something, in their order
	for i, a := range c.ops {
		if !a.op.ok {
			continue
		}
		if value&digit(i) == 0 {
			return fmt.Errorf("%v succeeded, but the word holds %#x, without its %#x", a.op, value, digit(i))
		}
		if err := c.checkOld(i); err != nil {
			return err
		}
		chain = append(chain, i)
	}
	slices.SortFunc(chain, func(i, j int) int {
		return bits.OnesCount64(c.ops[i].old) - bits.OnesCount64(c.ops[j].old)
	})
	for k := 1; k < len(chain); k++ {
		a, b := c.ops[chain[k-1]], c.ops[chain[k]]
		if want := a.old | digit(chain[k-1]); want&^b.old != 0 {
			return fmt.Errorf("no order explains %v, which returned %#x, and %v, which returned %#x", a.op, a.old, b.op, b.old)
		}
	}
	return nil
}

// checkSet checks that a value is a set of operations that were posted.
func (c *cell) checkSet(value uint64, what string) error {
	for i := range digitsMax {
		switch d := value >> (2 * i) & 3; {
		case d > 1:
			return fmt.Errorf("%s %#x: operation %d happened more than once", what, value, i)
		case d == 1 && (i >= len(c.ops) || c.ops[i].op.Wrong != ""):
			return fmt.Errorf("%s %#x: operation %d happened, but was never posted", what, value, i)
		}
	}
	return nil
}

// checkOld checks what operation i of a counter returned.
func (c *cell) checkOld(i int) error {
	a := c.ops[i]
	if err := c.checkSet(a.old, fmt.Sprintf("%v returned", a.op)); err != nil {
		return err
	}
	if a.old&digit(i) != 0 {
		return fmt.Errorf("%v returned %#x, which has its own %#x in it", a.op, a.old, digit(i))
	}
	for j, b := range c.ops {
		switch in := a.old&digit(j) != 0; {
		case j != i && !in && before(b.op, a.op) && b.op.ok:
			return fmt.Errorf("%v returned %#x, without %#x of %v, which came before", a.op, a.old, digit(j), b.op)
		case in && before(a.op, b.op):
			return fmt.Errorf("%v returned %#x, with %#x of %v, which came after", a.op, a.old, digit(j), b.op)
		}
	}
	return nil
}

// checkRegister checks that what was returned makes a chain that ends in the
// present value.
func (c *cell) checkRegister(value uint64, now mono.Time, linger mono.Duration) error {
	known := map[uint64]*Op{0: nil} // a register holds 0 at first
	for _, a := range c.ops {
		if a.op.Wrong == "" {
			known[a.op.ID] = a.op
		}
	}
	if _, ok := known[value]; !ok {
		return fmt.Errorf("the word holds %#x, which nobody put there", value)
	}
	after := map[uint64]*atomic{} // value -> the operation that replaced it
	for _, a := range c.ops {
		if !a.op.ok {
			continue
		}
		by, ok := known[a.old]
		switch {
		case !ok:
			return fmt.Errorf("%v returned %#x, which nobody put there", a.op, a.old)
		case by != nil && (by == a.op || before(a.op, by)):
			return fmt.Errorf("%v returned the value of %v, which came later", a.op, by)
		case a.replaced():
			if other := after[a.old]; other != nil {
				return fmt.Errorf("%v and %v both replaced %#x", a.op, other.op, a.old)
			}
			after[a.old] = a
		}
	}
	c.seen = value
	return c.checkChain(value, after)
}

// replaced reports whether a, which succeeded, changed the word.
func (a *atomic) replaced() bool {
	return a.op.Code == verbs.OpAtomicSwap || a.old == a.op.Compare
}

// checkChain follows the values from the first one. What was replaced does not
// come back, so no value is met twice, and the present one was not replaced.
func (c *cell) checkChain(value uint64, after map[uint64]*atomic) error {
	if next := after[value]; next != nil {
		return fmt.Errorf("the word holds %#x, which %v replaced", value, next.op)
	}
	steps := 0
	for v := uint64(0); after[v] != nil; v = after[v].op.ID {
		if steps++; steps > len(c.ops) {
			return fmt.Errorf("what was returned goes round in circles from %#x", v)
		}
	}
	return nil
}
