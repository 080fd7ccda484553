package boot

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// onAll runs fn for every job at once and returns the errors.
func onAll(jobs []Job, fn func(Job) error) []error {
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = fn(j)
		}()
	}
	wg.Wait()
	return errs
}

func TestLocal_fences(t *testing.T) {
	const n = 5
	for i, err := range onAll(Local(n), func(j Job) error {
		for round := range 20 {
			key := fmt.Sprint("k", round)
			if err := j.Put(key, fmt.Sprint(j.Rank(), round)); err != nil {
				return err
			}
			if err := j.Fence(); err != nil {
				return err
			}
			for r := range n {
				if v, ok := j.Get(r, key); !ok || v != fmt.Sprint(r, round) {
					return fmt.Errorf("round %d: rank %d put %q, %v", round, r, v, ok)
				}
			}
		}
		return j.Finalize()
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

func TestLocal_identity(t *testing.T) {
	jobs := Local(3)
	for i, j := range jobs {
		if h, l := j.Host(); j.Rank() != i || j.Size() != 3 || h != 0 || l != i || j.Key() != jobs[0].Key() {
			t.Errorf("job %d: rank %d of %d, host %d %d", i, j.Rank(), j.Size(), h, l)
		}
	}
	if Local(1)[0].Key() == jobs[0].Key() {
		t.Error("two jobs have the same key")
	}
}

func TestLocal_valuesWaitForTheFence(t *testing.T) {
	j := Solo()
	if err := j.Put("", "v"); err == nil {
		t.Error("an empty key was taken")
	}
	if err := j.Put("k", "v"); err != nil {
		t.Error(err)
	}
	if _, ok := j.Get(0, "k"); ok {
		t.Error("visible before the fence")
	}
	if err := j.Fence(); err != nil {
		t.Error(err)
	}
	if v, ok := j.Get(0, "k"); !ok || v != "v" {
		t.Errorf("%q, %v", v, ok)
	}
}

func TestLocal_abortEndsFences(t *testing.T) {
	jobs := Local(3)
	for i, err := range onAll(jobs, func(j Job) error {
		if j.Rank() == 1 {
			j.Abort(3, "no reason")
			j.Abort(4, "a second time")
			<-j.(Watched).Lost()
		}
		return j.Fence()
	}) {
		if ae, ok := errors.AsType[*AbortError](err); !ok || ae.Rank != 1 || ae.Code != 3 || ae.Why != "no reason" {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

func TestLocal_leavingEndsFences(t *testing.T) {
	for i, err := range onAll(Local(3), func(j Job) error {
		if j.Rank() == 2 {
			return j.Finalize()
		}
		return j.Fence()
	}) {
		if (err == nil) != (i == 2) {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// TestLeave tells the others, once each time that they ask for more.
func TestLeave(t *testing.T) {
	jobs := Local(3)
	Leave(jobs[1])
	w := jobs[0].(Witness)
	if got := w.Deaths(0); len(got) != 1 || got[0] != 1 {
		t.Errorf("deaths are %v", got)
	}
	Leave(jobs[2])
	if got := w.Deaths(1); len(got) != 1 || got[0] != 2 || len(w.Deaths(2)) != 0 {
		t.Errorf("deaths after the first are %v", got)
	}
	if err := jobs[0].Fence(); err == nil {
		t.Error("a fence without two ranks was complete")
	}
}
