package mpi_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// callZero calls a method with zero values and returns the error that it gives last,
// or what it panics with.
func callZero(m reflect.Value) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	var in []reflect.Value
	for i := range m.Type().NumIn() {
		if !m.Type().IsVariadic() || i < m.Type().NumIn()-1 {
			in = append(in, reflect.Zero(m.Type().In(i)))
		}
	}
	out := m.Call(in)
	err, _ = out[len(out)-1].Interface().(error)
	return err
}

// wantRefused calls all methods of a handle that return an error, but those that have
// nothing to do with zero values as arguments. All must refuse it with the class.
func wantRefused(t *testing.T, what string, handle any, class mpi.ErrorClass, but ...string) {
	t.Helper()
	v, calls := reflect.ValueOf(handle), 0
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		n := m.Type().NumOut()
		if n == 0 || m.Type().Out(n-1) != reflect.TypeFor[error]() || slices.Contains(but, name) {
			continue
		}
		calls++
		if err := wantClass(callZero(m), class); err != nil {
			t.Errorf("%s: %s: %v", what, name, err)
		}
	}
	if calls == 0 {
		t.Errorf("%s: it has no methods", what)
	}
}

// A handle that is none is refused with the class of its kind (MPI 4.1, section 9.4):
// Split gives a nil communicator to those who have no color.
func TestHandles_null(t *testing.T) {
	wantRefused(t, "nil Comm", (*mpi.Comm)(nil), mpi.ErrComm, "CallErrhandler")
	wantRefused(t, "nil Persistent", (*mpi.Persistent)(nil), mpi.ErrRequest, "Pready")
	wantRefused(t, "zero Persistent", &mpi.Persistent{}, mpi.ErrRequest, "Pready", "Free")
	wantRefused(t, "nil Message", (*mpi.Message)(nil), mpi.ErrRequest)
	wantRefused(t, "zero Message", &mpi.Message{}, mpi.ErrRequest)
	wantRefused(t, "nil Group", (*mpi.Group)(nil), mpi.ErrGroup)
	wantRefused(t, "nil Session", (*mpi.Session)(nil), mpi.ErrSession, "CallErrhandler")
	wantRefused(t, "zero Datatype", mpi.Datatype{}, mpi.ErrType)
	wantRefused(t, "zero Request", &mpi.Request{}, mpi.ErrRequest, "Wait", "WaitContext", "Test", "GetStatus")

	v := []int{0}
	for what, call := range map[string]func() error{
		"Pready":        func() error { return (*mpi.Persistent)(nil).Pready(0) },
		"Startall":      func() error { return second(mpi.Startall([]*mpi.Persistent{nil}, nil)) },
		"Send":          func() error { return mpi.Send(nil, v, 0, 0) },
		"Ssend":         func() error { return mpi.Ssend(nil, v, 0, 0) },
		"Bsend":         func() error { return mpi.Bsend(nil, v, 0, 0) },
		"Recv":          func() error { return second(mpi.Recv(nil, v, 0, 0)) },
		"Isend":         func() error { return second(mpi.Isend(nil, v, 0, 0)) },
		"Issend":        func() error { return second(mpi.Issend(nil, v, 0, 0)) },
		"Ibsend":        func() error { return second(mpi.Ibsend(nil, v, 0, 0)) },
		"Irecv":         func() error { return second(mpi.Irecv(nil, v, 0, 0)) },
		"Sendrecv":      func() error { return second(mpi.Sendrecv(nil, v, 0, 0, v, 0, 0)) },
		"Mrecv":         func() error { return second(mpi.Mrecv(nil, v)) },
		"Imrecv":        func() error { return second(mpi.Imrecv(nil, v)) },
		"TranslateRank": func() error { return second(mpi.GroupEmpty().TranslateRank(mpi.ProcNull, nil)) },
	} {
		class := mpi.ErrComm
		switch what {
		case "Pready", "Startall", "Mrecv", "Imrecv":
			class = mpi.ErrRequest
		case "TranslateRank":
			class = mpi.ErrGroup
		}
		if err := wantClass(call(), class); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A communicator that was freed is as good as none, whatever topology it had.
func TestHandles_freed(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w := p.World()
		d, err := w.Dup()
		if err != nil {
			return err
		}
		grid, err := w.CartCreate([]int{w.Size()}, []bool{true}, false)
		if err != nil {
			return err
		}
		graph, err := w.GraphCreate([]int{1, 2}, []int{1, 0}, false)
		if err != nil {
			return err
		}
		for i, c := range []*mpi.Comm{d, grid, graph} {
			if err := c.Free(); err != nil {
				return err
			}
			wantRefused(t, [...]string{"duplicate", "grid", "graph"}[i], c, mpi.ErrComm, "CallErrhandler")
		}
		return nil
	})
}
