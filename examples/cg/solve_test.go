package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSolve_random(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		a := randomSPD(rng, 1+rng.IntN(60), rng.Float64())
		want := make([]float64, a.rows())
		for i := range want {
			want[i] = rng.NormFloat64()
		}
		b := make([]float64, a.rows())
		a.multiply(b, want)
		x, _, err := solve(whole{a}, b, limits{1e-12, 10 * a.rows()})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range x {
			if math.Abs(x[i]-want[i]) > 1e-8 {
				t.Fatalf("seed %d: x[%d] is %g, want %g", seed, i, x[i], want[i])
			}
		}
	}
}

func TestSolve_diffusion(t *testing.T) {
	a := diffusion(t)
	x, steps, err := solve(whole{a}, ones(a.rows()), limits{1e-10, 10 * a.rows()})
	if err != nil {
		t.Fatal(err)
	}
	if r := a.residual(x, ones(a.rows())); r > 1e-9 {
		t.Errorf("the residual is %g after %d steps", r, steps)
	}
	if steps < 50 {
		t.Errorf("solved in %d steps: too easy for a demonstration", steps)
	}
	t.Logf("%d rows, %d entries, %d steps", a.rows(), len(a.val), steps)
}

func TestSolve_zeroRightSide(t *testing.T) {
	a := diffusion(t)
	x, steps, err := solve(whole{a}, make([]float64, a.rows()), limits{1e-10, 10})
	if err != nil || steps != 0 || x[0] != 0 {
		t.Errorf("got x[0] %g after %d steps, %v; want 0 at once", x[0], steps, err)
	}
}

func TestSolve_givesUp(t *testing.T) {
	a := diffusion(t)
	_, steps, err := solve(whole{a}, ones(a.rows()), limits{1e-10, 3})
	if err == nil || steps != 3 || !strings.Contains(err.Error(), "after 3 steps") {
		t.Errorf("got %v after %d steps", err, steps)
	}
}

func TestSolve_indefinite(t *testing.T) {
	a, err := newCSR(parse(t, "symmetric\n2 2 3\n1 1 1\n2 1 5\n2 2 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := solve(whole{a}, []float64{1, -1}, limits{1e-10, 10}); !errors.Is(err, errIndefinite) {
		t.Errorf("got %v, want %v", err, errIndefinite)
	}
}
