package mpi

import (
	"slices"
	"sync/atomic"
)

// Grequest is an operation of the program's own that has a [Request] as those of MPI
// do (a generalized request: MPI 4.1, section 13.2), so that it is waited for together
// with messages: what a goroutine computes, or a library brings about.
//
// The functions may be nil, and may call this package. The calls that wait, test, free or
// cancel run them, and return their errors.
type Grequest struct {
	// Query fills in the status of the operation, which is complete. Wait or Test calls
	// it once, GetStatus each time.
	Query func(st *Status) error
	// Free is called once, when no call will ask any more: after the last Query, or
	// when the operation is complete and its request was freed, whichever is later.
	Free func() error
	// Cancel is called by Request.Cancel. complete says that it comes too late.
	Cancel func(complete bool) error

	p     *Proc
	state atomic.Uint32
}

// The states of a Grequest.
const (
	grequestNew = iota
	grequestStarted
	grequestFreed // before it was complete
	grequestComplete
)

// GrequestStart starts a generalized request (MPI_Grequest_start), which was not
// started before. Its Request is complete after [Grequest.Complete].
func (p *Proc) GrequestStart(g *Grequest) (Request, error) {
	const op = "GrequestStart"
	switch {
	case p.left():
		return Request{}, fail(ErrOther, op, "the process has left the job")
	case g == nil || !g.state.CompareAndSwap(grequestNew, grequestStarted):
		return Request{}, p.self.reportf(ErrArg, op, "the generalized request is nil, or was started before")
	}
	g.p = p
	k := p.self.fresh(op)
	k.task = g
	return k.launch()
}

// Complete says that the operation has ended (MPI_Grequest_complete). Any goroutine
// may call it at any time, whatever the level of threads: it wakes the calls that wait.
func (g *Grequest) Complete() error {
	const op = "Grequest.Complete"
	switch {
	case g.state.CompareAndSwap(grequestStarted, grequestComplete):
		g.p.wake()
		return nil
	case g.state.CompareAndSwap(grequestFreed, grequestComplete):
		return g.release(op)
	}
	return fail(ErrRequest, op, "the operation was not started, or is complete already")
}

// IsComplete reports whether Complete was called.
func (g *Grequest) IsComplete() bool { return g.state.Load() == grequestComplete }

func (g *Grequest) begin(*call) {}

func (g *Grequest) advance(*call) (done bool) { return g.IsComplete() }

// grequest returns what k is the request of, or nil.
func (k *call) grequest() *Grequest {
	g, _ := k.task.(*Grequest)
	return g
}

// finish is the end of the request. The caller is outside, for the functions are the
// program's.
func (g *Grequest) finish(op string) (Status, error) {
	st, err := g.query(op)
	if freed := g.release(op); err == nil {
		err = freed
	}
	return st, err
}

func (g *Grequest) query(op string) (st Status, err error) {
	st = emptyStatus()
	if g.Query != nil {
		err = g.Query(&st)
	}
	return st, wrapOther(op, err)
}

func (g *Grequest) release(op string) error {
	if g.Free == nil {
		return nil
	}
	return wrapOther(op, g.Free())
}

func (g *Grequest) cancel() error {
	if g.Cancel == nil {
		return nil
	}
	return wrapOther("Cancel", g.Cancel(g.IsComplete()))
}

// freeGrequest is Free of a generalized request.
func (r *Request) freeGrequest() error {
	k, a := r.k, &r.c.p.calls
	g := k.grequest()
	a.ep.Enter()
	a.active = slices.DeleteFunc(a.active, func(other *call) bool { return other == k })
	_, _ = r.takeCall()
	a.ep.Leave()
	if g.state.CompareAndSwap(grequestStarted, grequestFreed) {
		return nil // Complete does the rest
	}
	return r.c.report(g.release("Request.Free"))
}
