package capi

import "github.com/xwarp/xwarp/mpi"

// message is a message that the program has taken and not received.
type message struct {
	*mpi.Message
	comm Handle
}

// Probe is MPI_Probe.
func Probe(l *Lib, source, tag int, comm Handle, status Statuses) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	st, err := c.Probe(rankFrom(source), tagFrom(tag))
	status.set(0, st)
	return err
}

// Iprobe is MPI_Iprobe.
func Iprobe(l *Lib, source, tag int, comm Handle, flag Ints, status Statuses) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	st, found, err := c.Iprobe(rankFrom(source), tagFrom(tag))
	if flag.setFlag(found); found {
		status.set(0, st)
	}
	return err
}

// Mprobe is MPI_Mprobe.
func Mprobe(l *Lib, source, tag int, comm Handle, taken Handles, status Statuses) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	m, st, err := c.Mprobe(rankFrom(source), tagFrom(tag))
	if err == nil {
		l.take(m, st, comm, taken, status)
	}
	return err
}

// Improbe is MPI_Improbe.
func Improbe(l *Lib, source, tag int, comm Handle, flag Ints, taken Handles, status Statuses) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	m, st, found, err := c.Improbe(rankFrom(source), tagFrom(tag))
	if flag.setFlag(found); found {
		l.take(m, st, comm, taken, status)
	}
	return err
}

// take gives the program a message.
func (l *Lib) take(m *mpi.Message, st mpi.Status, comm Handle, taken Handles, status Statuses) {
	status.set(0, st)
	if st.Source == mpi.ProcNull {
		taken.set(0, MPI_MESSAGE_NO_PROC)
		return
	}
	taken.set(0, l.messages.add(message{m, comm}))
}

// matched returns a message that was taken, and leaves none.
func (l *Lib) matched(taken Handles) (message, error) {
	h := taken.get(0)
	m := l.messages.get(h)
	switch {
	case h == MPI_MESSAGE_NO_PROC:
		m = &message{comm: MPI_COMM_SELF}
	case m == nil:
		return message{}, fail(mpi.ErrRequest, "%#x is no message, or was received before", uintptr(h))
	}
	found := *m
	l.messages.remove(h)
	taken.set(0, MPI_MESSAGE_NULL)
	return found, nil
}

// Mrecv is MPI_Mrecv.
func Mrecv(l *Lib, buf Addr, count int, datatype Handle, taken Handles, status Statuses) error {
	d, err := l.data(buf, count, datatype)
	if err != nil {
		return err
	}
	m, err := l.matched(taken)
	if err != nil {
		return err
	}
	st := mpi.StatusOf(mpi.ProcNull, mpi.AnyTag, 0, false)
	if m.Message != nil {
		st, err = m.Recv(d)
	}
	status.set(0, st)
	return on(m.comm, err)
}

// Imrecv is MPI_Imrecv.
func Imrecv(l *Lib, buf Addr, count int, datatype Handle, taken, request Handles) error {
	d, err := l.data(buf, count, datatype)
	if err != nil {
		return err
	}
	m, err := l.matched(taken)
	if err != nil {
		return err
	}
	var r mpi.Request
	if m.Message != nil {
		r, err = m.Irecv(d)
	} else {
		r, err = l.self.Irecv(d, mpi.ProcNull, mpi.AnyTag)
	}
	return on(m.comm, l.start(r, err, m.comm, request))
}
