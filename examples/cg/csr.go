package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/xwarp/xwarp/examples/cg/mtx"
)

// csr is a sparse matrix in compressed rows: row i has val[ptr[i]:ptr[i+1]]
// in the columns col[ptr[i]:ptr[i+1]], which ascend.
type csr struct {
	ptr []int32
	col []int32
	val []float64
}

func (a *csr) rows() int { return len(a.ptr) - 1 }

// newCSR makes a matrix that conjugate gradients can work on, or says why m is
// none: it must be square and symmetric with a positive diagonal.
func newCSR(m *mtx.Matrix) (*csr, error) {
	if m.Rows != m.Cols {
		return nil, fmt.Errorf("the matrix has %d rows and %d columns: conjugate gradients needs a square one", m.Rows, m.Cols)
	}
	if len(m.Entries) > math.MaxInt32/2 {
		return nil, fmt.Errorf("the matrix has %d entries: more than 32 bits can count", len(m.Entries))
	}
	a := &csr{ptr: make([]int32, m.Rows+1)}
	each(m, func(row, _ int32, _ float64) { a.ptr[row+1]++ })
	for i := range m.Rows {
		a.ptr[i+1] += a.ptr[i]
	}
	a.col = make([]int32, a.ptr[m.Rows])
	a.val = make([]float64, a.ptr[m.Rows])
	next := slices.Clone(a.ptr)
	each(m, func(row, col int32, v float64) {
		a.col[next[row]], a.val[next[row]] = col, v
		next[row]++
	})
	if !m.Symmetric {
		if err := a.checkSymmetric(); err != nil {
			return nil, err
		}
	}
	for i := range m.Rows {
		if d, _ := a.at(i, i); d <= 0 {
			return nil, fmt.Errorf("entry (%d, %d) on the diagonal is %g: the matrix is not positive definite", i+1, i+1, d)
		}
	}
	return a, nil
}

// each calls visit for every entry of m, mirror images included. The entries
// of m are sorted, and so are then the columns that a row is visited with: a
// row sees its own line of the lower triangle before the mirror images of the
// lines below.
func each(m *mtx.Matrix, visit func(row, col int32, v float64)) {
	for _, e := range m.Entries {
		visit(e.Row, e.Col, e.Value)
		if m.Symmetric && e.Row != e.Col {
			visit(e.Col, e.Row, e.Value)
		}
	}
}

// at returns the value at a place, and whether one is stored there.
func (a *csr) at(row, col int) (float64, bool) {
	lo, hi := a.ptr[row], a.ptr[row+1]
	k, ok := slices.BinarySearch(a.col[lo:hi], int32(col))
	if !ok {
		return 0, false
	}
	return a.val[int(lo)+k], true
}

func (a *csr) checkSymmetric() error {
	for i := range a.rows() {
		for k := a.ptr[i]; k < a.ptr[i+1]; k++ {
			j := int(a.col[k])
			if v, ok := a.at(j, i); !ok || v != a.val[k] {
				return fmt.Errorf("the matrix is not symmetric: entry (%d, %d) is %g, entry (%d, %d) is %g", i+1, j+1, a.val[k], j+1, i+1, v)
			}
		}
	}
	return nil
}

// diagonal returns the entries on the diagonal, where the first row of a is
// row offset of the matrix.
func (a *csr) diagonal(offset int) []float64 {
	d := make([]float64, a.rows())
	for i := range d {
		d[i], _ = a.at(i, offset+i)
	}
	return d
}

// multiply sets y = A x.
func (a *csr) multiply(y, x []float64) {
	for i := range y {
		sum := 0.0
		for k := a.ptr[i]; k < a.ptr[i+1]; k++ {
			sum += a.val[k] * x[a.col[k]]
		}
		y[i] = sum
	}
}

// slice returns a copy of the rows lo to hi-1.
func (a *csr) slice(lo, hi int32) *csr {
	from, to := a.ptr[lo], a.ptr[hi]
	s := &csr{ptr: make([]int32, hi-lo+1), col: slices.Clone(a.col[from:to]), val: slices.Clone(a.val[from:to])}
	for i := range s.ptr {
		s.ptr[i] = a.ptr[int(lo)+i] - from
	}
	return s
}

// residual returns |b - A x| / |b|.
func (a *csr) residual(x, b []float64) float64 {
	ax := make([]float64, len(b))
	a.multiply(ax, x)
	var rr, bb float64
	for i := range b {
		rr += (b[i] - ax[i]) * (b[i] - ax[i])
		bb += b[i] * b[i]
	}
	if bb == 0 {
		return math.Sqrt(rr)
	}
	return math.Sqrt(rr / bb)
}
