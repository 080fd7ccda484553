package mpi

import "errors"

// Cancel takes back a receive that no message has met yet (MPI_Cancel). Wait or
// Test still ends the request; Status.Cancelled tells whether it was taken back.
// Sends are not cancelled.
func (r *Request) Cancel() error {
	switch {
	case r.IsNull():
		return fail(ErrRequest, "Cancel", "the request is null")
	case r.k != nil:
		return fail(ErrRequest, "Cancel", "collectives cannot be taken back")
	case !r.live():
		return r.stale("Cancel")
	}
	r.c.ep.Cancel(r.r)
	return nil
}

// live reports whether the request names an operation that was not ended.
func (r *Request) live() bool {
	switch {
	case r.k != nil:
		return r.gen == r.k.gen
	case r.r != nil:
		return r.gen == r.r.Generation()
	}
	return false
}

// done reports whether Wait would return at once.
func (r *Request) done() bool {
	switch {
	case !r.live():
		return true
	case r.k != nil:
		return r.k.done
	}
	return r.r.Done()
}

// Peek makes progress and reports whether the operation is complete, without
// ending it (MPI_Request_get_status).
func (r *Request) Peek() bool {
	if !r.done() {
		r.c.ep.Engine().Step()
	}
	return r.done()
}

// WaitallStatus is Waitall that tells about each message: statuses has room for
// all.
func WaitallStatus(requests []Request, statuses []Status) error {
	var errs []error
	for i := range requests {
		st, err := requests[i].wait("Waitall")
		statuses[i] = st
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// step makes progress for requests.
func step(requests []Request) {
	for i := range requests {
		if r := &requests[i]; r.live() {
			r.c.ep.Engine().Step()
			return
		}
	}
}

// Testall makes progress and reports whether all operations are complete
// (MPI_Testall). If so, it has the effect of Waitall; else it changes nothing.
func Testall(requests []Request) (done bool, err error) {
	step(requests)
	for i := range requests {
		if !requests[i].done() {
			return false, nil
		}
	}
	return true, Waitall(requests)
}

// Testany makes progress and ends one operation that is complete, if there is
// one (MPI_Testany). When all requests are null, it reports true and the index
// Undefined.
func Testany(requests []Request) (index int, st Status, done bool, err error) {
	step(requests)
	null := true
	for i := range requests {
		r := &requests[i]
		if r.IsNull() {
			continue
		}
		null = false
		if r.done() {
			st, err = r.wait("Testany")
			return i, st, true, err
		}
	}
	return Undefined, emptyStatus(), null, nil
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
	step(requests)
	for i := range requests {
		r := &requests[i]
		if r.IsNull() {
			continue
		}
		active = true
		if r.done() {
			st, err := r.wait("Testsome")
			some = append(some, Some{i, st, err})
		}
	}
	return some, active
}

// Waitsome waits until at least one operation is complete and ends all that are
// (MPI_Waitsome). See Testsome.
func Waitsome(requests []Request, some []Some) (_ []Some, active bool) {
	had := len(some)
	for {
		if some, active = Testsome(requests, some); len(some) > had || !active {
			return some, active
		}
		for i := range requests {
			if r := &requests[i]; r.live() && !r.done() {
				r.c.ep.Progress()
				break
			}
		}
	}
}
