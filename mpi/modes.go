package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/internal/mem"
)

// Ssend is Send that returns only when the receive has been found (MPI_Ssend).
func Ssend[T Scalar](c *Comm, buf []T, dest, tag int) error {
	b := mem.BytesOf(buf)
	t := c.p.watch.begin("Ssend", c, dest, tag, len(b))
	r, err := c.issend("Ssend", b, dest, tag)
	if err == nil {
		_, err = r.wait("Ssend")
	}
	t.end(err)
	return err
}

// Issend is Isend whose request completes only when the receive has been found
// (MPI_Issend).
func Issend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	b := mem.BytesOf(buf)
	t := c.p.watch.begin("Issend", c, dest, tag, len(b))
	r, err := c.issend("Issend", b, dest, tag)
	t.end(err)
	return r, err
}

func (c *Comm) issend(op string, buf []byte, dest, tag int) (Request, error) {
	if !c.sendOK(dest, tag) {
		if err := c.checkSend(op, dest, tag); err != nil {
			return Request{}, c.report(err)
		}
		return c.request(c.ep.Null(nullEnvelope())), nil
	}
	if w := c.p.watch; w != nil {
		w.sent(c, dest, tag, len(buf))
	}
	return c.request(c.ep.Issend(c.out(tag), c.at(dest), buf)), nil
}

// Rsend is Send for when the receive is posted already (MPI_Rsend). Nothing is
// gained by that here, and nothing is lost when it is not so.
func Rsend[T Scalar](c *Comm, buf []T, dest, tag int) error { return Send(c, buf, dest, tag) }

// Irsend is Isend for when the receive is posted already (MPI_Irsend).
func Irsend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	return Isend(c, buf, dest, tag)
}

// sendBuffer is what Bsend copies messages into (MPI 4.1, section 3.6).
type sendBuffer struct {
	room     int // bytes that the program has allowed
	used     int
	sends    []buffered
	attached bool
}

// buffered is a message that was copied and is on its way.
type buffered struct {
	r    Request
	size int
}

// BsendOverhead is how many bytes of the attached buffer each message takes
// beside its own (MPI_BSEND_OVERHEAD).
const BsendOverhead = 64

// BufferAttach lets Bsend keep messages of so many bytes, BsendOverhead for each
// included (MPI_Buffer_attach).
func (p *Proc) BufferAttach(bytes int) error {
	p.ep.Enter()
	defer p.ep.Leave()
	switch {
	case p.buffer.attached:
		return fail(ErrBuffer, "BufferAttach", "there is a buffer already: detach it first")
	case bytes < 0:
		return fail(ErrArg, "BufferAttach", "%d bytes", bytes)
	}
	p.buffer = sendBuffer{room: bytes, attached: true}
	return nil
}

// BufferDetach waits until all buffered messages are on their way and takes the
// buffer away (MPI_Buffer_detach). It returns its size in bytes.
func (p *Proc) BufferDetach() (int, error) {
	err := p.BufferFlush()
	p.ep.Enter()
	defer p.ep.Leave()
	if !p.buffer.attached {
		return 0, fail(ErrBuffer, "BufferDetach", "no buffer is attached")
	}
	size := p.buffer.room
	p.buffer = sendBuffer{}
	return size, err
}

// BufferFlush waits until all buffered messages are on their way
// (MPI_Buffer_flush).
func (p *Proc) BufferFlush() error {
	b := &p.buffer
	p.ep.Enter()
	sends := b.sends
	b.sends = nil
	p.ep.Leave()
	var errs []error
	for _, s := range sends { // others may send meanwhile
		if _, err := s.r.wait("BufferFlush"); err != nil {
			errs = append(errs, err)
		}
		p.ep.Enter()
		b.used -= s.size
		p.ep.Leave()
	}
	return errors.Join(errs...)
}

// collect forgets the messages that are on their way.
func (p *Proc) collect() {
	p.ep.Step()
	b := &p.buffer
	p.ep.Enter()
	kept := b.sends[:0]
	for _, s := range b.sends {
		if s.r.done() {
			_, _ = p.ep.Inside().Wait(s.r.r) // errors show in later calls to the same rank
			b.used -= s.size
			continue
		}
		kept = append(kept, s)
	}
	b.sends = kept
	p.ep.Leave()
}

// reserve takes so many bytes of the buffer. When it has no room for them, full
// says why.
func (p *Proc) reserve(op string, size int) (full error) {
	b := &p.buffer
	p.ep.Enter()
	defer p.ep.Leave()
	if b.used+size > b.room {
		return fail(ErrBuffer, op, "a message of %d bytes does not fit the attached buffer, in which %d of %d are taken", size-BsendOverhead, b.used, b.room)
	}
	b.used += size
	return nil
}

// Bsend is Send that never waits for the receiver: it copies buf into the
// attached buffer (MPI_Bsend). When that has no room the error's class is
// ErrBuffer.
func Bsend[T Scalar](c *Comm, buf []T, dest, tag int) error {
	b := mem.BytesOf(buf)
	t := c.p.watch.begin("Bsend", c, dest, tag, len(b))
	err := c.bsend("Bsend", b, dest, tag)
	t.end(err)
	return err
}

// Ibsend is Bsend with a request, which is complete (MPI_Ibsend).
func Ibsend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	b := mem.BytesOf(buf)
	t := c.p.watch.begin("Ibsend", c, dest, tag, len(b))
	r, err := c.ibsend("Ibsend", b, dest, tag)
	t.end(err)
	return r, err
}

func (c *Comm) ibsend(op string, buf []byte, dest, tag int) (Request, error) {
	if err := c.bsend(op, buf, dest, tag); err != nil {
		return Request{}, err
	}
	return c.request(c.ep.Null(nullEnvelope())), nil
}

func (c *Comm) bsend(op string, buf []byte, dest, tag int) error {
	if !c.sendOK(dest, tag) {
		return c.report(c.checkSend(op, dest, tag))
	}
	p := c.p
	size := len(buf) + BsendOverhead
	full := p.reserve(op, size)
	if full != nil {
		p.collect()
		full = p.reserve(op, size)
	}
	if full != nil {
		return c.report(full)
	}
	if w := c.p.watch; w != nil {
		w.sent(c, dest, tag, len(buf))
	}
	r := c.request(c.ep.Isend(c.out(tag), c.at(dest), append([]byte(nil), buf...)))
	p.ep.Enter()
	p.buffer.sends = append(p.buffer.sends, buffered{r, size})
	p.ep.Leave()
	return nil
}
