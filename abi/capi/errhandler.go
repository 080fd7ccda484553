package capi

// errhandler is an error handler that the program has made.
type errhandler struct {
	function Addr
	kind     kind // of the objects that it is for
}

// handlerOf returns the error handler of an object.
func (l *Lib) handlerOf(w Where) Handle {
	if w.kind == kindComm {
		if c := l.lookup(w.handle); c != nil {
			return c.handler
		}
	}
	return l.self.handler
}

// handle calls an error handler. why is asked for when the job is to end.
func (l *Lib) handle(handler, object Handle, code int, why func() string) {
	switch handler {
	case MPI_ERRORS_RETURN:
		return
	case MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT:
		l.die(code, why())
		return
	}
	if h := l.errhandlers.get(handler); h != nil {
		l.calls.Errhandler(h.function, object, code)
	}
}
