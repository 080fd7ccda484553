package mpi_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestInfo(t *testing.T) {
	i, err := mpi.NewInfo("b", "1", "a", "2", "b", "3")
	if err != nil || i.Len() != 2 {
		t.Fatalf("%d keys: %v", i.Len(), err)
	}
	first, err := i.Key(0)
	second, err2 := i.Key(1)
	if err = errors.Join(err, err2); err != nil || first != "b" || second != "a" {
		t.Errorf("keys %q and %q: %v", first, second, err)
	}
	dup := i.Dup()
	if err := errors.Join(dup.Set("c", ""), dup.Delete("b")); err != nil {
		t.Error(err)
	}
	b, hasB := i.Get("b")
	_, hasC := i.Get("c")
	c, dupHasC := dup.Get("c")
	if b != "3" || !hasB || hasC || c != "" || !dupHasC || dup.Len() != 2 {
		t.Errorf("b is %q, the duplicate has %d keys", b, dup.Len())
	}
	var none *mpi.Info
	if _, ok := none.Get("a"); ok || none.Len() != 0 || none.Dup().Len() != 0 {
		t.Error("nil has keys")
	}
	_, odd := mpi.NewInfo("a")
	_, key := i.Key(2)
	_, keyOfNone := none.Key(0)
	for n, w := range []struct {
		class mpi.ErrorClass
		err   error
	}{
		{mpi.ErrArg, odd}, {mpi.ErrArg, key}, {mpi.ErrArg, keyOfNone}, {mpi.ErrInfo, none.Set("a", "")},
		{mpi.ErrInfoKey, i.Set("", "")}, {mpi.ErrInfoKey, i.Set(strings.Repeat("k", 256), "")},
		{mpi.ErrInfoValue, i.Set("a", strings.Repeat("v", 1024))}, {mpi.ErrInfoNoKey, i.Delete("x")}, {mpi.ErrInfoNoKey, none.Delete("x")},
	} {
		if err := wantClass(w.err, w.class); err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	}
}

func TestComm_hints(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w := p.World()
		env := p.InfoEnv()
		procs, _ := env.Get("maxprocs")
		if command, ok := env.Get("command"); !ok || command == "" || procs != strconv.Itoa(w.Size()) {
			return fmt.Errorf("command %q, maxprocs %q", command, procs)
		}
		if level, _ := env.Get("thread_level"); level != "MPI_THREAD_SERIALIZED" {
			return fmt.Errorf("the thread level is %q", level)
		}
		info, err := mpi.NewInfo("mpi_assert_no_any_tag", "true", "something_else", "x")
		if err = errors.Join(err, w.SetInfo(info)); err != nil {
			return err
		}
		again, err := mpi.NewInfo("mpi_assert_exact_length", "false")
		if err = errors.Join(err, w.SetInfo(again), w.SetInfo(nil)); err != nil {
			return err
		}
		got, err := w.Info()
		noTag, _ := got.Get("mpi_assert_no_any_tag")
		exact, _ := got.Get("mpi_assert_exact_length")
		kinds, _ := got.Get("mpi_memory_alloc_kinds")
		if err != nil || noTag != "true" || exact != "false" || kinds != "mpi,system" || got.Len() != 6 {
			return fmt.Errorf("%d hints, %q, %q and %q: %v", got.Len(), noTag, exact, kinds, err)
		}
		plain, err := w.Dup()
		if err != nil {
			return err
		}
		with, err := w.DupWithInfo(info)
		if err != nil {
			return err
		}
		none, err := plain.Info()
		one, err2 := with.Info()
		noTag, _ = none.Get("mpi_assert_no_any_tag")
		given, _ := one.Get("mpi_assert_no_any_tag")
		if err = errors.Join(err, err2); err != nil || noTag != "false" || given != "true" {
			return fmt.Errorf("of Dup it is %q, of DupWithInfo %q: %v", noTag, given, err)
		}
		bad, err := mpi.NewInfo("mpi_assert_no_any_tag", "perhaps")
		if err = errors.Join(err, plain.Free(), with.Free()); err != nil {
			return err
		}
		_, freed := plain.Info()
		return errors.Join(wantClass(w.SetInfo(bad), mpi.ErrInfoValue), wantClass(freed, mpi.ErrComm), wantClass(plain.SetInfo(nil), mpi.ErrComm))
	})
}

func TestSplitType_kinds(t *testing.T) {
	onRanks(t, []int{1, 3}, func(p *mpi.Proc) error {
		w := p.World()
		by := func(kind mpi.SplitType, resource string) (*mpi.Comm, error) {
			info, err := mpi.NewInfo("mpi_hw_resource_type", resource)
			if err != nil {
				return nil, err
			}
			return w.SplitTypeWithInfo(kind, -w.Rank(), info)
		}
		shared, err := w.SplitType(mpi.TypeShared, -w.Rank())
		host, err2 := by(mpi.TypeHWGuided, "mpi_shared_memory")
		unknown, err3 := by(mpi.TypeHWGuided, "flux_capacitor")
		// Goroutines of one process are all on the same host and node.
		node, err4 := by(mpi.TypeHWGuided, "numanode")
		smaller, err5 := w.SplitType(mpi.TypeHWUnguided, 0)
		if err := errors.Join(err, err2, err3, err4, err5); err != nil {
			return err
		}
		if unknown != nil || smaller != nil {
			return fmt.Errorf("there is no such hardware: %v, %v", unknown, smaller)
		}
		for _, c := range []*mpi.Comm{shared, host, node} {
			if c == nil { // not bound to one node
				continue
			}
			if c.Size() != w.Size() || c.Rank() != w.Size()-1-w.Rank() {
				return fmt.Errorf("rank %d of %d", c.Rank(), c.Size())
			}
			if err := c.Free(); err != nil {
				return err
			}
		}
		return nil
	})
}
