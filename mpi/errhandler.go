package mpi

import "errors"

// Errhandler is called with every error that an operation on a communicator
// returns, before it returns it (MPI_Errhandler). Nil, the default, does
// nothing: errors are values in Go (MPI_ERRORS_RETURN).
type Errhandler func(c *Comm, err error)

// ErrorsAreFatal is an Errhandler that ends the job (MPI_ERRORS_ARE_FATAL).
func ErrorsAreFatal(c *Comm, err error) {
	c.p.abort(int(ClassOf(err)), err.Error())
}

// ErrorsAbort is an Errhandler that ends the job, too, for not less than that ends
// when the ranks of a communicator do (MPI_ERRORS_ABORT).
func ErrorsAbort(c *Comm, err error) { ErrorsAreFatal(c, err) }

// CallErrhandler calls the error handler with an error of the program's
// (MPI_Comm_call_errhandler), and returns the error.
func (c *Comm) CallErrhandler(err error) error { return c.report(err) }

// SetErrhandler sets the error handler (MPI_Comm_set_errhandler). Communicators
// that are made from c get it too.
func (c *Comm) SetErrhandler(h Errhandler) {
	if h == nil {
		c.handler.Store(nil)
		return
	}
	c.handler.Store(&h)
}

// Errhandler returns the error handler (MPI_Comm_get_errhandler).
func (c *Comm) Errhandler() Errhandler {
	if h := c.handler.Load(); h != nil {
		return *h
	}
	return nil
}

// report shows an error to the handler and returns it.
func (c *Comm) report(err error) error {
	if err != nil && c != nil {
		if h := c.Errhandler(); h != nil {
			h(c, err)
		}
	}
	return err
}

// reportf reports an error of its own.
func (c *Comm) reportf(class ErrorClass, op, format string, args ...any) error {
	return c.report(fail(class, op, format, args...))
}

// wrapOther makes an error of the program's one of class ErrOther.
func wrapOther(op string, err error) error {
	if _, ok := errors.AsType[*Error](err); err == nil || ok {
		return err
	}
	return &Error{Class: ErrOther, Op: op, Rank: -1, Err: err}
}
