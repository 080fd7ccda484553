package mpi

import "github.com/xwarp/xwarp/internal/mem"

// Persistent is an operation that was prepared once and can be started many
// times (MPI 4.1, sections 3.9 and 6.13): what can be found out beforehand is not
// found out again. It uses the buffers that it was made with, which belong to it
// from Start until its request is complete.
//
// All ranks make the persistent collectives of a communicator in the same order,
// and may start them in any.
type Persistent struct {
	k    *call // a collective
	make func() (Request, error)
	last Request // of make
}

// often begins a persistent collective.
func (c *Comm) often(op string) *call {
	k := &call{c: c, op: op, kept: true}
	k.err = c.live(op)
	return k
}

// keep makes what was planned the user's.
func (k *call) keep() (*Persistent, error) {
	if k.err != nil {
		return nil, k.c.report(k.err)
	}
	k.s.Tag = k.c.coll.keep()
	return &Persistent{k: k}, nil
}

// Start starts the operation (MPI_Start). The request that it returns is as that
// of a nonblocking one; the operation can be started again when it has ended.
func (o *Persistent) Start() (Request, error) {
	switch k := o.k; {
	case k == nil && o.make == nil:
		return Request{}, fail(ErrRequest, "Start", "the persistent operation was freed, or never made")
	case k == nil && o.last.live():
		return Request{}, fail(ErrRequest, "Start", "the operation is under way: wait for it first")
	case k == nil:
		r, err := o.make()
		o.last = r
		return r, err
	case k.c.live("Start") != nil:
		return Request{}, k.c.report(k.c.live("Start"))
	case k.busy:
		return Request{}, k.c.reportf(ErrRequest, "Start", "the operation is under way: wait for it first")
	}
	return o.k.start()
}

// Startall starts several operations (MPI_Startall). The requests are in their
// order.
func Startall(ops []*Persistent) ([]Request, error) {
	requests := make([]Request, len(ops))
	for i, o := range ops {
		var err error
		if requests[i], err = o.Start(); err != nil {
			return requests, err
		}
	}
	return requests, nil
}

// Free ends the use of the operation (MPI_Request_free), which must not be under
// way.
func (o *Persistent) Free() error {
	switch {
	case o.k != nil && o.k.busy:
		return o.k.c.reportf(ErrRequest, "Persistent.Free", "the operation is under way: wait for it first")
	case o.last.live():
		return fail(ErrRequest, "Persistent.Free", "the operation is under way: wait for it first")
	}
	o.k, o.make = nil, nil
	return nil
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
	return &Persistent{make: start}, nil
}

// RecvInit makes a Recv to be started (MPI_Recv_init).
func RecvInit[T Scalar](c *Comm, buf []T, source, tag int) (*Persistent, error) {
	if err := c.checkRecv("RecvInit", source, tag); err != nil {
		return nil, c.report(err)
	}
	b := mem.BytesOf(buf)
	return &Persistent{make: func() (Request, error) { return c.irecv(b, source, tag) }}, nil
}
