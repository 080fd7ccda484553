package capi

// NeighborAllgather is MPI_Neighbor_allgather.
func NeighborAllgather(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle) error {
	x, err := l.neighborAllgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.NeighborAllgather(x.send, x.recv)
}

// NeighborAllgatherv is MPI_Neighbor_allgatherv.
func NeighborAllgatherv(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, comm Handle) error {
	x, err := l.neighborAllgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.NeighborAllgatherv(x.send, x.recv, x.recvCounts, x.recvDispls)
}

// NeighborAlltoall is MPI_Neighbor_alltoall.
func NeighborAlltoall(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle) error {
	x, err := l.neighborAlltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.NeighborAlltoall(x.send, x.recv)
}

// NeighborAlltoallv is MPI_Neighbor_alltoallv.
func NeighborAlltoallv(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtype Handle, recvbuf Addr, recvcounts, rdispls Ints, recvtype Handle, comm Handle) error {
	x, err := l.neighborAlltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
	if err != nil {
		return err
	}
	return x.c.NeighborAlltoallv(x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
}

// NeighborAlltoallw is MPI_Neighbor_alltoallw.
func NeighborAlltoallw(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtypes Handles, recvbuf Addr, recvcounts, rdispls Ints, recvtypes Handles, comm Handle) error {
	x, err := l.neighborAlltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)
	if err != nil {
		return err
	}
	return x.c.NeighborAlltoallw(x.sends, x.recvs)
}

// IneighborAllgather is MPI_Ineighbor_allgather.
func IneighborAllgather(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.neighborAllgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IneighborAllgather(x.send, x.recv)
	return l.start(r, err, comm, request)
}

// IneighborAllgatherv is MPI_Ineighbor_allgatherv.
func IneighborAllgatherv(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.neighborAllgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IneighborAllgatherv(x.send, x.recv, x.recvCounts, x.recvDispls)
	return l.start(r, err, comm, request)
}

// IneighborAlltoall is MPI_Ineighbor_alltoall.
func IneighborAlltoall(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.neighborAlltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IneighborAlltoall(x.send, x.recv)
	return l.start(r, err, comm, request)
}

// IneighborAlltoallv is MPI_Ineighbor_alltoallv.
func IneighborAlltoallv(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtype Handle, recvbuf Addr, recvcounts, rdispls Ints, recvtype Handle, comm Handle, request Handles) error {
	x, err := l.neighborAlltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IneighborAlltoallv(x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
	return l.start(r, err, comm, request)
}

// IneighborAlltoallw is MPI_Ineighbor_alltoallw.
func IneighborAlltoallw(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtypes Handles, recvbuf Addr, recvcounts, rdispls Ints, recvtypes Handles, comm Handle, request Handles) error {
	x, err := l.neighborAlltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)
	if err != nil {
		return err
	}
	r, err := x.c.IneighborAlltoallw(x.sends, x.recvs)
	return l.start(r, err, comm, request)
}

// NeighborAllgatherInit is MPI_Neighbor_allgather_init.
func NeighborAllgatherInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.neighborAllgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.NeighborAllgatherInit(x.send, x.recv)
	return l.prepare(p, err, comm, request)
}

// NeighborAllgathervInit is MPI_Neighbor_allgatherv_init.
func NeighborAllgathervInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcounts, displs Ints, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.neighborAllgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.NeighborAllgathervInit(x.send, x.recv, x.recvCounts, x.recvDispls)
	return l.prepare(p, err, comm, request)
}

// NeighborAlltoallInit is MPI_Neighbor_alltoall_init.
func NeighborAlltoallInit(l *Lib, sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.neighborAlltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.NeighborAlltoallInit(x.send, x.recv)
	return l.prepare(p, err, comm, request)
}

// NeighborAlltoallvInit is MPI_Neighbor_alltoallv_init.
func NeighborAlltoallvInit(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtype Handle, recvbuf Addr, recvcounts, rdispls Ints, recvtype Handle, comm, _ Handle, request Handles) error {
	x, err := l.neighborAlltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm)
	if err != nil {
		return err
	}
	p, err := x.c.NeighborAlltoallvInit(x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
	return l.prepare(p, err, comm, request)
}

// NeighborAlltoallwInit is MPI_Neighbor_alltoallw_init.
func NeighborAlltoallwInit(l *Lib, sendbuf Addr, sendcounts, sdispls Ints, sendtypes Handles, recvbuf Addr, recvcounts, rdispls Ints, recvtypes Handles, comm, _ Handle, request Handles) error {
	x, err := l.neighborAlltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm)
	if err != nil {
		return err
	}
	p, err := x.c.NeighborAlltoallwInit(x.sends, x.recvs)
	return l.prepare(p, err, comm, request)
}
