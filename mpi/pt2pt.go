package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Send sends buf to the rank dest (MPI_Send). It returns when buf may be
// changed, which is at once for messages up to the eager limit; a longer one
// waits for its receive.
func Send[T Scalar](c *Comm, buf []T, dest, tag int) error {
	return c.send(mem.BytesOf(buf), dest, tag)
}

func (c *Comm) send(buf []byte, dest, tag int) error {
	if !c.sendOK(dest, tag) {
		return c.report(c.checkSend("Send", dest, tag))
	}
	t := c.p.watch.begin("Send", c, dest, tag, len(buf))
	c.sent(dest, tag, len(buf))
	err := c.ep.Send(c.out(tag), c.at(dest), buf)
	if err != nil {
		err = c.report(c.wrap("Send", err))
	}
	t.end(err)
	return err
}

// Recv receives a message into buf (MPI_Recv). source may be AnySource, tag
// AnyTag; the status tells which they were. A message that is longer than buf
// fills it, and the error's class is ErrTruncate.
func Recv[T Scalar](c *Comm, buf []T, source, tag int) (Status, error) {
	return c.recv(mem.BytesOf(buf), source, tag)
}

func (c *Comm) recv(buf []byte, source, tag int) (Status, error) {
	if !c.recvOK(source, tag) {
		return nullStatus(), c.report(c.checkRecv("Recv", source, tag))
	}
	t := c.p.watch.begin("Recv", c, source, tag, len(buf))
	st, err := c.ep.Recv(c.in(source, tag), buf)
	if err == nil && c.exact {
		err = c.exactly("Recv", st, uint32(len(buf)))
	}
	if err != nil {
		err = c.report(c.wrap("Recv", err))
	}
	c.got(st)
	t.end(err)
	return c.status(st), err
}

// nullStatus is the status of a message from ProcNull (MPI 4.1, section 3.10).
func nullStatus() Status { return Status{Source: ProcNull, Tag: AnyTag} }

// Isend starts to send buf (MPI_Isend), which must not be changed until the
// request is complete. The error is about the arguments; everything else comes
// with the request.
func Isend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	b := mem.BytesOf(buf)
	t := c.watch().begin("Isend", c, dest, tag, len(b))
	r, err := c.isend(b, dest, tag)
	t.end(err)
	return r, err
}

func (c *Comm) isend(buf []byte, dest, tag int) (Request, error) {
	if !c.sendOK(dest, tag) {
		if err := c.checkSend("Isend", dest, tag); err != nil {
			return Request{}, c.report(err)
		}
		return c.request(c.ep.Null(nullEnvelope())), nil
	}
	c.sent(dest, tag, len(buf))
	return c.request(c.ep.Isend(c.out(tag), c.at(dest), buf)), nil
}

// Irecv starts to receive into buf (MPI_Irecv), which must be left alone until
// the request is complete. See [Recv] and [Isend].
func Irecv[T Scalar](c *Comm, buf []T, source, tag int) (Request, error) {
	b := mem.BytesOf(buf)
	t := c.watch().begin("Irecv", c, source, tag, len(b))
	r, err := c.irecv(b, source, tag)
	t.end(err)
	return r, err
}

func (c *Comm) irecv(buf []byte, source, tag int) (Request, error) {
	if !c.recvOK(source, tag) {
		if err := c.checkRecv("Irecv", source, tag); err != nil {
			return Request{}, c.report(err)
		}
		return c.request(c.ep.Null(nullEnvelope())), nil
	}
	return c.receive(c.ep.Irecv(c.in(source, tag), buf), len(buf)), nil
}

func nullEnvelope() p2p.Status { return p2p.Status{Source: ProcNull, Tag: match.Any} }

// Probe waits for a message and tells about it without receiving it
// (MPI_Probe). A receive from the status' source with its tag gets it.
func (c *Comm) Probe(source, tag int) (Status, error) {
	if !c.recvOK(source, tag) {
		return nullStatus(), c.report(c.checkRecv("Probe", source, tag))
	}
	t := c.p.watch.begin("Probe", c, source, tag, 0)
	st, err := c.ep.Probe(c.in(source, tag))
	t.end(err)
	if err != nil {
		return emptyStatus(), c.report(c.wrap("Probe", err))
	}
	return c.status(st), nil
}

// Iprobe is Probe without waiting (MPI_Iprobe). found tells whether there is a
// message.
func (c *Comm) Iprobe(source, tag int) (st Status, found bool, err error) {
	if !c.recvOK(source, tag) {
		err := c.checkRecv("Iprobe", source, tag)
		return nullStatus(), err == nil, c.report(err)
	}
	got, found, err := c.ep.Iprobe(c.in(source, tag))
	if err != nil || !found {
		return emptyStatus(), false, c.report(c.wrap("Iprobe", err))
	}
	return c.status(got), true, nil
}
