package mpi

import "errors"

// Cancel takes back a receive that no message has met yet, or a send that waits for its
// receive (MPI_Cancel). Wait or Test still ends the request; Status.Cancelled tells
// whether it was taken back. Sends that need not wait for a receive, because they are
// short, are not cancelled. Of a generalized request it calls [Grequest.Cancel].
func (r *Request) Cancel() error {
	switch {
	case r.IsNull():
		return fail(ErrRequest, "Cancel", "the request is null")
	case !r.live():
		return r.stale("Cancel")
	case r.k != nil && r.k.grequest() != nil:
		return r.c.report(r.k.grequest().cancel())
	case r.k != nil:
		return fail(ErrRequest, "Cancel", "only messages and generalized requests can be taken back")
	}
	r.c.ep.Cancel(r.r)
	return nil
}

// live reports whether the request names an operation that was not ended.
func (r *Request) live() bool {
	switch {
	case r.k != nil:
		return r.gen() == r.k.gen
	case r.r != nil:
		return r.gen() == r.r.Generation()
	}
	return false
}

// done reports whether Wait would return at once. It is called inside.
func (r *Request) done() bool {
	switch {
	case !r.live():
		return true
	case r.k != nil:
		return r.k.done
	}
	return r.r.Ready()
}

// Ready reports whether Wait would return at once. If not, and look is true, it makes progress
// once, and looks again.
func (r *Request) Ready(look bool) bool {
	if r.IsNull() {
		return true
	}
	ep := r.c.ep
	ep.Enter()
	there := r.done()
	ep.Leave()
	if look && !there {
		ep.Glance()
		return r.Ready(false)
	}
	return there
}

// Free lets a message that is under way, or a generalized request, end by itself
// (MPI_Request_free) and makes the request null. Nothing tells when the buffer may be
// used again, but for what the program learns from other messages.
func (r *Request) Free() error {
	switch {
	case r.IsNull():
		return fail(ErrRequest, "Request.Free", "the request is null")
	case !r.live():
		return r.stale("Request.Free")
	case r.k != nil && r.k.grequest() != nil:
		return r.freeGrequest()
	case r.k != nil:
		return fail(ErrRequest, "Request.Free", "only messages and generalized requests end by themselves: wait for it")
	}
	r.c.ep.Enter()
	r.c.ep.Inside().Detach(r.r)
	r.c.ep.Leave()
	r.r = nil
	return nil
}

// WaitallStatus is Waitall that tells about each message: statuses has room for
// all.
func WaitallStatus(requests []Request, statuses []Status) error {
	if len(statuses) < len(requests) {
		return noRoom("Waitall", requests, statuses)
	}
	t := watcher(requests).begin("Waitall", nil, Undefined, Undefined, 0)
	var errs []error
	for i := range requests {
		st, err := requests[i].wait("Waitall")
		statuses[i] = st
		if err != nil {
			errs = append(errs, &RequestError{i, err})
		}
	}
	err := errors.Join(errs...)
	t.end(err)
	return err
}

// noRoom is the error when there are fewer statuses than requests.
func noRoom(op string, requests []Request, statuses []Status) error {
	return fail(ErrArg, op, "%d requests, and room for %d statuses", len(requests), len(statuses))
}

// Testall makes progress and reports whether all operations are complete
// (MPI_Testall). If so, it has the effect of Waitall; else it changes nothing.
func Testall(requests []Request) (done bool, err error) {
	if done = testall(requests); done {
		err = Waitall(requests)
	}
	return done, err
}

// TestallStatus is Testall that tells about each message: statuses has room for all.
func TestallStatus(requests []Request, statuses []Status) (done bool, err error) {
	if done = testall(requests); done {
		err = WaitallStatus(requests, statuses)
	}
	return done, err
}

// testall makes progress and reports whether all operations are complete.
func testall(requests []Request) (done bool) {
	ep := endpoint(requests)
	if ep == nil {
		return true
	}
	done = true
	ep.Ask()
	ep.Enter()
	for i := range requests {
		done = done && requests[i].done()
	}
	ep.Leave()
	return done
}

// Testany makes progress and ends one operation that is complete, if there is
// one (MPI_Testany). When all requests are null, it reports true and the index
// Undefined.
func Testany(requests []Request) (index int, st Status, done bool, err error) {
	if index, done = testany(requests); index == Undefined {
		return Undefined, emptyStatus(), done, nil
	}
	st, err = requests[index].wait("Testany")
	return index, st, true, err
}

// testany makes progress and returns the index of an operation that is complete, if
// there is one. When all requests are null, there is none and done is true.
func testany(requests []Request) (index int, done bool) {
	ep := endpoint(requests)
	if ep == nil {
		return Undefined, true
	}
	ep.Ask()
	ep.Enter()
	defer ep.Leave()
	if index = finished(requests); index < 0 {
		return Undefined, false
	}
	return index, true
}

// Some is one of the operations that Waitsome and Testsome have ended.
type Some struct {
	Index  int
	Status Status
	Err    error
}

// Testsome makes progress and ends all operations that are complete
// (MPI_Testsome). It appends to some what became of them. When all requests are
// null, active is false.
func Testsome(requests []Request, some []Some) (_ []Some, active bool) {
	ep := endpoint(requests)
	if ep == nil {
		return some, false
	}
	ep.Ask()
	return takeSome(requests, some), true
}

// takeSome ends all operations that are complete.
func takeSome(requests []Request, some []Some) []Some {
	for i := range requests {
		r := &requests[i]
		if r.IsNull() {
			continue
		}
		r.c.ep.Enter()
		done := r.done()
		r.c.ep.Leave()
		if done {
			st, err := r.wait("Testsome")
			some = append(some, Some{i, st, err})
		}
	}
	return some
}

// Waitsome waits until at least one operation is complete and ends all that are
// (MPI_Waitsome). See Testsome.
func Waitsome(requests []Request, some []Some) (_ []Some, active bool) {
	ep := endpoint(requests)
	if ep == nil {
		return some, false
	}
	t := watcher(requests).begin("Waitsome", nil, Undefined, Undefined, 0)
	ep.Enter()
	ep.Inside().Step()
	for finished(requests) < 0 {
		ep.Inside().Progress()
	}
	ep.Leave()
	some = takeSome(requests, some)
	t.end(nil)
	return some, true
}
