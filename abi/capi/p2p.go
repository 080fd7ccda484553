package capi

import "github.com/xwarp/xwarp/mpi"

// peer is a communicator and a buffer for a call with one other rank.
func (l *Lib) peer(buf Addr, count int, datatype Handle, rank int, comm Handle) (*comm, mpi.Data, error) {
	c, err := l.comm(comm)
	if err != nil {
		return nil, mpi.Data{}, err
	}
	d, err := l.dataOf(rank, buf, count, datatype)
	return c, d, err
}

// dataOf is data for one other rank. Nothing for ProcNull needs no datatype.
func (l *Lib) dataOf(rank int, buf Addr, count int, datatype Handle) (mpi.Data, error) {
	if rank == MPI_PROC_NULL && count == 0 && datatype == MPI_DATATYPE_NULL {
		datatype = MPI_BYTE
	}
	return l.data(buf, count, datatype)
}

// Send is MPI_Send.
func Send(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	return c.Send(d, rankFrom(dest), tag)
}

// Ssend is MPI_Ssend.
func Ssend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	return c.Ssend(d, rankFrom(dest), tag)
}

// Rsend is MPI_Rsend.
func Rsend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle) error {
	return Send(l, buf, count, datatype, dest, tag, comm)
}

// Bsend is MPI_Bsend.
func Bsend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	return c.Bsend(d, rankFrom(dest), tag)
}

// Recv is MPI_Recv.
func Recv(l *Lib, buf Addr, count int, datatype Handle, source, tag int, comm Handle, status Statuses) error {
	c, d, err := l.peer(buf, count, datatype, source, comm)
	if err != nil {
		return err
	}
	st, err := c.Recv(d, rankFrom(source), tagFrom(tag))
	status.set(0, st)
	return err
}

// starter is a method of a communicator that starts a message.
type starter func(*mpi.Comm, mpi.Data, int, int) (mpi.Request, error)

func (l *Lib) startSend(start starter, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	r, err := start(c.Comm, d, rankFrom(dest), tag)
	return l.start(r, err, comm, request)
}

// Isend is MPI_Isend.
func Isend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.startSend((*mpi.Comm).Isend, buf, count, datatype, dest, tag, comm, request)
}

// Issend is MPI_Issend.
func Issend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.startSend((*mpi.Comm).Issend, buf, count, datatype, dest, tag, comm, request)
}

// Ibsend is MPI_Ibsend.
func Ibsend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.startSend((*mpi.Comm).Ibsend, buf, count, datatype, dest, tag, comm, request)
}

// Irsend is MPI_Irsend.
func Irsend(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.startSend((*mpi.Comm).Irsend, buf, count, datatype, dest, tag, comm, request)
}

// Irecv is MPI_Irecv.
func Irecv(l *Lib, buf Addr, count int, datatype Handle, source, tag int, comm Handle, request Handles) error {
	c, d, err := l.peer(buf, count, datatype, source, comm)
	if err != nil {
		return err
	}
	r, err := c.Irecv(d, rankFrom(source), tagFrom(tag))
	return l.start(r, err, comm, request)
}

// preparer is a method of a communicator that prepares a message.
type preparer func(*mpi.Comm, mpi.Data, int, int) (*mpi.Persistent, error)

func (l *Lib) prepareSend(prepare preparer, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	p, err := prepare(c.Comm, d, rankFrom(dest), tag)
	return l.prepare(p, err, comm, request)
}

// SendInit is MPI_Send_init.
func SendInit(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.prepareSend((*mpi.Comm).SendInit, buf, count, datatype, dest, tag, comm, request)
}

// SsendInit is MPI_Ssend_init.
func SsendInit(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.prepareSend((*mpi.Comm).SsendInit, buf, count, datatype, dest, tag, comm, request)
}

// BsendInit is MPI_Bsend_init.
func BsendInit(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.prepareSend((*mpi.Comm).BsendInit, buf, count, datatype, dest, tag, comm, request)
}

// RsendInit is MPI_Rsend_init.
func RsendInit(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle, request Handles) error {
	return l.prepareSend((*mpi.Comm).RsendInit, buf, count, datatype, dest, tag, comm, request)
}

// RecvInit is MPI_Recv_init.
func RecvInit(l *Lib, buf Addr, count int, datatype Handle, source, tag int, comm Handle, request Handles) error {
	c, d, err := l.peer(buf, count, datatype, source, comm)
	if err != nil {
		return err
	}
	p, err := c.RecvInit(d, rankFrom(source), tagFrom(tag))
	return l.prepare(p, err, comm, request)
}

// both is the communicator and the buffers of a call that sends and receives.
func (l *Lib) both(send Addr, sendCount int, sendType Handle, dest int, recv Addr, recvCount int, recvType Handle, source int, comm Handle) (*comm, mpi.Data, mpi.Data, error) {
	c, s, err := l.peer(send, sendCount, sendType, dest, comm)
	if err != nil {
		return nil, s, s, err
	}
	r, err := l.dataOf(source, recv, recvCount, recvType)
	return c, s, r, err
}

// Sendrecv is MPI_Sendrecv.
func Sendrecv(l *Lib, send Addr, sendCount int, sendType Handle, dest, sendTag int, recv Addr, recvCount int, recvType Handle, source, recvTag int, comm Handle, status Statuses) error {
	c, s, r, err := l.both(send, sendCount, sendType, dest, recv, recvCount, recvType, source, comm)
	if err != nil {
		return err
	}
	st, err := c.Sendrecv(s, rankFrom(dest), sendTag, r, rankFrom(source), tagFrom(recvTag))
	status.set(0, st)
	return err
}

// Isendrecv is MPI_Isendrecv.
func Isendrecv(l *Lib, send Addr, sendCount int, sendType Handle, dest, sendTag int, recv Addr, recvCount int, recvType Handle, source, recvTag int, comm Handle, request Handles) error {
	c, s, r, err := l.both(send, sendCount, sendType, dest, recv, recvCount, recvType, source, comm)
	if err != nil {
		return err
	}
	req, err := c.Isendrecv(s, rankFrom(dest), sendTag, r, rankFrom(source), tagFrom(recvTag))
	return l.start(req, err, comm, request)
}

// SendrecvReplace is MPI_Sendrecv_replace.
func SendrecvReplace(l *Lib, buf Addr, count int, datatype Handle, dest, sendTag, source, recvTag int, comm Handle, status Statuses) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	st, err := c.SendrecvReplace(d, rankFrom(dest), sendTag, rankFrom(source), tagFrom(recvTag))
	status.set(0, st)
	return err
}

// IsendrecvReplace is MPI_Isendrecv_replace.
func IsendrecvReplace(l *Lib, buf Addr, count int, datatype Handle, dest, sendTag, source, recvTag int, comm Handle, request Handles) error {
	c, d, err := l.peer(buf, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	r, err := c.IsendrecvReplace(d, rankFrom(dest), sendTag, rankFrom(source), tagFrom(recvTag))
	return l.start(r, err, comm, request)
}
