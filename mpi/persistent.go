package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/internal/mem"
)

// Persistent is an operation that is started again and again (MPI 4.1, section
// 3.9). Start begins it, and Wait or Test of its Request ends that run; the
// buffer is the operation's between the two.
type Persistent struct {
	Request
	start func() (Request, error)
}

// Start begins the operation (MPI_Start). The run before must have ended.
func (p *Persistent) Start() error {
	if p.start == nil {
		return fail(ErrRequest, "Start", "the operation was freed, or never made")
	}
	if !p.IsNull() && p.gen == p.r.Generation() {
		return fail(ErrRequest, "Start", "the operation is under way: Wait for it first")
	}
	r, err := p.start()
	p.Request = r
	return err
}

// Free ends the use of the operation (MPI_Request_free), which is not under way.
func (p *Persistent) Free() { p.start = nil }

// Startall starts several operations (MPI_Startall).
func Startall(ps []*Persistent) error {
	var errs []error
	for _, p := range ps {
		errs = append(errs, p.Start())
	}
	return errors.Join(errs...)
}

// WaitallPersistent waits until the runs of all operations have ended.
func WaitallPersistent(ps []*Persistent) error {
	var errs []error
	for _, p := range ps {
		if _, err := p.wait("Waitall"); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// SendInit makes a Send to be started (MPI_Send_init).
func SendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	b := mem.BytesOf(buf)
	return c.sendInit("SendInit", dest, tag, func() (Request, error) { return c.isend(b, dest, tag) })
}

// SsendInit makes an Ssend to be started (MPI_Ssend_init).
func SsendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	b := mem.BytesOf(buf)
	return c.sendInit("SsendInit", dest, tag, func() (Request, error) { return c.issend("Start", b, dest, tag) })
}

// RsendInit makes an Rsend to be started (MPI_Rsend_init).
func RsendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	return SendInit(c, buf, dest, tag)
}

// BsendInit makes a Bsend to be started (MPI_Bsend_init).
func BsendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	return c.sendInit("BsendInit", dest, tag, func() (Request, error) { return Ibsend(c, buf, dest, tag) })
}

func (c *Comm) sendInit(op string, dest, tag int, start func() (Request, error)) (*Persistent, error) {
	if err := c.checkSend(op, dest, tag); err != nil {
		return nil, c.report(err)
	}
	return &Persistent{start: start}, nil
}

// RecvInit makes a Recv to be started (MPI_Recv_init).
func RecvInit[T Scalar](c *Comm, buf []T, source, tag int) (*Persistent, error) {
	if err := c.checkRecv("RecvInit", source, tag); err != nil {
		return nil, c.report(err)
	}
	b := mem.BytesOf(buf)
	return &Persistent{start: func() (Request, error) { return c.irecv(b, source, tag) }}, nil
}
