package capi

// Barrier is MPI_Barrier.
func Barrier(l *Lib, comm Handle) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	return c.Barrier()
}

// Bcast is MPI_Bcast.
func Bcast(l *Lib, buf Addr, count int, datatype Handle, root int, comm Handle) error {
	x, err := l.bcast(buf, count, datatype, root, comm)
	if err != nil {
		return err
	}
	return x.c.Bcast(x.recv, x.root)
}

// Gather is MPI_Gather.
func Gather(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm Handle) error {
	x, err := l.gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	return x.c.Gather(x.send, x.recv, x.root)
}

// Gatherv is MPI_Gatherv.
func Gatherv(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, root int, comm Handle) error {
	x, err := l.gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm)
	if err != nil {
		return err
	}
	return x.c.Gatherv(x.send, x.recv, x.recvCounts, x.recvDispls, x.root)
}

// Scatter is MPI_Scatter.
func Scatter(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm Handle) error {
	x, err := l.scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	return x.c.Scatter(x.send, x.recv, x.root)
}

// Scatterv is MPI_Scatterv.
func Scatterv(l *Lib, sendbuf Addr, sendcounts, displs Ints, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm Handle) error {
	x, err := l.scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	return x.c.Scatterv(x.send, x.sendCounts, x.sendDispls, x.recv, x.root)
}

// Allgather is MPI_Allgather.
func Allgather(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle) error {
	x, err := l.allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.Allgather(x.send, x.recv)
}

// Allgatherv is MPI_Allgatherv.
func Allgatherv(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, comm Handle) error {
	x, err := l.allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.Allgatherv(x.send, x.recv, x.recvCounts, x.recvDispls)
}

// Alltoall is MPI_Alltoall.
func Alltoall(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle) error {
	x, err := l.alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.Alltoall(x.send, x.recv)
}

// Alltoallv is MPI_Alltoallv.
func Alltoallv(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtype Handle, recvbuf Addr, recvcounts, rdispls Ints, recvtype Handle, comm Handle) error {
	x, err := l.alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.Alltoallv(x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
}

// Alltoallw is MPI_Alltoallw.
func Alltoallw(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtypes Handles, recvbuf Addr, recvcounts, rdispls Ints, recvtypes Handles, comm Handle) error {
	x, err := l.alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)
	if err != nil {
		return err
	}
	return x.c.Alltoallw(x.sends, x.recvs)
}

// Reduce is MPI_Reduce.
func Reduce(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, root int, comm Handle) error {
	x, err := l.rooted(sendbuf, recvbuf, count, datatype, op, root, comm)
	if err != nil {
		return err
	}
	return x.c.Reduce(x.send, x.recv, x.op, x.root)
}

// Allreduce is MPI_Allreduce.
func Allreduce(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm Handle) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	return x.c.Allreduce(x.send, x.recv, x.op)
}

// ReduceScatter is MPI_Reduce_scatter.
func ReduceScatter(l *Lib, sendbuf, recvbuf Addr, recvcounts Ints, datatype, op Handle, comm Handle) error {
	x, err := l.reduceScatter(sendbuf, recvbuf, recvcounts, datatype, op, comm)
	if err != nil {
		return err
	}
	return x.c.ReduceScatter(x.send, x.recv, x.recvCounts, x.op)
}

// ReduceScatterBlock is MPI_Reduce_scatter_block.
func ReduceScatterBlock(l *Lib, sendbuf, recvbuf Addr, recvcount int, datatype, op Handle, comm Handle) error {
	x, err := l.reduceScatterBlock(sendbuf, recvbuf, recvcount, datatype, op, comm)
	if err != nil {
		return err
	}
	return x.c.ReduceScatterBlock(x.send, x.recv, x.op)
}

// Scan is MPI_Scan.
func Scan(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm Handle) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	return x.c.Scan(x.send, x.recv, x.op)
}

// Exscan is MPI_Exscan.
func Exscan(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm Handle) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	return x.c.Exscan(x.send, x.recv, x.op)
}
