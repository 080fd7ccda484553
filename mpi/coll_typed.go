package mpi

// The collectives over [Data]: what has a datatype, and need not lie side by side.
// They do what the functions over slices of the same names do. Where these give nil
// as the send buffer to work in place, methods give the zero Data. Reductions take
// an [Operation].

// Bcast is [Bcast] of data: the ranks may have different datatypes for the same elements
// (MPI_Bcast).
func (c *Comm) Bcast(buf Data, root int) error {
	return planBcast(c.beginCached("Bcast", planOfBcast), buf, root).run()
}

// Ibcast is Comm.Bcast that does not wait.
func (c *Comm) Ibcast(buf Data, root int) (Request, error) {
	return planBcast(c.beginNonblocking("Ibcast"), buf, root).start()
}

// BcastInit prepares Comm.Bcast to be started many times.
func (c *Comm) BcastInit(buf Data, root int) (*Persistent, error) {
	return planBcast(c.beginPersistent("BcastInit"), buf, root).keep()
}

// Gather is [Gather] of data (MPI_Gather): recv has the elements of all ranks.
func (c *Comm) Gather(send, recv Data, root int) error {
	return planGather(c.beginCached("Gather", planOfGather), send, recv, root).run()
}

// Igather is Comm.Gather that does not wait.
func (c *Comm) Igather(send, recv Data, root int) (Request, error) {
	return planGather(c.beginNonblocking("Igather"), send, recv, root).start()
}

// GatherInit prepares Comm.Gather to be started many times.
func (c *Comm) GatherInit(send, recv Data, root int) (*Persistent, error) {
	return planGather(c.beginPersistent("GatherInit"), send, recv, root).keep()
}

// Gatherv is [Gatherv] of data (MPI_Gatherv): counts and displs are of elements of recv.
func (c *Comm) Gatherv(send, recv Data, counts, displs []int, root int) error {
	return planGatherv(c.beginCached("Gatherv", planOfGatherv), send, recv, counts, displs, root).run()
}

// Igatherv is Comm.Gatherv that does not wait.
func (c *Comm) Igatherv(send, recv Data, counts, displs []int, root int) (Request, error) {
	return planGatherv(c.beginNonblocking("Igatherv"), send, recv, counts, displs, root).start()
}

// GathervInit prepares Comm.Gatherv to be started many times.
func (c *Comm) GathervInit(send, recv Data, counts, displs []int, root int) (*Persistent, error) {
	return planGatherv(c.beginPersistent("GathervInit"), send, recv, counts, displs, root).keep()
}

// Scatter is [Scatter] of data (MPI_Scatter): send has the elements of all ranks.
func (c *Comm) Scatter(send, recv Data, root int) error {
	return planScatter(c.beginCached("Scatter", planOfScatter), send, recv, root).run()
}

// Iscatter is Comm.Scatter that does not wait.
func (c *Comm) Iscatter(send, recv Data, root int) (Request, error) {
	return planScatter(c.beginNonblocking("Iscatter"), send, recv, root).start()
}

// ScatterInit prepares Comm.Scatter to be started many times.
func (c *Comm) ScatterInit(send, recv Data, root int) (*Persistent, error) {
	return planScatter(c.beginPersistent("ScatterInit"), send, recv, root).keep()
}

// Scatterv is [Scatterv] of data (MPI_Scatterv): counts and displs are of elements of
// send.
func (c *Comm) Scatterv(send Data, counts, displs []int, recv Data, root int) error {
	return planScatterv(c.beginCached("Scatterv", planOfScatterv), send, counts, displs, recv, root).run()
}

// Iscatterv is Comm.Scatterv that does not wait.
func (c *Comm) Iscatterv(send Data, counts, displs []int, recv Data, root int) (Request, error) {
	return planScatterv(c.beginNonblocking("Iscatterv"), send, counts, displs, recv, root).start()
}

// ScattervInit prepares Comm.Scatterv to be started many times.
func (c *Comm) ScattervInit(send Data, counts, displs []int, recv Data, root int) (*Persistent, error) {
	return planScatterv(c.beginPersistent("ScattervInit"), send, counts, displs, recv, root).keep()
}

// Allgather is [Allgather] of data (MPI_Allgather): recv has the elements of all ranks.
func (c *Comm) Allgather(send, recv Data) error {
	return planAllgather(c.beginCached("Allgather", planOfAllgather), send, recv).run()
}

// Iallgather is Comm.Allgather that does not wait.
func (c *Comm) Iallgather(send, recv Data) (Request, error) {
	return planAllgather(c.beginNonblocking("Iallgather"), send, recv).start()
}

// AllgatherInit prepares Comm.Allgather to be started many times.
func (c *Comm) AllgatherInit(send, recv Data) (*Persistent, error) {
	return planAllgather(c.beginPersistent("AllgatherInit"), send, recv).keep()
}

// Allgatherv is [Allgatherv] of data (MPI_Allgatherv): counts and displs are of elements of
// recv.
func (c *Comm) Allgatherv(send, recv Data, counts, displs []int) error {
	return planAllgatherv(c.beginCached("Allgatherv", planOfAllgatherv), send, recv, counts, displs).run()
}

// Iallgatherv is Comm.Allgatherv that does not wait.
func (c *Comm) Iallgatherv(send, recv Data, counts, displs []int) (Request, error) {
	return planAllgatherv(c.beginNonblocking("Iallgatherv"), send, recv, counts, displs).start()
}

// AllgathervInit prepares Comm.Allgatherv to be started many times.
func (c *Comm) AllgathervInit(send, recv Data, counts, displs []int) (*Persistent, error) {
	return planAllgatherv(c.beginPersistent("AllgathervInit"), send, recv, counts, displs).keep()
}

// Alltoall is [Alltoall] of data (MPI_Alltoall): send and recv have the elements for and
// from all ranks.
func (c *Comm) Alltoall(send, recv Data) error {
	return planAlltoall(c.beginCached("Alltoall", planOfAlltoall), send, recv).run()
}

// Ialltoall is Comm.Alltoall that does not wait.
func (c *Comm) Ialltoall(send, recv Data) (Request, error) {
	return planAlltoall(c.beginNonblocking("Ialltoall"), send, recv).start()
}

// AlltoallInit prepares Comm.Alltoall to be started many times.
func (c *Comm) AlltoallInit(send, recv Data) (*Persistent, error) {
	return planAlltoall(c.beginPersistent("AlltoallInit"), send, recv).keep()
}

// Alltoallv is [Alltoallv] of data (MPI_Alltoallv): counts and displacements are of elements.
func (c *Comm) Alltoallv(send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) error {
	return planAlltoallv(c.beginCached("Alltoallv", planOfAlltoallv), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).run()
}

// Ialltoallv is Comm.Alltoallv that does not wait.
func (c *Comm) Ialltoallv(send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) (Request, error) {
	return planAlltoallv(c.beginNonblocking("Ialltoallv"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).start()
}

// AlltoallvInit prepares Comm.Alltoallv to be started many times.
func (c *Comm) AlltoallvInit(send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) (*Persistent, error) {
	return planAlltoallv(c.beginPersistent("AlltoallvInit"), send, sendCounts, sendDispls, recv, recvCounts, recvDispls).keep()
}

// Alltoallw is [Alltoall] with data of its own for each rank (MPI_Alltoallw): rank j gets
// send[j], and what rank i gives goes to recv[i]. In place, which is nil as send, what
// recv names is exchanged.
func (c *Comm) Alltoallw(send, recv []Data) error {
	return planAlltoallw(c.beginBlocking("Alltoallw"), send, recv).run()
}

// Ialltoallw is Comm.Alltoallw that does not wait.
func (c *Comm) Ialltoallw(send, recv []Data) (Request, error) {
	return planAlltoallw(c.beginNonblocking("Ialltoallw"), send, recv).start()
}

// AlltoallwInit prepares Comm.Alltoallw to be started many times.
func (c *Comm) AlltoallwInit(send, recv []Data) (*Persistent, error) {
	return planAlltoallw(c.beginPersistent("AlltoallwInit"), send, recv).keep()
}

// Reduce is [Reduce] of data (MPI_Reduce).
func (c *Comm) Reduce(send, recv Data, op Operation, root int) error {
	return planReduce(c.beginCached("Reduce", planOfReduce), send, recv, root, with(op)).run()
}

// Ireduce is Comm.Reduce that does not wait.
func (c *Comm) Ireduce(send, recv Data, op Operation, root int) (Request, error) {
	return planReduce(c.beginNonblocking("Ireduce"), send, recv, root, with(op)).start()
}

// ReduceInit prepares Comm.Reduce to be started many times.
func (c *Comm) ReduceInit(send, recv Data, op Operation, root int) (*Persistent, error) {
	return planReduce(c.beginPersistent("ReduceInit"), send, recv, root, with(op)).keep()
}

// Allreduce is [Allreduce] of data (MPI_Allreduce).
func (c *Comm) Allreduce(send, recv Data, op Operation) error {
	return planAllreduce(c.beginCached("Allreduce", planOfAllreduce), send, recv, with(op)).run()
}

// Iallreduce is Comm.Allreduce that does not wait.
func (c *Comm) Iallreduce(send, recv Data, op Operation) (Request, error) {
	return planAllreduce(c.beginNonblocking("Iallreduce"), send, recv, with(op)).start()
}

// AllreduceInit prepares Comm.Allreduce to be started many times.
func (c *Comm) AllreduceInit(send, recv Data, op Operation) (*Persistent, error) {
	return planAllreduce(c.beginPersistent("AllreduceInit"), send, recv, with(op)).keep()
}

// ReduceScatter is [ReduceScatter] of data (MPI_Reduce_scatter): counts are of elements of
// send.
func (c *Comm) ReduceScatter(send, recv Data, counts []int, op Operation) error {
	return planReduceScatter(c.beginCached("ReduceScatter", planOfReduceScatter), send, recv, counts, with(op)).run()
}

// IreduceScatter is Comm.ReduceScatter that does not wait.
func (c *Comm) IreduceScatter(send, recv Data, counts []int, op Operation) (Request, error) {
	return planReduceScatter(c.beginNonblocking("IreduceScatter"), send, recv, counts, with(op)).start()
}

// ReduceScatterInit prepares Comm.ReduceScatter to be started many times.
func (c *Comm) ReduceScatterInit(send, recv Data, counts []int, op Operation) (*Persistent, error) {
	return planReduceScatter(c.beginPersistent("ReduceScatterInit"), send, recv, counts, with(op)).keep()
}

// ReduceScatterBlock is [ReduceScatterBlock] of data
// (MPI_Reduce_scatter_block).
func (c *Comm) ReduceScatterBlock(send, recv Data, op Operation) error {
	return planReduceScatterBlock(c.beginCached("ReduceScatterBlock", planOfReduceScatterBlock), send, recv, with(op)).run()
}

// IreduceScatterBlock is Comm.ReduceScatterBlock that does not wait.
func (c *Comm) IreduceScatterBlock(send, recv Data, op Operation) (Request, error) {
	return planReduceScatterBlock(c.beginNonblocking("IreduceScatterBlock"), send, recv, with(op)).start()
}

// ReduceScatterBlockInit prepares Comm.ReduceScatterBlock to be started many times.
func (c *Comm) ReduceScatterBlockInit(send, recv Data, op Operation) (*Persistent, error) {
	return planReduceScatterBlock(c.beginPersistent("ReduceScatterBlockInit"), send, recv, with(op)).keep()
}

// Scan is [Scan] of data (MPI_Scan).
func (c *Comm) Scan(send, recv Data, op Operation) error {
	return planScan(c.beginCached("Scan", planOfScan), send, recv, with(op)).run()
}

// Iscan is Comm.Scan that does not wait.
func (c *Comm) Iscan(send, recv Data, op Operation) (Request, error) {
	return planScan(c.beginNonblocking("Iscan"), send, recv, with(op)).start()
}

// ScanInit prepares Comm.Scan to be started many times.
func (c *Comm) ScanInit(send, recv Data, op Operation) (*Persistent, error) {
	return planScan(c.beginPersistent("ScanInit"), send, recv, with(op)).keep()
}

// Exscan is [Exscan] of data (MPI_Exscan).
func (c *Comm) Exscan(send, recv Data, op Operation) error {
	return planExscan(c.beginCached("Exscan", planOfExscan), send, recv, with(op)).run()
}

// Iexscan is Comm.Exscan that does not wait.
func (c *Comm) Iexscan(send, recv Data, op Operation) (Request, error) {
	return planExscan(c.beginNonblocking("Iexscan"), send, recv, with(op)).start()
}

// ExscanInit prepares Comm.Exscan to be started many times.
func (c *Comm) ExscanInit(send, recv Data, op Operation) (*Persistent, error) {
	return planExscan(c.beginPersistent("ExscanInit"), send, recv, with(op)).keep()
}
