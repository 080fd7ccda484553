package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestEnvironment(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		if v, sub := mpi.Version(); v != 4 || sub != 1 {
			return fmt.Errorf("version %d.%d", v, sub)
		}
		if name := mpi.LibraryVersion(); !strings.HasPrefix(name, "xwarp") {
			return fmt.Errorf("the library is %q", name)
		}
		if name, err := p.ProcessorName(); err != nil || name == "" {
			return fmt.Errorf("the processor is %q: %w", name, err)
		}
		before := p.Wtime()
		if err := p.World().Barrier(); err != nil {
			return err
		}
		if took := p.Wtime() - before; took < p.Wtick() || took > 3600 {
			return fmt.Errorf("a barrier took %g s, and the clock ticks every %g s", took, p.Wtick())
		}
		hw := p.HWResourceInfo()
		if host, _ := hw.Get("host"); host != "true" || hw.Len() != 3 {
			return fmt.Errorf("%d pieces of hardware, host is %q", hw.Len(), host)
		}
		return nil
	})
}

func TestSelf(t *testing.T) {
	onRanks(t, []int{1, 3}, func(p *mpi.Proc) error {
		self := p.Self()
		if self.Size() != 1 || self.Rank() != 0 || self.Name() != "MPI_COMM_SELF" || self.Group().Rank(p) != 0 {
			return fmt.Errorf("%s is rank %d of %d", self.Name(), self.Rank(), self.Size())
		}
		if r := p.World().Group().Rank(p); r != p.World().Rank() {
			return fmt.Errorf("rank %d in the group of rank %d", r, p.World().Rank())
		}
		if r := mpi.GroupEmpty().Rank(p); r != mpi.Undefined {
			return fmt.Errorf("rank %d in the empty group", r)
		}
		if err := errors.Join(ring(self), wantClass(self.Free(), mpi.ErrComm)); err != nil {
			return err
		}
		var order []any
		first := &mpi.Keyval{Delete: func(c *mpi.Comm, v any) error {
			order = append(order, v)
			return ring(c) // it may communicate still
		}}
		second := &mpi.Keyval{Delete: first.Delete}
		if err := errors.Join(self.SetAttr(first, 1), self.SetAttr(second, 2)); err != nil {
			return err
		}
		if p.Finalized() {
			return errors.New("finalized before Finalize")
		}
		if err := p.Finalize(); err != nil || !p.Finalized() {
			return fmt.Errorf("finalized: %v: %w", p.Finalized(), err)
		}
		if fmt.Sprint(order) != "[2 1]" {
			return fmt.Errorf("attributes went in the order %v", order)
		}
		return nil
	})
}

func TestErrors_ofTheProgram(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		class := p.AddErrorClass()
		code, err := p.AddErrorCode(class)
		if err != nil {
			return err
		}
		if p.LastUsedCode() != code || p.ErrorClass(code) != class || p.ErrorClass(class) != class || p.ErrorClass(mpi.ErrTag) != mpi.ErrTag || p.ErrorClass(77777) != mpi.ErrUnknown {
			return fmt.Errorf("class %d, code %d, the last is %d", class, code, p.LastUsedCode())
		}
		if p.ErrorString(code) != "" || p.ErrorString(mpi.ErrTag) != mpi.ErrTag.String() {
			return fmt.Errorf("strings %q and %q", p.ErrorString(code), p.ErrorString(mpi.ErrTag))
		}
		if err := p.AddErrorString(code, "no more soup"); err != nil || p.ErrorString(code) != "no more soup" {
			return fmt.Errorf("string %q: %w", p.ErrorString(code), err)
		}
		mine := &mpi.Error{Class: code, Op: "Cook"}
		var seen error
		p.World().SetErrhandler(func(_ *mpi.Comm, err error) { seen = err })
		if err := p.World().CallErrhandler(mine); err != mine || seen != err || mpi.ClassOf(err) != code {
			return fmt.Errorf("the handler has seen %v of %w", seen, err)
		}
		p.World().SetErrhandler(nil)
		return errors.Join(
			wantClass(second(p.AddErrorCode(4711)), mpi.ErrArg),
			wantClass(second(p.AddErrorCode(mpi.Success)), mpi.ErrArg),
			wantClass(p.AddErrorString(mpi.ErrTag, "x"), mpi.ErrArg),
			wantClass(p.RemoveErrorClass(class), mpi.ErrArg), // it has a code
			wantClass(p.RemoveErrorCode(class), mpi.ErrArg),
			p.RemoveErrorString(code), p.RemoveErrorCode(code), p.RemoveErrorClass(class),
			wantClass(p.RemoveErrorClass(class), mpi.ErrArg),
			wantClass(second(p.AddErrorCode(class)), mpi.ErrArg),
		)
	})
}

func TestTypeMatchSize(t *testing.T) {
	for _, tt := range []struct {
		class mpi.TypeClass
		bytes int
		want  mpi.Datatype
	}{
		{mpi.TypeClassReal, 4, mpi.TypeReal4}, {mpi.TypeClassReal, 8, mpi.TypeReal8}, {mpi.TypeClassReal, 2, mpi.Datatype{}},
		{mpi.TypeClassInteger, 1, mpi.TypeInteger1}, {mpi.TypeClassInteger, 8, mpi.TypeInteger8}, {mpi.TypeClassInteger, 3, mpi.Datatype{}},
		{mpi.TypeClassComplex, 8, mpi.TypeComplex8}, {mpi.TypeClassComplex, 16, mpi.TypeComplex16}, {0, 4, mpi.Datatype{}},
	} {
		got, err := mpi.TypeMatchSize(tt.class, tt.bytes)
		if got != tt.want || (err != nil) != tt.want.IsNull() {
			t.Errorf("class %d with %d bytes: %v, %v; want %v", tt.class, tt.bytes, got, err, tt.want)
		}
	}
}

func TestStatus_setElements(t *testing.T) {
	inner, err := mpi.TypeStruct([]int{1, 2}, []int{0, 8}, []mpi.Datatype{mpi.TypeInt, mpi.TypeDouble}) // 4+8+8
	if err != nil {
		t.Fatal(err)
	}
	for n, bytes := range []int{0, 4, 12, 20, 24} {
		var s mpi.Status
		if err := s.SetElements(inner, n); err != nil || s.Bytes() != bytes || s.Elements(inner) != n {
			t.Errorf("%d elements are %d bytes with %d: %v", n, s.Bytes(), s.Elements(inner), err)
		}
	}
	var s mpi.Status
	s.SetCancelled(true)
	if !s.Cancelled() {
		t.Error("not cancelled")
	}
	if err := s.SetElements(mpi.Datatype{}, 1); mpi.ClassOf(err) != mpi.ErrArg {
		t.Error(err)
	}
	if err := s.SetElements(inner, -1); mpi.ClassOf(err) != mpi.ErrCount {
		t.Error(err)
	}
}
