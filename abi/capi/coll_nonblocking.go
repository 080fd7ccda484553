package capi

// Ibarrier is MPI_Ibarrier.
func Ibarrier(l *Lib, comm Handle, request Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	r, err := c.Ibarrier()
	return l.start(r, err, comm, request)
}

// Ibcast is MPI_Ibcast.
func Ibcast(l *Lib, buf Addr, count int, datatype Handle, root int, comm Handle, request Handles) error {
	x, err := l.bcast(buf, count, datatype, root, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Ibcast(x.recv, x.root)
	return l.start(r, err, comm, request)
}

// Igather is MPI_Igather.
func Igather(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm Handle, request Handles) error {
	x, err := l.gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Igather(x.send, x.recv, x.root)
	return l.start(r, err, comm, request)
}

// Igatherv is MPI_Igatherv.
func Igatherv(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, root int, comm Handle, request Handles) error {
	x, err := l.gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Igatherv(x.send, x.recv, x.recvCounts, x.recvDispls, x.root)
	return l.start(r, err, comm, request)
}

// Iscatter is MPI_Iscatter.
func Iscatter(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm Handle, request Handles) error {
	x, err := l.scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iscatter(x.send, x.recv, x.root)
	return l.start(r, err, comm, request)
}

// Iscatterv is MPI_Iscatterv.
func Iscatterv(l *Lib, sendbuf Addr, sendcounts, displs Ints, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm Handle, request Handles) error {
	x, err := l.scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iscatterv(x.send, x.sendCounts, x.sendDispls, x.recv, x.root)
	return l.start(r, err, comm, request)
}

// Iallgather is MPI_Iallgather.
func Iallgather(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iallgather(x.send, x.recv)
	return l.start(r, err, comm, request)
}

// Iallgatherv is MPI_Iallgatherv.
func Iallgatherv(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iallgatherv(x.send, x.recv, x.recvCounts, x.recvDispls)
	return l.start(r, err, comm, request)
}

// Ialltoall is MPI_Ialltoall.
func Ialltoall(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Ialltoall(x.send, x.recv)
	return l.start(r, err, comm, request)
}

// Ialltoallv is MPI_Ialltoallv.
func Ialltoallv(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtype Handle, recvbuf Addr, recvcounts, rdispls Ints, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Ialltoallv(x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
	return l.start(r, err, comm, request)
}

// Ialltoallw is MPI_Ialltoallw.
func Ialltoallw(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtypes Handles, recvbuf Addr, recvcounts, rdispls Ints, recvtypes Handles, comm Handle, request Handles) error {
	x, err := l.alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Ialltoallw(x.sends, x.recvs)
	return l.start(r, err, comm, request)
}

// Ireduce is MPI_Ireduce.
func Ireduce(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, root int, comm Handle, request Handles) error {
	x, err := l.rooted(sendbuf, recvbuf, count, datatype, op, root, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Ireduce(x.send, x.recv, x.op, x.root)
	return l.start(r, err, comm, request)
}

// Iallreduce is MPI_Iallreduce.
func Iallreduce(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm Handle, request Handles) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iallreduce(x.send, x.recv, x.op)
	return l.start(r, err, comm, request)
}

// IreduceScatter is MPI_Ireduce_scatter.
func IreduceScatter(l *Lib, sendbuf, recvbuf Addr, recvcounts Ints, datatype, op Handle, comm Handle, request Handles) error {
	x, err := l.reduceScatter(sendbuf, recvbuf, recvcounts, datatype, op, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IreduceScatter(x.send, x.recv, x.recvCounts, x.op)
	return l.start(r, err, comm, request)
}

// IreduceScatterBlock is MPI_Ireduce_scatter_block.
func IreduceScatterBlock(l *Lib, sendbuf, recvbuf Addr, recvcount int, datatype, op Handle, comm Handle, request Handles) error {
	x, err := l.reduceScatterBlock(sendbuf, recvbuf, recvcount, datatype, op, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IreduceScatterBlock(x.send, x.recv, x.op)
	return l.start(r, err, comm, request)
}

// Iscan is MPI_Iscan.
func Iscan(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm Handle, request Handles) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iscan(x.send, x.recv, x.op)
	return l.start(r, err, comm, request)
}

// Iexscan is MPI_Iexscan.
func Iexscan(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm Handle, request Handles) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	r, err := x.c.Iexscan(x.send, x.recv, x.op)
	return l.start(r, err, comm, request)
}
