package mpi

// The neighbourhood collectives over [Data]. See the functions over slices of the
// same names.

// NeighborAllgather is [NeighborAllgather] of data (MPI_Neighbor_allgather).
func (c *Comm) NeighborAllgather(send, recv Data) error {
	return planNeighborAllgather(c.beginBlocking("NeighborAllgather"), send, recv).run()
}

// IneighborAllgather is Comm.NeighborAllgather that does not wait.
func (c *Comm) IneighborAllgather(send, recv Data) (Request, error) {
	return planNeighborAllgather(c.beginNonblocking("IneighborAllgather"), send, recv).start()
}

// NeighborAllgatherInit prepares Comm.NeighborAllgather to be started many times.
func (c *Comm) NeighborAllgatherInit(send, recv Data) (*Persistent, error) {
	return planNeighborAllgather(c.beginPersistent("NeighborAllgatherInit"), send, recv).keep()
}

// NeighborAllgatherv is [NeighborAllgatherv] of data (MPI_Neighbor_allgatherv).
func (c *Comm) NeighborAllgatherv(send, recv Data, counts, displs []int) error {
	return planNeighborAllgatherv(c.beginBlocking("NeighborAllgatherv"), send, recv, counts, displs).run()
}

// IneighborAllgatherv is Comm.NeighborAllgatherv that does not wait.
func (c *Comm) IneighborAllgatherv(send, recv Data, counts, displs []int) (Request, error) {
	return planNeighborAllgatherv(c.beginNonblocking("IneighborAllgatherv"), send, recv, counts, displs).start()
}

// NeighborAllgathervInit prepares Comm.NeighborAllgatherv to be started many times.
func (c *Comm) NeighborAllgathervInit(send, recv Data, counts, displs []int) (*Persistent, error) {
	return planNeighborAllgatherv(c.beginPersistent("NeighborAllgathervInit"), send, recv, counts, displs).keep()
}

// NeighborAlltoall is [NeighborAlltoall] of data (MPI_Neighbor_alltoall).
func (c *Comm) NeighborAlltoall(send, recv Data) error {
	return planNeighborAlltoall(c.beginBlocking("NeighborAlltoall"), send, recv).run()
}

// IneighborAlltoall is Comm.NeighborAlltoall that does not wait.
func (c *Comm) IneighborAlltoall(send, recv Data) (Request, error) {
	return planNeighborAlltoall(c.beginNonblocking("IneighborAlltoall"), send, recv).start()
}

// NeighborAlltoallInit prepares Comm.NeighborAlltoall to be started many times.
func (c *Comm) NeighborAlltoallInit(send, recv Data) (*Persistent, error) {
	return planNeighborAlltoall(c.beginPersistent("NeighborAlltoallInit"), send, recv).keep()
}

// NeighborAlltoallv is [NeighborAlltoallv] of data (MPI_Neighbor_alltoallv).
func (c *Comm) NeighborAlltoallv(send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) error {
	return planNeighborAlltoallv(c.beginBlocking("NeighborAlltoallv"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).run()
}

// IneighborAlltoallv is Comm.NeighborAlltoallv that does not wait.
func (c *Comm) IneighborAlltoallv(send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) (Request, error) {
	return planNeighborAlltoallv(c.beginNonblocking("IneighborAlltoallv"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).start()
}

// NeighborAlltoallvInit prepares Comm.NeighborAlltoallv to be started many times.
func (c *Comm) NeighborAlltoallvInit(send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) (*Persistent, error) {
	return planNeighborAlltoallv(c.beginPersistent("NeighborAlltoallvInit"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).keep()
}

// NeighborAlltoallw is [NeighborAlltoall] with data of its own for each neighbour
// (MPI_Neighbor_alltoallw): a halo whose sides are rows and columns, say.
func (c *Comm) NeighborAlltoallw(send, recv []Data) error {
	return planNeighborAlltoallw(c.beginBlocking("NeighborAlltoallw"), send, recv).run()
}

// IneighborAlltoallw is Comm.NeighborAlltoallw that does not wait.
func (c *Comm) IneighborAlltoallw(send, recv []Data) (Request, error) {
	return planNeighborAlltoallw(c.beginNonblocking("IneighborAlltoallw"), send, recv).start()
}

// NeighborAlltoallwInit prepares Comm.NeighborAlltoallw to be started many times.
func (c *Comm) NeighborAlltoallwInit(send, recv []Data) (*Persistent, error) {
	return planNeighborAlltoallw(c.beginPersistent("NeighborAlltoallwInit"), send, recv).keep()
}
