package capi

import (
	"errors"
	"sync"

	"github.com/xwarp/xwarp/mpi"
)

// request is a request of the program. The zero mpi.Request in it is inactive.
type request struct {
	mpi.Request
	persistent *mpi.Persistent
	general    *mpi.Grequest
	fortran    *bool  // whether its functions are those of a Fortran program
	comm       Handle // whose error handler gets its errors
	freed      bool   // a generalized request that is there for MPI_Grequest_complete alone
}

// start puts the request of a nonblocking call into the variable of the program.
func (l *Lib) start(r mpi.Request, err error, comm Handle, to Handles) error {
	if err == nil {
		p, h := l.requests.take()
		p.Request, p.comm = r, comm
		to.set(0, h)
	}
	return err
}

// prepare is start of a persistent operation.
func (l *Lib) prepare(p *mpi.Persistent, err error, comm Handle, to Handles) error {
	if err == nil {
		to.set(0, l.requests.add(request{persistent: p, comm: comm}))
	}
	return err
}

// request returns a request, nil for MPI_REQUEST_NULL.
func (l *Lib) request(h Handle) (*request, error) {
	if h == MPI_REQUEST_NULL {
		return nil, l.up()
	}
	if r := l.requests.get(h); r != nil {
		return r, nil
	}
	if err := l.up(); err != nil {
		return nil, err
	}
	return nil, fail(mpi.ErrRequest, "%#x is no request, or was completed before", uintptr(h))
}

// complete is what becomes of a request in a variable of the program when its operation has
// ended.
func (l *Lib) complete(r *request, at Handles, i int) {
	if r.persistent != nil {
		r.Request = mpi.Request{}
		return
	}
	l.requests.remove(at.get(i))
	at.set(i, MPI_REQUEST_NULL)
}

// emptyStatus is the status of nothing (MPI 4.1, section 3.7.3).
func emptyStatus() mpi.Status { return mpi.StatusOf(mpi.AnySource, mpi.AnyTag, 0, false) }

// Wait is MPI_Wait.
func Wait(l *Lib, req Handles, status Statuses) error {
	r, err := l.request(req.get(0))
	if err != nil {
		return err
	}
	if r == nil {
		status.set(0, emptyStatus())
		return nil
	}
	comm := r.comm
	st, err := r.Wait()
	status.set(0, st)
	if r.IsNull() {
		l.complete(r, req, 0)
	}
	return on(comm, err)
}

// Test is MPI_Test.
func Test(l *Lib, req Handles, flag Ints, status Statuses) error {
	r, err := l.request(req.get(0))
	if err != nil {
		return err
	}
	if r == nil || r.IsNull() {
		flag.setFlag(true)
		status.set(0, emptyStatus())
		return nil
	}
	comm := r.comm
	st, done, err := r.Test()
	flag.setFlag(done)
	if done {
		status.set(0, st)
		l.complete(r, req, 0)
	}
	return on(comm, err)
}

// batch is the requests of a call, and room for what becomes of them.
type batch struct {
	requests []mpi.Request
	own      []*request
	statuses []mpi.Status
	some     []mpi.Some
	comm     Handle
	first    int // where in the array of the program they begin
}

// batches keeps the memory of calls that are over.
type batches struct{ sync.Pool }

// load returns the requests of a call.
func (l *Lib) load(n int, at Handles) (*batch, error) {
	if n < 0 {
		return nil, fail(mpi.ErrCount, "%d requests", n)
	}
	if err := at.there("requests", n); err != nil {
		return nil, err
	}
	b, _ := l.batches.Get().(*batch)
	if b == nil {
		b = new(batch)
	}
	b.requests, b.own, b.statuses, b.some, b.comm = b.requests[:0], b.own[:0], b.statuses[:0], b.some[:0], MPI_COMM_SELF
	b.first = 0
	for i := range n {
		r, err := l.request(at.get(i))
		if err != nil {
			l.unload(b)
			return nil, err
		}
		if b.own = append(b.own, r); r == nil {
			b.requests = append(b.requests, mpi.Request{})
			continue
		}
		b.requests, b.comm = append(b.requests, r.Request), r.comm
	}
	return b, nil
}

// loadAny is load for a call that ends one request: if an operation has ended, it is of that alone.
func (l *Lib) loadAny(n int, at Handles) (*batch, error) {
	if i := l.ready(n, at); i >= 0 {
		b, err := l.load(1, at.from(i))
		if err == nil {
			b.first = i
		}
		return b, err
	}
	return l.load(n, at)
}

// ready returns the first request whose operation has ended. It is -1 if there is none, or what
// is no request comes before. If the first one has not ended, it makes progress before it looks at
// the others: else each call would look in vain at all receives that stand before a send that is done.
func (l *Lib) ready(n int, at Handles) int {
	if at.null() {
		return -1
	}
	look := true
	for i := range n {
		h := at.get(i)
		if h == MPI_REQUEST_NULL {
			continue
		}
		r := l.requests.get(h)
		switch {
		case r == nil:
			return -1
		case r.IsNull():
			continue
		case r.Ready(look):
			return i
		}
		look = false
	}
	return -1
}

// unload keeps the memory of a batch. Requests in it would keep their buffers.
func (l *Lib) unload(b *batch) {
	clear(b.requests)
	clear(b.own)
	clear(b.some)
	l.batches.Put(b)
}

// room returns as many statuses as there are requests.
func (b *batch) room() []mpi.Status {
	for range b.requests {
		b.statuses = append(b.statuses, emptyStatus())
	}
	return b.statuses
}

// end gives the program back a request whose operation has ended.
func (l *Lib) end(b *batch, at Handles, i int) {
	if r := b.own[i]; r != nil && b.requests[i].IsNull() && !r.IsNull() {
		l.complete(r, at, i)
	}
}

// endAll is end of all, with their statuses and the errors of a call for all of them.
func (l *Lib) endAll(b *batch, at Handles, statuses Statuses, err error) error {
	for i := range b.requests {
		l.end(b, at, i)
		if !statuses.ignored() {
			statuses.set(i, b.statuses[i])
		}
	}
	if err == nil {
		return nil
	}
	if !statuses.ignored() {
		for i := range b.requests {
			statuses.setError(i, MPI_SUCCESS)
		}
		for _, e := range joined(err) {
			var one *mpi.RequestError
			if errors.As(e, &one) {
				statuses.setError(one.Index, code(one.Err))
			}
		}
	}
	return on(b.comm, inStatus{err})
}

// joined are the errors that errors.Join has joined.
func joined(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// Waitall is MPI_Waitall.
func Waitall(l *Lib, count int, requests Handles, statuses Statuses) error {
	b, err := l.load(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	if statuses.ignored() {
		err = mpi.Waitall(b.requests)
	} else {
		err = mpi.WaitallStatus(b.requests, b.room())
	}
	return l.endAll(b, requests, statuses, err)
}

// Testall is MPI_Testall.
func Testall(l *Lib, count int, requests Handles, flag Ints, statuses Statuses) error {
	b, err := l.load(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	done, err := mpi.TestallStatus(b.requests, b.room())
	if flag.setFlag(done); !done {
		return on(b.comm, err)
	}
	return l.endAll(b, requests, statuses, err)
}

// Waitany is MPI_Waitany.
func Waitany(l *Lib, count int, requests Handles, index Ints, status Statuses) error {
	b, err := l.loadAny(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	i, st, err := mpi.Waitany(b.requests)
	return l.endAny(b, requests, i, st, err, index, status)
}

// endAny is the end of a call for one of several requests.
func (l *Lib) endAny(b *batch, requests Handles, i int, st mpi.Status, err error, index Ints, status Statuses) error {
	status.set(0, st)
	if i == mpi.Undefined {
		index.set(0, MPI_UNDEFINED)
		return on(b.comm, err)
	}
	comm := b.own[i].comm
	index.set(0, b.first+i)
	l.end(b, requests.from(b.first), i)
	return on(comm, err)
}

// Testany is MPI_Testany.
func Testany(l *Lib, count int, requests Handles, index, flag Ints, status Statuses) error {
	b, err := l.loadAny(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	i, st, done, err := mpi.Testany(b.requests)
	if flag.setFlag(done); !done {
		status = noStatus
	}
	return l.endAny(b, requests, i, st, err, index, status)
}

// Waitsome is MPI_Waitsome.
func Waitsome(l *Lib, count int, requests Handles, outcount, indices Ints, statuses Statuses) error {
	return l.some(count, requests, outcount, indices, statuses, mpi.Waitsome)
}

// Testsome is MPI_Testsome.
func Testsome(l *Lib, count int, requests Handles, outcount, indices Ints, statuses Statuses) error {
	return l.some(count, requests, outcount, indices, statuses, mpi.Testsome)
}

// RequestGetStatusSome is MPI_Request_get_status_some.
func RequestGetStatusSome(l *Lib, count int, requests Handles, outcount, indices Ints, statuses Statuses) error {
	return l.some(count, requests, outcount, indices, statuses, mpi.GetStatusSome)
}

func (l *Lib) some(count int, requests Handles, outcount, indices Ints, statuses Statuses, call func([]mpi.Request, []mpi.Some) ([]mpi.Some, bool)) error {
	b, err := l.load(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	if count > 0 && indices.null() {
		return fail(mpi.ErrArg, "there is no array for %d indices", count)
	}
	some, active := call(b.requests, b.some)
	b.some = some
	if !active {
		outcount.set(0, MPI_UNDEFINED)
		return nil
	}
	outcount.set(0, len(some))
	var failed error
	for n, s := range some {
		indices.set(n, s.Index)
		statuses.set(n, s.Status)
		if s.Err != nil {
			failed, b.comm = s.Err, b.own[s.Index].comm
		}
		l.end(b, requests, s.Index)
	}
	if failed == nil {
		return nil
	}
	for n, s := range some {
		statuses.setError(n, code(s.Err))
	}
	return on(b.comm, inStatus{failed})
}

// RequestGetStatus is MPI_Request_get_status.
func RequestGetStatus(l *Lib, req Handle, flag Ints, status Statuses) error {
	r, err := l.request(req)
	if err != nil {
		return err
	}
	st, done := emptyStatus(), true
	comm := MPI_COMM_SELF
	if r != nil {
		comm = r.comm
		st, done, err = r.GetStatus()
	}
	if flag.setFlag(done); done {
		status.set(0, st)
	}
	return on(comm, err)
}

// RequestGetStatusAny is MPI_Request_get_status_any.
func RequestGetStatusAny(l *Lib, count int, requests Handles, index, flag Ints, status Statuses) error {
	b, err := l.load(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	i, st, done, err := mpi.GetStatusAny(b.requests)
	if flag.setFlag(done); done {
		status.set(0, st)
	}
	if i == mpi.Undefined {
		i = MPI_UNDEFINED
	}
	index.set(0, i)
	return on(b.comm, err)
}

// RequestGetStatusAll is MPI_Request_get_status_all.
func RequestGetStatusAll(l *Lib, count int, requests Handles, flag Ints, statuses Statuses) error {
	b, err := l.load(count, requests)
	if err != nil {
		return err
	}
	defer l.unload(b)
	done, err := mpi.GetStatusAll(b.requests, b.room())
	if flag.setFlag(done); !done {
		return on(b.comm, err)
	}
	for i := range b.requests {
		b.requests[i] = b.own[i].active() // so that none of them ends
	}
	return l.endAll(b, requests, statuses, err)
}

// active returns the operation of a request.
func (r *request) active() mpi.Request {
	if r == nil {
		return mpi.Request{}
	}
	return r.Request
}

// Cancel is MPI_Cancel.
func Cancel(l *Lib, req Handles) error {
	r, err := l.request(req.get(0))
	switch {
	case err != nil:
		return err
	case r == nil || r.IsNull():
		return fail(mpi.ErrRequest, "the request is not active")
	}
	return on(r.comm, r.Cancel())
}

// RequestFree is MPI_Request_free.
func RequestFree(l *Lib, req Handles) error {
	r, err := l.request(req.get(0))
	switch {
	case err != nil:
		return err
	case r == nil:
		return fail(mpi.ErrRequest, "MPI_REQUEST_NULL")
	}
	comm := r.comm
	started := r.general != nil && !r.general.IsComplete()
	if !r.IsNull() {
		err = r.Request.Free()
	}
	if err == nil && r.persistent != nil {
		err = r.persistent.Free()
	}
	if err == nil {
		if r.freed = started; !started {
			l.requests.remove(req.get(0))
		}
		req.set(0, MPI_REQUEST_NULL)
	}
	return on(comm, err)
}

// Start is MPI_Start.
func Start(l *Lib, req Handles) error { return l.startAt(req, 0) }

// Startall is MPI_Startall.
func Startall(l *Lib, count int, requests Handles) error {
	if count < 0 {
		return fail(mpi.ErrCount, "%d requests", count)
	}
	if err := requests.there("requests", count); err != nil {
		return err
	}
	for i := range count {
		if err := l.startAt(requests, i); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lib) startAt(at Handles, i int) error {
	r, err := l.request(at.get(i))
	switch {
	case err != nil:
		return err
	case r == nil || r.persistent == nil:
		return fail(mpi.ErrRequest, "the request is not of a persistent operation")
	}
	active, err := r.persistent.Start()
	if err == nil {
		r.Request = active
	}
	return on(r.comm, err)
}
