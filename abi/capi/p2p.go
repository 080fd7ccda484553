package capi

// Send is MPI_Send.
func Send(l *Lib, buf Addr, count int, datatype Handle, dest, tag int, comm Handle) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	d, err := l.data(buf, count, datatype)
	if err != nil {
		return err
	}
	return c.Send(d, rankFrom(dest), tagFrom(tag))
}

// Recv is MPI_Recv.
func Recv(l *Lib, buf Addr, count int, datatype Handle, source, tag int, comm Handle, status Statuses) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	d, err := l.data(buf, count, datatype)
	if err != nil {
		return err
	}
	st, err := c.Recv(d, rankFrom(source), tagFrom(tag))
	status.set(0, st)
	return err
}
