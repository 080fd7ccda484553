package mpi

import "errors"

// What follows looks at requests as Test does, and leaves them as they are: Wait or
// Test will tell the same (MPI 4.1, section 3.7.6).

// GetStatus makes progress and reports whether the operation is complete, and what
// became of it (MPI_Request_get_status).
func (r *Request) GetStatus() (st Status, done bool, err error) {
	if r.IsNull() {
		return emptyStatus(), true, nil
	}
	ep := r.c.ep
	ep.Enter()
	done = r.done()
	ep.Leave()
	if !done {
		ep.Ask()
	}
	return r.look()
}

// look is GetStatus without progress.
func (r *Request) look() (st Status, done bool, err error) {
	const op = "GetStatus"
	if r.IsNull() {
		return emptyStatus(), true, nil
	}
	r.c.ep.Enter()
	st, done, err = r.peek(op)
	var g *Grequest
	if done && err == nil && r.k != nil {
		g = r.k.grequest()
	}
	r.c.ep.Leave()
	if g != nil {
		st, err = g.query(op)
	}
	return st, done, err
}

// peek is look for those inside.
func (r *Request) peek(op string) (st Status, done bool, err error) {
	switch {
	case !r.live():
		return emptyStatus(), true, r.stale(op)
	case r.k != nil && !r.k.done:
		return emptyStatus(), false, nil
	case r.k != nil:
		st, err = r.k.outcome()
		return st, true, err
	}
	got, done, err := r.c.ep.Inside().Result(r.r)
	if err != nil {
		err = r.c.wrap(op, err)
	} else if done && r.c.exact {
		err = r.c.exactly(op, got, r.room())
	}
	if !done {
		return emptyStatus(), false, err
	}
	return r.c.status(got), true, err
}

// GetStatusAny is Testany that leaves the request as it is
// (MPI_Request_get_status_any).
func GetStatusAny(requests []Request) (index int, st Status, done bool, err error) {
	if index, done = testany(requests); index == Undefined {
		return Undefined, emptyStatus(), done, nil
	}
	st, done, err = requests[index].look()
	return index, st, done, err
}

// GetStatusAll is Testall that leaves the requests as they are
// (MPI_Request_get_status_all). statuses has room for all, or is nil.
func GetStatusAll(requests []Request, statuses []Status) (done bool, err error) {
	if statuses != nil && len(statuses) < len(requests) {
		return false, noRoom("GetStatusAll", requests, statuses)
	}
	if done = testall(requests); !done {
		return false, nil
	}
	var errs []error
	for i := range requests {
		st, there, err := requests[i].look()
		done = done && there // else a loss makes it doubtful whether it will be
		if statuses != nil {
			statuses[i] = st
		}
		if err != nil {
			errs = append(errs, &RequestError{i, err})
		}
	}
	return done, errors.Join(errs...)
}

// GetStatusSome is Testsome that leaves the requests as they are
// (MPI_Request_get_status_some).
func GetStatusSome(requests []Request, some []Some) (_ []Some, active bool) {
	ep := endpoint(requests)
	if ep == nil {
		return some, false
	}
	ep.Ask()
	for i := range requests {
		if requests[i].IsNull() {
			continue
		}
		if st, done, err := requests[i].look(); done || err != nil {
			some = append(some, Some{i, st, err})
		}
	}
	return some, true
}
