package capi

import "github.com/xwarp/xwarp/mpi"

// StatusMemory is an MPI_Status that functions of the program fill in.
type StatusMemory [statusSize / 4]int32

// GrequestStart is MPI_Grequest_start.
func GrequestStart(l *Lib, query, free, cancel, state Addr, request Handles) error {
	if err := l.up(); err != nil {
		return err
	}
	if query == 0 || free == 0 || cancel == 0 {
		return fail(mpi.ErrArg, "a function is NULL")
	}
	fortran := new(bool)
	g := &mpi.Grequest{
		Query: func(st *mpi.Status) error {
			memory := new(StatusMemory)
			filled := statusOf(memory)
			filled.set(0, *st)
			rc := l.calls.Query(query, state, memory, *fortran)
			*st = filled.at(0).get()
			return ofProgram(rc)
		},
		Free:   func() error { return ofProgram(l.calls.Free(free, state, *fortran)) },
		Cancel: func(complete bool) error { return ofProgram(l.calls.Cancel(cancel, state, complete, *fortran)) },
	}
	r, err := l.proc.GrequestStart(g)
	if err == nil {
		request.set(0, l.generalized(r, g, fortran))
	}
	return err
}

// ofProgram is the error that a function of the program returns.
func ofProgram(rc int) error {
	if rc == MPI_SUCCESS {
		return nil
	}
	return fail(classFrom(rc), "a function of the program returns %d", rc)
}

// GrequestComplete is MPI_Grequest_complete.
func GrequestComplete(l *Lib, request Handle) error {
	r, err := l.request(request)
	switch {
	case err != nil:
		return err
	case r == nil || r.general == nil:
		return fail(mpi.ErrRequest, "the request is not of a generalized request")
	}
	if err = r.general.Complete(); r.freed {
		l.requests.remove(request)
	}
	return err
}

func (l *Lib) generalized(r mpi.Request, g *mpi.Grequest, fortran *bool) Handle {
	return l.requests.add(request{Request: r, general: g, fortran: fortran, comm: MPI_COMM_SELF})
}

// SetFortran says that the functions of a generalized request are those of a Fortran program.
func (l *Lib) SetFortran(h Handle) {
	if r := l.requests.get(h); r != nil && r.fortran != nil {
		*r.fortran = true
	}
}
