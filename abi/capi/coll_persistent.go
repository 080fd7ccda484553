package capi

// BarrierInit is MPI_Barrier_init.
func BarrierInit(l *Lib, comm, _ Handle, request Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	p, err := c.BarrierInit()
	return l.prepare(p, err, comm, request)
}

// BcastInit is MPI_Bcast_init.
func BcastInit(l *Lib, buf Addr, count int, datatype Handle, root int, comm, _ Handle, request Handles) error {
	x, err := l.bcast(buf, count, datatype, root, comm)
	if err != nil {
		return err
	}
	p, err := x.c.BcastInit(x.recv, x.root)
	return l.prepare(p, err, comm, request)
}

// GatherInit is MPI_Gather_init.
func GatherInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm, _ Handle, request Handles) error {
	x, err := l.gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	p, err := x.c.GatherInit(x.send, x.recv, x.root)
	return l.prepare(p, err, comm, request)
}

// GathervInit is MPI_Gatherv_init.
func GathervInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, root int, comm, _ Handle, request Handles) error {
	x, err := l.gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm)
	if err != nil {
		return err
	}
	p, err := x.c.GathervInit(x.send, x.recv, x.recvCounts, x.recvDispls, x.root)
	return l.prepare(p, err, comm, request)
}

// ScatterInit is MPI_Scatter_init.
func ScatterInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm, _ Handle, request Handles) error {
	x, err := l.scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ScatterInit(x.send, x.recv, x.root)
	return l.prepare(p, err, comm, request)
}

// ScattervInit is MPI_Scatterv_init.
func ScattervInit(l *Lib, sendbuf Addr, sendcounts, displs Ints, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, comm, _ Handle, request Handles) error {
	x, err := l.scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ScattervInit(x.send, x.sendCounts, x.sendDispls, x.recv, x.root)
	return l.prepare(p, err, comm, request)
}

// AllgatherInit is MPI_Allgather_init.
func AllgatherInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.AllgatherInit(x.send, x.recv)
	return l.prepare(p, err, comm, request)
}

// AllgathervInit is MPI_Allgatherv_init.
func AllgathervInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.AllgathervInit(x.send, x.recv, x.recvCounts, x.recvDispls)
	return l.prepare(p, err, comm, request)
}

// AlltoallInit is MPI_Alltoall_init.
func AlltoallInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.AlltoallInit(x.send, x.recv)
	return l.prepare(p, err, comm, request)
}

// AlltoallvInit is MPI_Alltoallv_init.
func AlltoallvInit(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtype Handle, recvbuf Addr, recvcounts, rdispls Ints, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.AlltoallvInit(x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
	return l.prepare(p, err, comm, request)
}

// AlltoallwInit is MPI_Alltoallw_init.
func AlltoallwInit(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtypes Handles, recvbuf Addr, recvcounts, rdispls Ints, recvtypes Handles, comm, _ Handle, request Handles) error {
	x, err := l.alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)
	if err != nil {
		return err
	}
	p, err := x.c.AlltoallwInit(x.sends, x.recvs)
	return l.prepare(p, err, comm, request)
}

// ReduceInit is MPI_Reduce_init.
func ReduceInit(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, root int, comm, _ Handle, request Handles) error {
	x, err := l.rooted(sendbuf, recvbuf, count, datatype, op, root, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ReduceInit(x.send, x.recv, x.op, x.root)
	return l.prepare(p, err, comm, request)
}

// AllreduceInit is MPI_Allreduce_init.
func AllreduceInit(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm, _ Handle, request Handles) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	p, err := x.c.AllreduceInit(x.send, x.recv, x.op)
	return l.prepare(p, err, comm, request)
}

// ReduceScatterInit is MPI_Reduce_scatter_init.
func ReduceScatterInit(l *Lib, sendbuf, recvbuf Addr, recvcounts Ints, datatype, op Handle, comm, _ Handle, request Handles) error {
	x, err := l.reduceScatter(sendbuf, recvbuf, recvcounts, datatype, op, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ReduceScatterInit(x.send, x.recv, x.recvCounts, x.op)
	return l.prepare(p, err, comm, request)
}

// ReduceScatterBlockInit is MPI_Reduce_scatter_block_init.
func ReduceScatterBlockInit(l *Lib, sendbuf, recvbuf Addr, recvcount int, datatype, op Handle, comm, _ Handle, request Handles) error {
	x, err := l.reduceScatterBlock(sendbuf, recvbuf, recvcount, datatype, op, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ReduceScatterBlockInit(x.send, x.recv, x.op)
	return l.prepare(p, err, comm, request)
}

// ScanInit is MPI_Scan_init.
func ScanInit(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm, _ Handle, request Handles) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ScanInit(x.send, x.recv, x.op)
	return l.prepare(p, err, comm, request)
}

// ExscanInit is MPI_Exscan_init.
func ExscanInit(l *Lib, sendbuf, recvbuf Addr, count int, datatype, op Handle, comm, _ Handle, request Handles) error {
	x, err := l.reduction(sendbuf, recvbuf, count, datatype, op, comm)
	if err != nil {
		return err
	}
	p, err := x.c.ExscanInit(x.send, x.recv, x.op)
	return l.prepare(p, err, comm, request)
}
