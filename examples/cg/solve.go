package main

import (
	"errors"
	"fmt"
	"math"
)

// system is the matrix as conjugate gradients sees it: whole in one process,
// or by rows on many ranks. Vectors hold the rows that are here.
type system interface {
	// diagonal returns the entries on the diagonal.
	diagonal() []float64
	// multiply sets y = A x.
	multiply(y, x []float64) error
	// sum adds up each element of v over all ranks, in place.
	sum(v []float64) error
}

// limits say when to stop.
type limits struct {
	tolerance float64 // of |r| / |b|
	steps     int     // give up after that many
}

// errIndefinite says that the method does not apply.
var errIndefinite = errors.New("the matrix is not positive definite: conjugate gradients cannot solve it")

// solve solves A x = b by conjugate gradients with the diagonal as
// preconditioner (Saad, Iterative Methods for Sparse Linear Systems, 2nd
// edition, algorithm 9.1) and returns x and the number of steps. Each step
// costs one multiplication and two sums over all ranks.
func solve(s system, b []float64, lim limits) (x []float64, steps int, err error) {
	x = make([]float64, len(b))
	r, z, p, q := make([]float64, len(b)), make([]float64, len(b)), make([]float64, len(b)), make([]float64, len(b))
	d := s.diagonal()
	copy(r, b) // x is 0
	precondition(z, r, d)
	copy(p, z)
	pq, dots := make([]float64, 1), []float64{dot(r, z), dot(r, r)}
	if err := s.sum(dots); err != nil {
		return nil, 0, err
	}
	rz, first := dots[0], dots[1]
	for rr := first; !(rr <= lim.tolerance*lim.tolerance*first); rr = dots[1] {
		if steps == lim.steps {
			return nil, steps, fmt.Errorf("no convergence: after %d steps the residual is still %.3g of the first; allow more (--steps) or ask for less (--tolerance)",
				steps, math.Sqrt(rr/first))
		}
		steps++
		if err := s.multiply(q, p); err != nil {
			return nil, steps, err
		}
		pq[0] = dot(p, q)
		if err := s.sum(pq); err != nil {
			return nil, steps, err
		}
		if !(pq[0] > 0) { // or not a number
			return nil, steps, errIndefinite
		}
		alpha := rz / pq[0]
		axpy(x, alpha, p)
		axpy(r, -alpha, q)
		precondition(z, r, d)
		dots[0], dots[1] = dot(r, z), dot(r, r)
		if err := s.sum(dots); err != nil {
			return nil, steps, err
		}
		beta := dots[0] / rz
		rz = dots[0]
		for i := range p {
			p[i] = z[i] + beta*p[i]
		}
	}
	return x, steps, nil
}

func precondition(z, r, d []float64) {
	for i := range z {
		z[i] = r[i] / d[i]
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// axpy sets y = y + a x.
func axpy(y []float64, a float64, x []float64) {
	for i := range y {
		y[i] += a * x[i]
	}
}

// whole is a matrix that is all here.
type whole struct{ a *csr }

func (w whole) diagonal() []float64 { return w.a.diagonal(0) }

func (w whole) multiply(y, x []float64) error {
	w.a.multiply(y, x)
	return nil
}

func (w whole) sum([]float64) error { return nil }
