package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

var errDead = errors.New("it was killed")

func TestRun_ranksDie(t *testing.T) {
	for _, tt := range []struct {
		ranks int
		kill  []int
	}{{1, nil}, {3, nil}, {2, []int{0}}, {2, []int{1}}, {4, []int{2}}, {5, []int{0, 4}}, {6, []int{1, 0, 5, 2, 3}}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			var out strings.Builder
			errs := mpi.RunEach(tt.ranks, func(p *mpi.Proc) error {
				return run(p.World(), options{rows: 1000, kill: tt.kill}, &out, func() error { return errDead })
			})
			dead := 0
			for rank, err := range errs {
				switch {
				case errors.Is(err, errDead):
					dead++
				case err != nil:
					t.Errorf("rank %d: %v", rank, err)
				}
			}
			if dead != len(tt.kill) {
				t.Errorf("%d ranks were killed", dead)
			}
			if want := fmt.Sprintf("%d of %d ranks left", tt.ranks-dead, tt.ranks); !strings.Contains(out.String(), want) {
				t.Errorf("%q, want %q in it", out.String(), want)
			}
			t.Log(out.String())
		})
	}
}

func TestRun_nobodyToKill(t *testing.T) {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		return run(p.World(), options{rows: 10, kill: []int{1, 2}}, io.Discard, func() error { return errDead })
	})
	if err == nil || !strings.Contains(err.Error(), "rank 2 is to be killed, and there are 2") {
		t.Error(err)
	}
}

func TestOptions_check(t *testing.T) {
	var o options
	if o.check() == nil || o.setKill("1,x") == nil || o.setKill("-1") == nil {
		t.Error("nonsense was accepted")
	}
	o = options{rows: 5}
	if err := errors.Join(o.setKill("1,2"), o.check()); err != nil || len(o.kill) != 2 {
		t.Errorf("%v, %v", o, err)
	}
}
