package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Message is a message that Mprobe has found, and that no other call can receive
// (MPI_Message). Receive it once, with Mrecv or Imrecv.
type Message struct {
	c    *Comm
	m    p2p.Matched
	null bool // from ProcNull
}

// Mprobe waits for a message and takes it (MPI_Mprobe).
func (c *Comm) Mprobe(source, tag int) (*Message, Status, error) {
	if !c.recvOK(source, tag) {
		if err := c.checkRecv("Mprobe", source, tag); err != nil {
			return nil, emptyStatus(), c.report(err)
		}
		return &Message{c: c, null: true}, nullStatus(), nil
	}
	t := c.p.watch.begin("Mprobe", c, source, tag, 0)
	m, st, err := c.ep.Mprobe(c.in(source, tag))
	t.end(err)
	if err != nil {
		return nil, emptyStatus(), c.report(c.wrap("Mprobe", err))
	}
	return &Message{c: c, m: m}, c.status(st), nil
}

// Improbe is Mprobe without waiting (MPI_Improbe). found tells whether there was
// a message.
func (c *Comm) Improbe(source, tag int) (msg *Message, st Status, found bool, err error) {
	if !c.recvOK(source, tag) {
		if err := c.checkRecv("Improbe", source, tag); err != nil {
			return nil, emptyStatus(), false, c.report(err)
		}
		return &Message{c: c, null: true}, nullStatus(), true, nil
	}
	m, got, found, err := c.ep.Improbe(c.in(source, tag))
	if err != nil || !found {
		return nil, emptyStatus(), false, c.report(c.wrap("Improbe", err))
	}
	return &Message{c: c, m: m}, c.status(got), true, nil
}

// Mrecv receives a message that Mprobe has found (MPI_Mrecv).
func Mrecv[T Scalar](m *Message, buf []T) (Status, error) { return m.Recv(Slice(buf)) }

// watch returns what watches the process of a message, or nil.
func (m *Message) watch() *watch { return m.comm().watch() }

// comm returns the communicator of a message, nil of one that no call can receive.
func (m *Message) comm() *Comm {
	if m == nil {
		return nil
	}
	return m.c
}

// Imrecv starts to receive a message that Mprobe has found (MPI_Imrecv).
func Imrecv[T Scalar](m *Message, buf []T) (Request, error) { return m.Irecv(Slice(buf)) }

func (m *Message) imrecv(op string, buf []byte) (Request, error) {
	c := m.comm()
	if c == nil {
		return Request{}, fail(ErrRequest, op, "the message was received before, or is none")
	}
	m.c = nil
	if m.null {
		return c.request(c.ep.Null(nullEnvelope())), nil
	}
	return c.receive(c.ep.Accept(m.m, buf), len(buf)), nil
}
