package mpi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// BsendOverhead is how many bytes of the attached buffer each message takes
// beside its own (MPI_BSEND_OVERHEAD).
const BsendOverhead = 64

// BufferAutomatic is a buffer to attach that is as large as need be
// (MPI_BUFFER_AUTOMATIC).
const BufferAutomatic = -1

// sendBuffer is what Bsend copies messages into (MPI 4.1, section 3.6): how many
// bytes it may take, for the memory of each message is its own.
type sendBuffer struct {
	room     int // bytes that the program has allowed, or BufferAutomatic
	used     int
	sends    []buffered
	due      int // how many of them there are when those on their way are forgotten, if room does not say when
	flushes  int // that wait for messages which are not in sends any more
	attached bool
}

// bufferDue is the least due.
const bufferDue = 64

// buffered is a message that was copied and is on its way.
type buffered struct {
	r    Request
	size int
}

// BufferAttach lets Bsend keep messages of so many bytes, BsendOverhead for each
// included, or of any number for BufferAutomatic (MPI_Buffer_attach). It is for the
// communicators that have no buffer of their own, nor one of their session.
func (p *Proc) BufferAttach(bytes int) error { return p.buffer.attach(p.ep, "BufferAttach", bytes) }

// BufferDetach waits until all buffered messages are on their way and takes the
// buffer away (MPI_Buffer_detach). It returns its size in bytes, or
// BufferAutomatic.
func (p *Proc) BufferDetach() (int, error) { return p.buffer.detach(p.ep, "BufferDetach") }

// BufferFlush waits until all buffered messages are on their way
// (MPI_Buffer_flush).
func (p *Proc) BufferFlush() error { return p.buffer.flush(p.ep, "BufferFlush") }

// BufferIflush is BufferFlush that does not wait, for the messages of now
// (MPI_Buffer_iflush).
func (p *Proc) BufferIflush() (Request, error) {
	return p.world.begin("BufferIflush", &flushing{b: &p.buffer})
}

// BufferAttach gives the communicator a buffer of its own (MPI_Comm_attach_buffer).
// See [Proc.BufferAttach].
func (c *Comm) BufferAttach(bytes int) error {
	const op = "Comm.BufferAttach"
	err := c.live(op)
	if err == nil {
		err = c.buffer.attach(c.ep, op, bytes)
	}
	return c.report(err)
}

// BufferDetach is [Proc.BufferDetach] of the buffer of the communicator
// (MPI_Comm_detach_buffer).
func (c *Comm) BufferDetach() (int, error) {
	const op = "Comm.BufferDetach"
	if err := c.live(op); err != nil {
		return 0, c.report(err)
	}
	size, err := c.buffer.detach(c.ep, op)
	return size, c.report(err)
}

// BufferFlush waits until all messages in the buffer of the communicator are on
// their way (MPI_Comm_flush_buffer). Free does so too.
func (c *Comm) BufferFlush() error {
	const op = "Comm.BufferFlush"
	if err := c.live(op); err != nil {
		return c.report(err)
	}
	return c.buffer.flush(c.ep, op)
}

// BufferIflush is BufferFlush that does not wait (MPI_Comm_iflush_buffer).
func (c *Comm) BufferIflush() (Request, error) {
	const op = "Comm.BufferIflush"
	if err := c.live(op); err != nil {
		return Request{}, c.report(err)
	}
	return c.begin(op, &flushing{b: &c.buffer})
}

// bsendBuffer returns the buffer for messages of c. It is called inside, as
// what says whether there is room.
func (c *Comm) bsendBuffer() *sendBuffer {
	switch {
	case c.buffer.attached:
		return &c.buffer
	case c.session != nil && c.session.buffer.attached:
		return &c.session.buffer
	}
	return &c.p.buffer
}

func (b *sendBuffer) attach(ep *p2p.Endpoint, op string, bytes int) error {
	ep.Enter()
	defer ep.Leave()
	switch {
	case b.attached:
		return fail(ErrBuffer, op, "there is a buffer already: detach it first")
	case bytes < 0 && bytes != BufferAutomatic:
		return fail(ErrArg, op, "%d bytes", bytes)
	}
	*b = sendBuffer{room: bytes, due: bufferDue, attached: true}
	return nil
}

func (b *sendBuffer) detach(ep *p2p.Endpoint, op string) (int, error) {
	err := b.flush(ep, op)
	ep.Enter()
	defer ep.Leave()
	if !b.attached {
		return 0, fail(ErrBuffer, op, "no buffer is attached")
	}
	size := b.room
	*b = sendBuffer{}
	return size, err
}

func (b *sendBuffer) flush(ep *p2p.Endpoint, op string) error {
	ep.Enter()
	sends := b.sends
	b.sends = nil
	b.flushes++
	ep.Leave()
	var errs []error
	for _, s := range sends { // others may send meanwhile
		if _, err := s.r.wait(op); err != nil {
			errs = append(errs, err)
		}
		ep.Enter()
		b.used -= s.size
		ep.Leave()
	}
	ep.Enter()
	for b.flushes--; b.flushes > 0; { // others have messages of before
		ep.Inside().Progress()
	}
	ep.Leave()
	return errors.Join(errs...)
}

// collect forgets the messages that are on their way.
func (b *sendBuffer) collect(in p2p.Inside) {
	in.Step()
	kept := b.sends[:0]
	for _, s := range b.sends {
		if s.r.done() {
			_, _ = in.Wait(s.r.r) // errors show in later calls to the same rank
			b.used -= s.size
			continue
		}
		kept = append(kept, s)
	}
	clear(b.sends[len(kept):])
	b.sends, b.due = kept, 2*len(kept)+bufferDue
}

// fits reports whether the buffer has room for so many bytes. If not, collect may make some.
func (b *sendBuffer) fits(size int) bool {
	if b.room == BufferAutomatic {
		return len(b.sends) < b.due
	}
	return b.used+size <= b.room
}

// reserve takes so many bytes of the buffer, or says that there is no room.
func (b *sendBuffer) reserve(in p2p.Inside, op string, size int) error {
	if !b.fits(size) {
		b.collect(in)
	}
	if b.fits(size) {
		b.used += size
		return nil
	}
	return fail(ErrBuffer, op, "a message of %d bytes does not fit the attached buffer, in which %d of %d are taken", size-BsendOverhead, b.used, b.room)
}

// flushing is a flush under way.
type flushing struct {
	b     *sendBuffer
	sends []buffered
}

func (t *flushing) begin(*call) {
	t.sends, t.b.sends = t.b.sends, nil
	t.b.flushes++
}

func (t *flushing) advance(k *call) (done bool) {
	for ; len(t.sends) > 0; t.sends = t.sends[1:] {
		s := &t.sends[0]
		if !s.r.r.Ready() {
			return false
		}
		_, err := k.c.ep.Inside().Wait(s.r.r)
		if k.err == nil {
			k.err = s.r.c.wrap(k.op, err)
		}
		t.b.used -= s.size
	}
	t.b.flushes--
	return true
}
