package mpi

import "fmt"

// Partitioned communication (MPI 4.1, chapter 4): a message whose parts become
// ready, and arrive, one by one.

// PsendInit makes a send to be started whose message consists of partitions, equal
// parts of buf (MPI_Psend_init). After [Persistent.Start] each of them is sent when
// [Persistent.Pready] says that the program has filled it. The receiver has called
// [PrecvInit]; the n-th of these with a tag meets the n-th PsendInit with it, and
// no other message. The receiver may cut its buffer, which has as many bytes, into
// another number of partitions.
//
// Each partition of the sender's is a message of its own: it is sent as soon as it
// is ready, and few large ones cost less than many small ones.
func PsendInit[T Scalar](c *Comm, buf []T, partitions, dest, tag int) (*Persistent, error) {
	return c.PsendInit(Slice(buf), partitions, dest, tag)
}

// PrecvInit makes a receive to be started of a message in partitions
// (MPI_Precv_init). [Persistent.Parrived] tells which of them are there. source and
// tag are not AnySource and AnyTag. See [PsendInit].
func PrecvInit[T Scalar](c *Comm, buf []T, partitions, source, tag int) (*Persistent, error) {
	return c.PrecvInit(Slice(buf), partitions, source, tag)
}

// PsendInit is [PsendInit] of data (MPI_Psend_init).
func (c *Comm) PsendInit(d Data, partitions, dest, tag int) (*Persistent, error) {
	const op = "PsendInit"
	err := c.checkSend(op, dest, tag)
	if err == nil {
		err = checkPartitions(op, &d, partitions)
	}
	if err != nil {
		return nil, c.report(err)
	}
	t := &partSend{c: c, d: d, n: partitions, dest: dest}
	if dest != ProcNull {
		t.first = c.announceParts(dest, tag, partitions, d.size())
	}
	return c.hold(Persistent{k: &call{c: c, op: op, kept: true, task: t}}), nil
}

// PrecvInit is [PrecvInit] of data (MPI_Precv_init).
func (c *Comm) PrecvInit(d Data, partitions, source, tag int) (*Persistent, error) {
	const op = "PrecvInit"
	err := c.checkRecv(op, source, tag)
	switch {
	case err != nil:
	case source == AnySource:
		err = fail(ErrRank, op, "partitions come from one rank: AnySource is not for them")
	case tag == AnyTag:
		err = fail(ErrTag, op, "partitions come with one tag: AnyTag is not for them")
	}
	if err == nil {
		err = checkPartitions(op, &d, partitions)
	}
	if err != nil {
		return nil, c.report(err)
	}
	t := &partRecv{c: c, d: d, n: partitions, source: source, tag: tag, inactive: true}
	if source != ProcNull {
		t.await()
	}
	return c.hold(Persistent{k: &call{c: c, op: op, kept: true, task: t}}), nil
}

func checkPartitions(op string, d *Data, n int) error {
	switch {
	case n < 1 || n > tagsOfParts:
		return fail(ErrArg, op, "%d partitions; there may be 1 to %d", n, tagsOfParts)
	case d.count%n != 0:
		return fail(ErrCount, op, "%d elements are not the same number for each of %d partitions", d.count, n)
	}
	_, err := d.cursor(op)
	return err
}

// Pready says that partitions of a send that was started may be sent (MPI_Pready,
// MPI_Pready_list). The program leaves them alone until the request of Start is
// complete. Several goroutines may call it under ThreadMultiple.
func (o *Persistent) Pready(partitions ...int) error {
	const op = "Pready"
	t, err := o.partitions(op, partitions...)
	for _, i := range partitions {
		if err == nil {
			err = t.c.report(t.ready(op, i))
		}
	}
	return err
}

// PreadyRange is Pready of the partitions from low to high, both included
// (MPI_Pready_range).
func (o *Persistent) PreadyRange(low, high int) error {
	const op = "PreadyRange"
	t, err := o.partitions(op, low, high)
	if err == nil && low > high {
		err = t.c.report(fail(ErrArg, op, "there are no partitions from %d to %d", low, high))
	}
	for i := low; err == nil && i <= high; i++ {
		err = t.c.report(t.ready(op, i))
	}
	return err
}

// partitions returns a send that has all of these partitions, so that none of them is sent when
// one is wrong.
func (o *Persistent) partitions(op string, list ...int) (*partSend, error) {
	var t *partSend
	if o != nil && o.k != nil {
		t, _ = o.k.task.(*partSend)
	}
	if t == nil {
		return nil, fail(ErrRequest, op, "it is for what PsendInit has made, and was not freed")
	}
	for _, i := range list {
		if i < 0 || i >= t.n {
			return nil, t.c.report(noPartition(op, i, t.n))
		}
	}
	return t, nil
}

// Parrived makes progress and reports whether a partition of a receive that was
// started has arrived (MPI_Parrived). When the receive is complete, or was not
// started, all have.
func (o *Persistent) Parrived(partition int) (bool, error) {
	const op = "Parrived"
	var t *partRecv
	if o != nil && o.k != nil {
		t, _ = o.k.task.(*partRecv)
	}
	switch {
	case t == nil:
		return false, fail(ErrRequest, op, "it is for what PrecvInit has made, and was not freed")
	case partition < 0 || partition >= t.n:
		return false, t.c.report(noPartition(op, partition, t.n))
	}
	ep := t.c.ep
	ep.Enter()
	defer ep.Leave()
	if there := t.arrived(partition); there || t.inactive {
		return true, nil
	}
	ep.Leave()
	ep.Ask()
	ep.Enter()
	return t.arrived(partition), nil
}

func noPartition(op string, i, n int) error {
	return fail(ErrArg, op, "there is no partition %d: there are %d, from 0 on", i, n)
}

// wrongLength is the error when both ends disagree about the message.
func wrongLength(op string, rank int, sent, room uint64) error {
	return &Error{Class: ErrTruncate, Op: op, Rank: rank, Detail: fmt.Sprintf(
		"the partitions that rank %d sends have %d bytes in all, those that are received %d: want the same", rank, sent, room)}
}
