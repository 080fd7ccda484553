package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// onRanks runs cg on n ranks inside this process and returns what rank 0
// printed and the error of each rank.
func onRanks(t *testing.T, n int, o options) (string, []error) {
	t.Helper()
	var out strings.Builder
	errs := make([]error, n)
	err := mpi.Run(n, func(p *mpi.Proc) error {
		rank := p.World().Rank()
		errs[rank] = run(p.World(), o, &out)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs
}

func TestRun_diffusion(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		out, errs := onRanks(t, n, options{"diffusion.mtx", limits{tolerance: 1e-10}})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%d ranks: %v", n, err)
		}
		if !strings.HasSuffix(out, "cg: right\n") {
			t.Errorf("%d ranks: the report does not end well:\n%s", n, out)
		}
		t.Log(out)
	}
}

// With more ranks than rows some have nothing to do.
func TestRun_moreRanksThanRows(t *testing.T) {
	name := filepath.Join(t.TempDir(), "small.mtx")
	text := "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2\n2 1 -1\n2 2 2\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs := onRanks(t, 4, options{name, limits{tolerance: 1e-10}})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// Rank 0 tells what is wrong, the others know that something is.
func TestRun_failures(t *testing.T) {
	cut := filepath.Join(t.TempDir(), "cut.mtx")
	if err := os.WriteFile(cut, []byte("%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		o    options
		want string
	}{
		{"no file", options{"missing.mtx", limits{tolerance: 1e-10}}, "missing.mtx"},
		{"malformed", options{cut, limits{tolerance: 1e-10}}, "cut.mtx: Matrix Market, line 4: the file ends after 1 of 3 entries"},
		{"too few steps", options{"diffusion.mtx", limits{tolerance: 1e-10, steps: 5}}, "no convergence: after 5 steps"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := onRanks(t, 2, tt.o)
			if errs[0] == nil || !strings.Contains(errs[0].Error(), tt.want) {
				t.Errorf("rank 0: got %v, want %q", errs[0], tt.want)
			}
			if !errors.Is(errs[1], errElsewhere) {
				t.Errorf("rank 1: got %v, want %v", errs[1], errElsewhere)
			}
		})
	}
}

func TestCheck_wrongAnswer(t *testing.T) {
	a := diffusion(t)
	lim := limits{1e-10, 10 * a.rows()}
	x, _, err := solve(whole{a}, ones(a.rows()), lim)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := check(&out, a, x, lim); err != nil {
		t.Errorf("the right answer: %v", err)
	}
	x[4711] *= 1.001
	if err := check(&out, a, x, lim); err == nil || !strings.Contains(err.Error(), "wrong: the residual") {
		t.Errorf("a wrong answer: got %v", err)
	}
}

func TestParseOptions_bad(t *testing.T) {
	tests := []struct{ args, want string }{
		{"", "no matrix"},
		{"file.mtx", `"file.mtx" is not an option`},
		{"--matrix a --tolerance 2", "--tolerance is 2"},
		{"--matrix a --tolerance nan", "--tolerance is NaN"},
		{"--matrix a --steps -1", "--steps is -1"},
	}
	for _, tt := range tests {
		_, err := parseOptions(strings.Fields(tt.args))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.args, err, tt.want)
		}
	}
}
