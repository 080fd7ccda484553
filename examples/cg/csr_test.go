package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/examples/cg/mtx"
)

func parse(t *testing.T, text string) *mtx.Matrix {
	t.Helper()
	m, err := mtx.Read(strings.NewReader("%%MatrixMarket matrix coordinate real " + text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// diffusion is the matrix that the demonstration solves.
func diffusion(t *testing.T) *csr {
	t.Helper()
	f, err := os.Open("diffusion.mtx")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := mtx.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newCSR(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// randomSPD returns a symmetric, diagonally dominant matrix.
func randomSPD(rng *rand.Rand, n int, density float64) *csr {
	m := &mtx.Matrix{Rows: n, Cols: n, Symmetric: true}
	sums := make([]float64, n)
	for i := range n {
		for j := range i {
			if rng.Float64() < density {
				v := rng.NormFloat64()
				m.Entries = append(m.Entries, mtx.Entry{Row: int32(i), Col: int32(j), Value: v})
				sums[i] += max(v, -v)
				sums[j] += max(v, -v)
			}
		}
		m.Entries = append(m.Entries, mtx.Entry{Row: int32(i), Col: int32(i)})
	}
	for k, e := range m.Entries {
		if e.Row == e.Col {
			m.Entries[k].Value = sums[e.Row] + 1
		}
	}
	a, err := newCSR(m)
	if err != nil {
		panic(err)
	}
	return a
}

func TestNewCSR_multiply(t *testing.T) {
	want := []float64{4*1 - 1*2 + 2*3, -1*1 + 5*2, 2*1 + 6*3} // by hand
	texts := map[string]string{
		"symmetric": "symmetric\n3 3 5\n1 1 4\n2 1 -1\n2 2 5\n3 1 2\n3 3 6\n",
		"general":   "general\n3 3 7\n1 1 4\n1 2 -1\n1 3 2\n2 1 -1\n2 2 5\n3 1 2\n3 3 6\n",
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			a, err := newCSR(parse(t, text))
			if err != nil {
				t.Fatal(err)
			}
			y := make([]float64, 3)
			a.multiply(y, []float64{1, 2, 3})
			for i := range y {
				if y[i] != want[i] {
					t.Errorf("row %d: got %g, want %g", i, y[i], want[i])
				}
			}
			if r := a.residual([]float64{1, 2, 3}, want); r != 0 {
				t.Errorf("residual of the answer is %g", r)
			}
		})
	}
}

func TestNewCSR_unsuitable(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"not square", "general\n2 3 1\n1 1 1\n", "2 rows and 3 columns"},
		{"values differ", "general\n2 2 4\n1 1 1\n1 2 2\n2 1 3\n2 2 1\n", "entry (1, 2) is 2, entry (2, 1) is 3"},
		{"mirror missing", "general\n2 2 3\n1 1 1\n1 2 2\n2 2 1\n", "not symmetric"},
		{"diagonal missing", "symmetric\n2 2 1\n1 1 1\n", "entry (2, 2) on the diagonal is 0"},
		{"diagonal negative", "symmetric\n1 1 1\n1 1 -1\n", "not positive definite"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newCSR(parse(t, tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
