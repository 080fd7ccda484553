package mpi_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun_ranksTalk(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		err := mpi.Run(n, func(p *mpi.Proc) error {
			c := p.World()
			v := []float64{float64(c.Rank()), 1}
			if err := mpi.Allreduce(c, nil, v, mpi.Sum); err != nil {
				return err
			}
			if v[0] != float64(n*(n-1)/2) || v[1] != float64(n) {
				return fmt.Errorf("sum is %v", v)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

func TestRun_randomMessages(t *testing.T) {
	for seed := range uint64(4) {
		err := mpi.Run(3, func(p *mpi.Proc) error {
			return exercise{seed: seed, messages: 2000, maxLen: 1 << 20, tags: 4, wild: 0.3}.run(p)
		})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestRun_failureEndsAllRanks(t *testing.T) {
	boom := errors.New("boom")
	for name, failing := range map[string]func() error{
		"error":  func() error { return boom },
		"panic":  func() error { panic("boom") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		err := mpi.Run(3, func(p *mpi.Proc) error {
			c := p.World()
			if err := c.Barrier(); err != nil {
				return err
			}
			if c.Rank() == 1 {
				return failing()
			}
			_, err := mpi.Recv(c, make([]byte, 1), 1, 0) // never comes
			return err
		})
		var rank *mpi.RankError
		if !errors.As(err, &rank) || rank.Rank != 1 {
			t.Errorf("%s: Run returned %v, want the error of rank 1", name, err)
		}
		if name == "error" && !errors.Is(err, boom) {
			t.Errorf("%v does not wrap what the rank returned", err)
		}
		if name == "panic" && !strings.Contains(err.Error(), "boom") {
			t.Errorf("%v does not tell about the panic", err)
		}
	}
	if err := mpi.Run(0, nil); mpi.ClassOf(err) != mpi.ErrArg {
		t.Errorf("0 ranks: %v", err)
	}
}

func TestRun_abort(t *testing.T) {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 0 {
			p.Abort(3)
			return wantClass(c.Barrier(), mpi.ErrOther)
		}
		if err := wantClass(c.Barrier(), mpi.ErrOther); err != nil {
			return err
		}
		return errors.New("as it should")
	})
	if err == nil {
		t.Error("Run returned nil though a rank called Abort")
	}
}

func TestInit_alone(t *testing.T) {
	t.Setenv("XWARP_EAGER", "1k")
	p, err := mpi.Init()
	if err != nil {
		t.Fatal(err)
	}
	if c := p.World(); c.Rank() != 0 || c.Size() != 1 {
		t.Errorf("rank %d of %d", c.Rank(), c.Size())
	}
	if err := p.Finalize(); err != nil {
		t.Error(err)
	}
	for name, value := range map[string]string{
		"XWARP_EAGER": "many", "XWARP_ARENA": "-1", "XWARP_FABRIC": "carrier pigeon", "XWARP_FAULTS": "loss=2", "XWARP_THREADS": "some",
		"XWARP_EAGR": "use XWARP_EAGER",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := mpi.Init()
			if err == nil || !strings.Contains(err.Error(), value) {
				t.Errorf("%s=%s: error %v does not name the value", name, value, err)
			}
		})
	}
}
