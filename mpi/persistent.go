package mpi

// Persistent is an operation that was prepared once and can be started many
// times (MPI 4.1, sections 3.9, 4.2 and 6.13): what can be found out beforehand is not
// found out again. It uses the buffers that it was made with, which belong to it
// from Start until its request is complete.
//
// All ranks make the persistent collectives of a communicator in the same order,
// and may start them in any.
type Persistent struct {
	k *call // a collective, or a partitioned message; else a message:

	c    *Comm
	mode messageMode
	data Data
	peer int
	tag  int
	last Request
}

// messageMode is how a message is sent, or that it is received.
type messageMode uint8

const (
	startSend messageMode = iota
	startSsend
	startBsend
	startRecv
)

// beginPersistent begins a beginPersistent collective.
func (c *Comm) beginPersistent(op string) *call {
	k := &call{c: c, op: op, kept: true, sign: unsigned}
	k.err = c.live(op)
	return k
}

// keep makes what was planned the user's.
func (k *call) keep() (*Persistent, error) {
	if k.err != nil {
		return nil, k.c.report(k.err)
	}
	k.seal()
	k.s.Tag = k.c.coll.keep()
	return k.c.hold(Persistent{k: k}), nil
}

// hold makes o the user's, and a reason for the communicator to be there.
func (c *Comm) hold(o Persistent) *Persistent {
	c.ep.Enter()
	c.held++
	c.ep.Leave()
	return &o
}

// Start starts the operation (MPI_Start). The request that it returns is as that
// of a nonblocking one; the operation can be started again when it has ended.
func (o *Persistent) Start() (Request, error) {
	if o == nil || o.k == nil && o.c == nil {
		return Request{}, fail(ErrRequest, "Start", "the persistent operation was freed, or never made")
	}
	switch k := o.k; {
	case k == nil && o.underWay():
		return Request{}, fail(ErrRequest, "Start", "the operation is under way: wait for it first")
	case k == nil:
		r, err := o.startMessage()
		o.last = r
		return r, err
	case k.busy:
		return Request{}, k.c.reportf(ErrRequest, "Start", "the operation is under way: wait for it first")
	}
	return o.k.start()
}

// underWay reports whether a message was started and has not ended. The request may be
// another goroutine's by now, so it is looked at inside.
func (o *Persistent) underWay() bool {
	if o.last.IsNull() {
		return false
	}
	o.c.ep.Enter()
	defer o.c.ep.Leave()
	return o.last.live()
}

func (o *Persistent) startMessage() (Request, error) {
	if o.c.freed {
		return o.startFreed()
	}
	return o.c.start("Start", o.mode, &o.data, o.peer, o.tag)
}

// startFreed is startMessage on a communicator that takes no other operations. The
// arguments were checked when the operation was made.
func (o *Persistent) startFreed() (Request, error) {
	const op = "Start"
	c := o.c
	cur, err := o.data.cursor(op)
	if err != nil || o.peer == ProcNull {
		return c.startNothing(err)
	}
	if o.mode != startRecv {
		c.sent(o.peer, o.tag, cur.Rest())
	}
	switch o.mode {
	case startSsend:
		return c.request(c.ep.IssendTyped(c.out(o.tag), c.at(o.peer), cur)), nil
	case startBsend: // the buffer has gone with Free, so the copy has no owner
		b := make([]byte, cur.Len())
		cur.Pack(b)
		c.ep.Enter()
		c.ep.Inside().Detach(c.ep.Inside().Isend(c.out(o.tag), c.at(o.peer), b))
		c.ep.Leave()
		return c.startNothing()
	case startRecv:
		return c.receive(c.ep.IrecvTyped(c.in(o.peer, o.tag), cur), cur.Len()), nil
	}
	return c.request(c.ep.IsendTyped(c.out(o.tag), c.at(o.peer), cur)), nil
}

// Startall starts several operations (MPI_Startall). It appends their requests to
// requests, in their order, so that a program that gives it the same memory in each
// round, as requests[:0], allocates nothing. After an error those that were started are
// there.
func Startall(ops []*Persistent, requests []Request) ([]Request, error) {
	for _, o := range ops {
		r, err := o.Start()
		if err != nil {
			return requests, err
		}
		requests = append(requests, r)
	}
	return requests, nil
}

// Free ends the use of the operation (MPI_Request_free). A message that is under way
// comes to its end all the same: its request is waited for, or freed, as ever.
// Collectives and partitioned messages must not be under way (MPI 4.1, section 6.13).
func (o *Persistent) Free() error {
	if o == nil {
		return fail(ErrRequest, "Persistent.Free", "there is no operation")
	}
	if o.k != nil && o.k.busy {
		return o.k.c.reportf(ErrRequest, "Persistent.Free", "the operation is under way: wait for it first")
	}
	c := o.c
	if o.k != nil {
		c = o.k.c
	}
	if c != nil {
		c.ep.Enter()
		c.held--
		c.ep.Leave()
	}
	*o = Persistent{}
	return nil
}

// SendInit makes a Send to be started (MPI_Send_init).
func SendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	return c.sendInit("SendInit", startSend, Slice(buf), dest, tag)
}

// SsendInit makes an Ssend to be started (MPI_Ssend_init).
func SsendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	return c.sendInit("SsendInit", startSsend, Slice(buf), dest, tag)
}

// RsendInit makes an Rsend to be started (MPI_Rsend_init).
func RsendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	return c.sendInit("RsendInit", startSend, Slice(buf), dest, tag)
}

// BsendInit makes a Bsend to be started (MPI_Bsend_init).
func BsendInit[T Scalar](c *Comm, buf []T, dest, tag int) (*Persistent, error) {
	return c.sendInit("BsendInit", startBsend, Slice(buf), dest, tag)
}

func (c *Comm) sendInit(op string, mode messageMode, d Data, dest, tag int) (*Persistent, error) {
	err := c.checkSend(op, dest, tag)
	if err == nil {
		_, err = d.cursor(op)
	}
	if err != nil {
		return nil, c.report(err)
	}
	return c.hold(Persistent{c: c, mode: mode, data: d, peer: dest, tag: tag}), nil
}

// RecvInit makes a Recv to be started (MPI_Recv_init).
func RecvInit[T Scalar](c *Comm, buf []T, source, tag int) (*Persistent, error) {
	return c.recvInit(Slice(buf), source, tag)
}

func (c *Comm) recvInit(d Data, source, tag int) (*Persistent, error) {
	err := c.checkRecv("RecvInit", source, tag)
	if err == nil {
		_, err = d.cursor("RecvInit")
	}
	if err != nil {
		return nil, c.report(err)
	}
	return c.hold(Persistent{c: c, mode: startRecv, data: d, peer: source, tag: tag}), nil
}
