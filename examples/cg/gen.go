//go:build ignore

// Command gen makes diffusion.mtx: -div(k grad u) on the unit square with
// u = 0 on its border, five-point differences on a grid of 100 x 100 points.
// The material is anisotropic (it conducts 10 times better along x) and has
// inclusions that conduct 1000 times better or worse, so that conjugate
// gradients has real work to do.
package main

import (
	"log"
	"math"
	"os"

	"github.com/xwarp/xwarp/examples/cg/mtx"
)

const (
	n       = 100 // points along each side
	along   = 10. // conductivity along x relative to that along y
	comment = `-div(k grad u), anisotropic, with jumps in k: 100 x 100 grid, five points.
Made by examples/cg/gen.go; symmetric, positive definite.`
)

// k is the conductivity of the cell at column i, row j.
func k(i, j int) float64 {
	switch {
	case 20 <= i && i < 45 && 15 <= j && j < 40:
		return 1000
	case 55 <= i && i < 85 && 60 <= j && j < 70:
		return 0.001
	case 30 <= i && i < 35 && 50 <= j && j < 95:
		return 0.001
	}
	return 1
}

// link is the conductance between two neighbouring cells: the harmonic mean,
// rounded so that the file stays small and sums stay exact.
func link(a, b float64) float64 { return math.Round(2*a*b/(a+b)*1024) / 1024 }

func main() {
	m := &mtx.Matrix{Rows: n * n, Cols: n * n, Symmetric: true}
	for j := range n {
		for i := range n {
			here := k(i, j)
			row := int32(j*n + i)
			west, east := along*link(here, k(i-1, j)), along*link(here, k(i+1, j))
			south, north := link(here, k(i, j-1)), link(here, k(i, j+1))
			if j > 0 {
				m.Entries = append(m.Entries, mtx.Entry{Row: row, Col: row - n, Value: -south})
			}
			if i > 0 {
				m.Entries = append(m.Entries, mtx.Entry{Row: row, Col: row - 1, Value: -west})
			}
			m.Entries = append(m.Entries, mtx.Entry{Row: row, Col: row, Value: west + east + south + north})
		}
	}
	f, err := os.Create("diffusion.mtx")
	if err != nil {
		log.Fatal(err)
	}
	if err := mtx.Write(f, m, comment); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}
