package mpi

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Request is an operation under way (MPI_Request). It is a handle: copies name
// the same operation. Wait, or Test when it reports true, ends the operation
// and makes the handle null; using a copy of it afterwards is an error of class
// ErrRequest. The zero value is the null request (MPI_REQUEST_NULL).
type Request struct {
	r *p2p.Request // a message
	k *call        // a collective
	c *Comm
	// What tells its uses apart in the lower half, and in the upper one the bytes of
	// the buffer of a receive, modulo 4 GiB. One word: two that were written a moment
	// ago, and are then copied as one, stall the processor.
	mark uint64
}

// gen tells uses of a request apart.
func (r *Request) gen() uint32 { return uint32(r.mark) }

// room is how many bytes the buffer of a receive has, modulo 4 GiB: see exactly.
func (r *Request) room() uint32 { return uint32(r.mark >> 32) }

func (c *Comm) request(r *p2p.Request) Request {
	return Request{r: r, c: c, mark: uint64(r.Generation())}
}

// receive is the request of a receive into so many bytes.
func (c *Comm) receive(r *p2p.Request, bytes int) Request {
	return Request{r: r, c: c, mark: uint64(bytes)<<32 | uint64(r.Generation())}
}

// IsNull reports whether r is the null request.
func (r *Request) IsNull() bool { return r.r == nil && r.k == nil }

// Wait waits until the operation is complete (MPI_Wait). For the null request
// it returns at once with an empty status. After an error of class
// ErrProcFailedPending the operation is still under way: see [Comm.AckFailed].
func (r *Request) Wait() (Status, error) {
	t := r.watch().begin("Wait", r.c, Undefined, Undefined, 0)
	st, err := r.wait("Wait")
	t.end(err)
	return st, err
}

// watch returns what watches the process of a request, or nil.
func (r *Request) watch() *watch { return r.c.watch() }

// watcher returns what watches the process of requests, or nil.
func watcher(requests []Request) *watch {
	for i := range requests {
		if r := &requests[i]; r.c != nil {
			return r.watch()
		}
	}
	return nil
}

func (r *Request) wait(op string) (Status, error) {
	if r.r == nil {
		return r.waitCall(op)
	}
	if r.gen() != r.r.Generation() {
		return emptyStatus(), r.stale(op)
	}
	st, active, err := r.r.Await()
	if err == nil && r.c.exact {
		err = r.c.exactly(op, st, r.room())
	}
	if err != nil {
		err = r.c.report(r.c.wrap(op, err))
	}
	if active {
		return emptyStatus(), err
	}
	r.r = nil
	r.c.got(st)
	return r.c.status(st), err
}

// Test makes progress and reports whether the operation is complete (MPI_Test).
// If so, it has the effect of Wait. The error of an operation that is not complete
// has the class ErrProcFailedPending.
func (r *Request) Test() (st Status, done bool, err error) {
	if r.r == nil {
		return r.testCall()
	}
	if r.gen() != r.r.Generation() {
		return emptyStatus(), false, r.stale("Test")
	}
	got, done, err := r.r.Test()
	if !done {
		if err != nil {
			err = r.c.report(r.c.wrap("Test", err))
		}
		return emptyStatus(), false, err
	}
	r.r = nil
	if err == nil && r.c.exact {
		err = r.c.exactly("Test", got, r.room())
	}
	if err != nil {
		err = r.c.report(r.c.wrap("Test", err))
	}
	if w := r.c.p.watch; w != nil { // those that find nothing are not worth a call
		t := w.begin("Test", r.c, Undefined, Undefined, 0)
		r.c.got(got)
		t.end(err)
	}
	return r.c.status(got), true, err
}

func (r *Request) stale(op string) error {
	return fail(ErrRequest, op, "the operation was completed before, through a copy of this request")
}

// RequestError says which of several operations has failed, and how: what
// MPI_ERR_IN_STATUS and the statuses say.
type RequestError struct {
	Index int // of the request
	Err   error
}

func (e *RequestError) Error() string { return fmt.Sprintf("request %d: %v", e.Index, e.Err) }

// Unwrap returns how it has failed.
func (e *RequestError) Unwrap() error { return e.Err }

// Waitall waits until all operations are complete (MPI_Waitall) and makes the
// requests null. It waits for all, also when some fail: the error joins a
// [RequestError] of each that has failed. See [WaitallStatus] for statuses.
func Waitall(requests []Request) error {
	w := watcher(requests)
	t := w.begin("Waitall", nil, Undefined, Undefined, 0)
	if ep := endpoint(requests); ep != nil {
		ep.Flush() // they travel while the results are taken here
	}
	var errs []error
	for i := range requests {
		r := &requests[i]
		if w == nil && r.r != nil && r.gen() == r.r.Generation() && !r.c.exact && r.r.Finish() {
			r.r = nil
			continue
		}
		if _, err := r.wait("Waitall"); err != nil {
			errs = append(errs, &RequestError{i, err})
		}
	}
	err := errors.Join(errs...)
	t.end(err)
	return err
}

// Waitany waits until one of the operations is complete (MPI_Waitany), makes
// its request null and returns its index. When all requests are null the index
// is Undefined.
func Waitany(requests []Request) (index int, st Status, err error) {
	ep := endpoint(requests)
	if ep == nil {
		return Undefined, emptyStatus(), nil
	}
	t := watcher(requests).begin("Waitany", nil, Undefined, Undefined, 0)
	ep.Enter()
	for index = finished(requests); index < 0; index = finished(requests) {
		ep.Inside().Progress()
	}
	ep.Leave()
	st, err = requests[index].wait("Waitany")
	t.end(err)
	return index, st, err
}

// endpoint returns that of the requests, or nil when all of them are null.
func endpoint(requests []Request) *p2p.Endpoint {
	for i := range requests {
		if r := &requests[i]; !r.IsNull() {
			return r.c.ep
		}
	}
	return nil
}

// finished returns the first request that Wait would return from at once, or -1.
// It is called inside.
func finished(requests []Request) int {
	for i := range requests {
		if r := &requests[i]; !r.IsNull() && r.done() {
			return i
		}
	}
	return -1
}
