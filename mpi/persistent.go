package mpi

// Persistent is a collective that was prepared once and can be started many
// times (MPI_Barrier_init and so on): what can be found out beforehand is not
// found out again. It uses the buffers that it was made with, which belong to it
// from Start until its request is complete.
//
// All ranks make the persistent collectives of a communicator in the same order,
// and may start them in any.
type Persistent struct{ k *call }

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
	return &Persistent{k}, nil
}

// Start starts the operation (MPI_Start). The request that it returns is as that
// of a nonblocking collective; the operation can be started again when it is
// complete.
func (o *Persistent) Start() (Request, error) {
	k := o.k
	if k == nil {
		return Request{}, fail(ErrRequest, "Start", "the persistent operation was freed")
	}
	switch err := k.c.live("Start"); {
	case err != nil:
		return Request{}, k.c.report(err)
	case k.busy:
		return Request{}, k.c.reportf(ErrRequest, "Start", "the operation is under way: wait for it first")
	}
	return k.start()
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
	if o.k == nil {
		return nil
	}
	if o.k.busy {
		return o.k.c.reportf(ErrRequest, "Persistent.Free", "the operation is under way: wait for it first")
	}
	o.k = nil
	return nil
}
