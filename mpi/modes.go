package mpi

// Ssend is Send that returns only when the receive has been found (MPI_Ssend).
func Ssend[T Scalar](c *Comm, buf []T, dest, tag int) error { return c.Ssend(Slice(buf), dest, tag) }

// Issend is Isend whose request completes only when the receive has been found
// (MPI_Issend).
func Issend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Issend(Slice(buf), dest, tag)
}

func (c *Comm) issend(op string, buf []byte, dest, tag int) (Request, error) {
	if !c.sendOK(dest, tag) {
		if err := c.checkSend(op, dest, tag); err != nil {
			return Request{}, c.report(err)
		}
		return c.request(c.ep.Null(nullEnvelope())), nil
	}
	c.sent(dest, tag, len(buf))
	return c.request(c.ep.Issend(c.out(tag), c.at(dest), buf)), nil
}

// Rsend is Send for when the receive is posted already (MPI_Rsend). Nothing is
// gained by that here, and nothing is lost when it is not so.
func Rsend[T Scalar](c *Comm, buf []T, dest, tag int) error { return Send(c, buf, dest, tag) }

// Irsend is Isend for when the receive is posted already (MPI_Irsend).
func Irsend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	return Isend(c, buf, dest, tag)
}

// Bsend is Send that never waits for the receiver: it copies buf into the buffer
// that is attached to the communicator, or else to the process (MPI_Bsend). When
// that has no room the error's class is ErrBuffer.
func Bsend[T Scalar](c *Comm, buf []T, dest, tag int) error { return c.Bsend(Slice(buf), dest, tag) }

// Ibsend is Bsend with a request, which is complete (MPI_Ibsend).
func Ibsend[T Scalar](c *Comm, buf []T, dest, tag int) (Request, error) {
	return c.Ibsend(Slice(buf), dest, tag)
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
	c.ep.Enter()
	b, size := c.bsendBuffer(), len(buf)+BsendOverhead
	err := b.reserve(c.ep.Inside(), op, size)
	c.ep.Leave()
	if err != nil {
		return c.report(err)
	}
	c.sent(dest, tag, len(buf))
	r := c.ep.Bsend(c.out(tag), c.at(dest), buf)
	c.ep.Enter()
	if r == nil {
		b.used -= size
	} else {
		b.sends = append(b.sends, buffered{c.request(r), size})
	}
	c.ep.Leave()
	return nil
}
