package mpi

// Messages of [Data]: what has a datatype, and need not lie side by side. The
// methods do what the functions over slices of the same names do. Both ends must
// have the same elements in the same order (MPI 4.1, section 3.3), but these may lie
// differently in memory. Data that does not lie side by side is packed right into
// the buffers that messages leave from, and unpacked from where they arrive.

// Send is [Send] of data (MPI_Send).
func (c *Comm) Send(d Data, dest, tag int) error {
	if b, ok := d.flat(); ok {
		return c.send(b, dest, tag)
	}
	if c.sendOK(dest, tag) && c.at(dest) == c.p.rank { // no other rank is there to receive meanwhile
		b, err := d.packed("Send")
		if err != nil {
			return c.report(err)
		}
		return c.send(b, dest, tag)
	}
	_, err := c.blocking("Send", startSend, &d, dest, tag)
	return err
}

// Ssend is [Ssend] of data (MPI_Ssend).
func (c *Comm) Ssend(d Data, dest, tag int) error {
	_, err := c.blocking("Ssend", startSsend, &d, dest, tag)
	return err
}

// Bsend is [Bsend] of data (MPI_Bsend). What it takes in the attached buffer are
// packed bytes.
func (c *Comm) Bsend(d Data, dest, tag int) error {
	b, err := d.bytes("Bsend")
	if err != nil {
		return c.report(err)
	}
	t := c.watch().begin("Bsend", c, dest, tag, len(b))
	err = c.bsend("Bsend", b, dest, tag)
	t.end(err)
	return err
}

// Rsend is [Rsend] of data (MPI_Rsend).
func (c *Comm) Rsend(d Data, dest, tag int) error { return c.Send(d, dest, tag) }

// Recv is [Recv] of data (MPI_Recv).
func (c *Comm) Recv(d Data, source, tag int) (Status, error) {
	if b, ok := d.flat(); ok {
		return c.recv(b, source, tag)
	}
	return c.blocking("Recv", startRecv, &d, source, tag)
}

// Isend is [Isend] of data (MPI_Isend).
func (c *Comm) Isend(d Data, dest, tag int) (Request, error) {
	return c.nonblocking("Isend", startSend, &d, dest, tag)
}

// Issend is [Issend] of data (MPI_Issend).
func (c *Comm) Issend(d Data, dest, tag int) (Request, error) {
	return c.nonblocking("Issend", startSsend, &d, dest, tag)
}

// Ibsend is [Ibsend] of data (MPI_Ibsend).
func (c *Comm) Ibsend(d Data, dest, tag int) (Request, error) {
	return c.nonblocking("Ibsend", startBsend, &d, dest, tag)
}

// Irsend is [Irsend] of data (MPI_Irsend).
func (c *Comm) Irsend(d Data, dest, tag int) (Request, error) { return c.Isend(d, dest, tag) }

// Irecv is [Irecv] of data (MPI_Irecv).
func (c *Comm) Irecv(d Data, source, tag int) (Request, error) {
	return c.nonblocking("Irecv", startRecv, &d, source, tag)
}

// SendInit is [SendInit] of data (MPI_Send_init).
func (c *Comm) SendInit(d Data, dest, tag int) (*Persistent, error) {
	return c.sendInit("SendInit", startSend, d, dest, tag)
}

// SsendInit is [SsendInit] of data (MPI_Ssend_init).
func (c *Comm) SsendInit(d Data, dest, tag int) (*Persistent, error) {
	return c.sendInit("SsendInit", startSsend, d, dest, tag)
}

// RsendInit is [RsendInit] of data (MPI_Rsend_init).
func (c *Comm) RsendInit(d Data, dest, tag int) (*Persistent, error) {
	return c.sendInit("RsendInit", startSend, d, dest, tag)
}

// BsendInit is [BsendInit] of data (MPI_Bsend_init).
func (c *Comm) BsendInit(d Data, dest, tag int) (*Persistent, error) {
	return c.sendInit("BsendInit", startBsend, d, dest, tag)
}

// RecvInit is [RecvInit] of data (MPI_Recv_init).
func (c *Comm) RecvInit(d Data, source, tag int) (*Persistent, error) {
	return c.recvInit(d, source, tag)
}

// Recv receives the message (MPI_Mrecv). See [Mrecv].
func (m *Message) Recv(d Data) (Status, error) {
	t := m.watch().begin("Mrecv", m.comm(), Undefined, Undefined, d.size())
	st := emptyStatus()
	r, err := m.imrecvData("Mrecv", &d)
	if err == nil {
		st, err = r.wait("Mrecv")
	}
	t.end(err)
	return st, err
}

// Irecv starts to receive the message (MPI_Imrecv). See [Imrecv].
func (m *Message) Irecv(d Data) (Request, error) { return m.imrecvData("Imrecv", &d) }

// start begins a message of a mode.
func (c *Comm) start(op string, mode messageMode, d *Data, peer, tag int) (Request, error) {
	switch mode {
	case startSsend:
		return c.issendData(op, d, peer, tag)
	case startBsend:
		return c.ibsendData(op, d, peer, tag)
	case startRecv:
		return c.irecvData(op, d, peer, tag)
	}
	return c.isendData(op, d, peer, tag)
}

// nonblocking is such a call of the program.
func (c *Comm) nonblocking(op string, mode messageMode, d *Data, peer, tag int) (Request, error) {
	t := c.watch().begin(op, c, peer, tag, d.size())
	r, err := c.start(op, mode, d, peer, tag)
	t.end(err)
	return r, err
}

// blocking is a blocking call of the program.
func (c *Comm) blocking(op string, mode messageMode, d *Data, peer, tag int) (Status, error) {
	t := c.watch().begin(op, c, peer, tag, d.size())
	st := emptyStatus()
	r, err := c.start(op, mode, d, peer, tag)
	if err == nil {
		st, err = r.wait(op)
	}
	t.end(err)
	return st, err
}

// isendData starts to send data.
func (c *Comm) isendData(op string, d *Data, dest, tag int) (Request, error) {
	if b, ok := d.flat(); ok {
		return c.isend(b, dest, tag)
	}
	cur, err := d.cursor(op)
	if err != nil || !c.sendOK(dest, tag) {
		return c.startNothing(err, c.checkSend(op, dest, tag))
	}
	c.sent(dest, tag, cur.Rest())
	return c.request(c.ep.IsendTyped(c.out(tag), c.at(dest), cur)), nil
}

// startNothing is what becomes of an operation that has an error in its data or in
// its other arguments, or is one with ProcNull.
func (c *Comm) startNothing(errs ...error) (Request, error) {
	for _, err := range errs {
		if err != nil {
			return Request{}, c.report(err)
		}
	}
	return c.request(c.ep.Null(nullEnvelope())), nil
}

func (c *Comm) issendData(op string, d *Data, dest, tag int) (Request, error) {
	if b, ok := d.flat(); ok {
		return c.issend(op, b, dest, tag)
	}
	cur, err := d.cursor(op)
	if err != nil || !c.sendOK(dest, tag) {
		return c.startNothing(err, c.checkSend(op, dest, tag))
	}
	c.sent(dest, tag, cur.Rest())
	return c.request(c.ep.IssendTyped(c.out(tag), c.at(dest), cur)), nil
}

func (c *Comm) ibsendData(op string, d *Data, dest, tag int) (Request, error) {
	b, err := d.bytes(op)
	if err != nil {
		return Request{}, c.report(err)
	}
	return c.ibsend(op, b, dest, tag)
}

func (c *Comm) irecvData(op string, d *Data, source, tag int) (Request, error) {
	if b, ok := d.flat(); ok {
		return c.irecv(b, source, tag)
	}
	cur, err := d.cursor(op)
	if err != nil || !c.recvOK(source, tag) {
		return c.startNothing(err, c.checkRecv(op, source, tag))
	}
	return c.receive(c.ep.IrecvTyped(c.in(source, tag), cur), cur.Len()), nil
}

func (m *Message) imrecvData(op string, d *Data) (Request, error) {
	if b, ok := d.flat(); ok {
		return m.imrecv(op, b)
	}
	cur, err := d.cursor(op)
	if err != nil || m.comm() == nil || m.null {
		if m.comm() == nil || err == nil {
			return m.imrecv(op, nil)
		}
		return Request{}, m.c.report(err)
	}
	c := m.c
	m.c = nil
	return c.receive(c.ep.AcceptTyped(m.m, cur), cur.Len()), nil
}

// bytes returns the bytes of d: a copy where they do not lie side by side.
func (d *Data) bytes(op string) ([]byte, error) {
	if b, ok := d.flat(); ok {
		return b, nil
	}
	return d.packed(op)
}

// packed returns a copy of the bytes of d.
func (d *Data) packed(op string) ([]byte, error) {
	cur, err := d.cursor(op)
	if err != nil {
		return nil, err
	}
	b := make([]byte, cur.Len())
	cur.Pack(b)
	return b, nil
}
