package mpi

import "github.com/xwarp/xwarp/mpi/internal/p2p"

// Sendrecv sends one buffer and receives another at once (MPI_Sendrecv), so
// that ranks that exchange messages cannot wait for one another. The buffers
// must not overlap.
func Sendrecv[S, R Scalar](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Status, error) {
	out, in := Slice(send), Slice(recv)
	return c.sendrecv("Sendrecv", &out, dest, sendTag, &in, source, recvTag)
}

// Isendrecv is Sendrecv that does not wait (MPI_Isendrecv). The status of the
// request is that of the message received. It cannot be cancelled.
func Isendrecv[S, R Scalar](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Request, error) {
	out, in := Slice(send), Slice(recv)
	return c.isendrecv("Isendrecv", &out, dest, sendTag, &in, source, recvTag)
}

// SendrecvReplace sends a buffer and receives another message into it
// (MPI_Sendrecv_replace).
func SendrecvReplace[T Scalar](c *Comm, buf []T, dest, sendTag, source, recvTag int) (Status, error) {
	return c.SendrecvReplace(Slice(buf), dest, sendTag, source, recvTag)
}

// IsendrecvReplace is SendrecvReplace that does not wait
// (MPI_Isendrecv_replace).
func IsendrecvReplace[T Scalar](c *Comm, buf []T, dest, sendTag, source, recvTag int) (Request, error) {
	return c.IsendrecvReplace(Slice(buf), dest, sendTag, source, recvTag)
}

// Sendrecv is [Sendrecv] of data (MPI_Sendrecv).
func (c *Comm) Sendrecv(send Data, dest, sendTag int, recv Data, source, recvTag int) (Status, error) {
	return c.sendrecv("Sendrecv", &send, dest, sendTag, &recv, source, recvTag)
}

// Isendrecv is [Isendrecv] of data (MPI_Isendrecv).
func (c *Comm) Isendrecv(send Data, dest, sendTag int, recv Data, source, recvTag int) (Request, error) {
	return c.isendrecv("Isendrecv", &send, dest, sendTag, &recv, source, recvTag)
}

// SendrecvReplace is [SendrecvReplace] of data (MPI_Sendrecv_replace).
func (c *Comm) SendrecvReplace(d Data, dest, sendTag, source, recvTag int) (Status, error) {
	const op = "SendrecvReplace"
	out, err := d.copied(op)
	if err != nil {
		return emptyStatus(), c.report(err)
	}
	return c.sendrecv(op, &out, dest, sendTag, &d, source, recvTag)
}

// IsendrecvReplace is [IsendrecvReplace] of data (MPI_Isendrecv_replace).
func (c *Comm) IsendrecvReplace(d Data, dest, sendTag, source, recvTag int) (Request, error) {
	const op = "IsendrecvReplace"
	out, err := d.copied(op)
	if err != nil {
		return Request{}, c.report(err)
	}
	return c.isendrecv(op, &out, dest, sendTag, &d, source, recvTag)
}

// copied is a copy of the bytes of d.
func (d *Data) copied(op string) (Data, error) {
	b, err := d.packed(op)
	return Bytes(b, 0, len(b), TypeByte), err
}

// checkExchange says what is wrong with arguments, before anything is posted.
func (c *Comm) checkExchange(op string, send *Data, dest, sendTag, source, recvTag int) error {
	if err := c.checkSend(op, dest, sendTag); err != nil {
		return err
	}
	if err := c.checkRecv(op, source, recvTag); err != nil {
		return err
	}
	if _, flat := send.flat(); !flat {
		_, err := send.cursor(op)
		return err
	}
	return nil
}

func (c *Comm) sendrecv(op string, send *Data, dest, sendTag int, recv *Data, source, recvTag int) (Status, error) {
	if err := c.checkExchange(op, send, dest, sendTag, source, recvTag); err != nil {
		return emptyStatus(), c.report(err)
	}
	t := c.p.watch.begin(op, c, dest, sendTag, send.size())
	st, err := c.exchange(op, send, dest, sendTag, recv, source, recvTag)
	t.end(err)
	return st, err
}

// exchange is sendrecv whose arguments are right.
func (c *Comm) exchange(op string, send *Data, dest, sendTag int, recv *Data, source, recvTag int) (Status, error) {
	in, err := c.irecvData(op, recv, source, recvTag)
	if err != nil {
		return emptyStatus(), err
	}
	out, err := c.isendData(op, send, dest, sendTag)
	if err == nil {
		_, err = out.wait(op)
	}
	st, recvErr := in.finish(op)
	if err == nil {
		err = recvErr
	}
	return st, err
}

// finish is wait for the receive of a blocking call, which the caller cannot wait for again:
// when a loss makes it doubtful it is given up.
func (r *Request) finish(op string) (Status, error) {
	st, err := r.r.Wait()
	if r.r = nil; err == nil {
		err = r.c.exactly(op, st, r.room())
	}
	if err != nil {
		err = r.c.report(r.c.wrap(op, err))
	}
	r.c.got(st)
	return r.c.status(st), err
}

func (c *Comm) isendrecv(op string, send *Data, dest, sendTag int, recv *Data, source, recvTag int) (Request, error) {
	if err := c.checkExchange(op, send, dest, sendTag, source, recvTag); err != nil {
		return Request{}, c.report(err)
	}
	t := c.p.watch.begin(op, c, dest, sendTag, send.size())
	in, err := c.irecvData(op, recv, source, recvTag)
	if err != nil {
		t.end(err)
		return Request{}, err
	}
	out, err := c.isendData(op, send, dest, sendTag)
	if err != nil { // checkExchange has found no error
		panic("mpi: " + err.Error())
	}
	r, err := c.begin(op, &pair{out.r, in.r, in.room()})
	t.end(err)
	return r, err
}

// pair is a send and a receive that are one operation.
type pair struct {
	out, in *p2p.Request
	room    uint32
}

func (p *pair) begin(*call) {}

func (p *pair) advance(k *call) (done bool) {
	if !p.out.Ready() || !p.in.Ready() {
		return false
	}
	c, ep := k.c, k.c.ep.Inside()
	_, err := ep.Wait(p.out)
	st, recvErr := ep.Wait(p.in)
	if err == nil {
		err = recvErr
	}
	c.got(st)
	k.st, k.err = c.status(st), c.wrap(k.op, err)
	if k.err == nil {
		k.err = c.exactly(k.op, st, p.room)
	}
	return true
}
