package main

// count is what a search found: solutions, and queens that were placed on the way, which
// says how much work it was.
type count struct{ solutions, placed int64 }

// begin searches all boards of n x n squares whose first two queens stand as a task says:
// in column task/n of the first row, and in column task%n of the second.
func begin(n, task int) (c count) {
	all := uint32(1)<<n - 1
	first, second := uint32(1)<<(task/n), uint32(1)<<(task%n)
	c.placed = 1
	switch {
	case n == 1:
		c.solutions = 1
	case second&(first|first<<1|first>>1) == 0:
		c.place(all, first|second, (first<<1|second)<<1, (first>>1|second)>>1)
	}
	return c
}

// place tries the squares of the next row. Columns, and diagonals to the left and to the
// right, which queens above attack have a bit each.
func (c *count) place(all, columns, left, right uint32) {
	c.placed++
	if columns == all {
		c.solutions++
		return
	}
	for free := all &^ (columns | left | right); free != 0; free &= free - 1 {
		here := free & -free
		c.place(all, columns|here, (left|here)<<1, (right|here)>>1)
	}
}
