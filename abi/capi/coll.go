package capi

import (
	"github.com/xwarp/xwarp/mpi"
)

// operands are the arguments of a collective, as package mpi has them. What does not count on
// this rank is the zero value.
type operands struct {
	c                      *comm
	send, recv             mpi.Data
	sendCounts, sendDispls []int
	recvCounts, recvDispls []int
	sends, recvs           []mpi.Data
	op                     mpi.Operation
	root                   int
}

// collective are the operands of a collective without any yet.
func (l *Lib) collective(h Handle, root int) (x operands, err error) {
	x.c, err = l.comm(h)
	x.root = rankFrom(root)
	return x, err
}

// peers is how many ranks each rank has to do with: those of the remote group of an
// intercommunicator.
func (x *operands) peers() int {
	if x.c.Inter() {
		return x.c.RemoteSize()
	}
	return x.c.Size()
}

// isRoot reports whether this rank is the root, or stands for it.
func (x *operands) isRoot() bool {
	if x.c.Inter() {
		return x.root == mpi.Root
	}
	return x.root == x.c.Rank()
}

// isOther reports whether this rank does what the ranks do that are not the root: in an
// intracommunicator the root does too.
func (x *operands) isOther() bool { return !x.c.Inter() || x.root >= 0 }

// unless is data of a buffer that may be in place.
func (l *Lib) unless(inPlace bool, buf Addr, count int, datatype Handle) (mpi.Data, error) {
	if inPlace && buf == MPI_IN_PLACE {
		return mpi.Data{}, nil
	}
	return l.data(buf, count, datatype)
}

// each is data of so many elements for each of n ranks.
func (l *Lib) each(n int, buf Addr, count int, datatype Handle) (mpi.Data, error) {
	if count > 0 && n > maxCount/count {
		return mpi.Data{}, fail(mpi.ErrCount, "%d elements for each of %d ranks", count, n)
	}
	return l.data(buf, count*n, datatype)
}

const maxCount = 1<<63 - 1

// vector is data of elements for each of n ranks: so many, from there on.
func (l *Lib) vector(n int, buf Addr, counts, displs Ints, datatype Handle) (d mpi.Data, number, from []int, err error) {
	if n == 0 {
		d, err = l.data(buf, 0, datatype)
		return d, []int{}, []int{}, err
	}
	if counts.null() || displs.null() {
		return d, nil, nil, fail(mpi.ErrArg, "there are no counts or no displacements")
	}
	number, from = counts.slice(n), displs.slice(n)
	low, high := 0, 0
	for i, k := range number {
		switch {
		case k < 0:
			return d, nil, nil, fail(mpi.ErrCount, "%d elements of rank %d", k, i)
		case k > 0 && low == high:
			low, high = from[i], from[i]+k
		case k > 0:
			low, high = min(low, from[i]), max(high, from[i]+k)
		}
	}
	t, err := l.datatype(datatype)
	if err != nil {
		return d, nil, nil, err
	}
	for i := range from {
		from[i] -= low // which may be below 0
	}
	_, extent := t.Extent()
	d, err = l.data(buf+Addr(low*extent), high-low, datatype)
	return d, number, from, err
}

// scattered is data of its own for each of n ranks, with displacements in bytes.
func (l *Lib) scattered(n int, buf Addr, counts, displs Ints, types Handles) ([]mpi.Data, error) {
	all := make([]mpi.Data, n)
	if n > 0 && (counts.null() || displs.null() || types.null()) {
		return nil, fail(mpi.ErrArg, "there are no counts, no displacements or no datatypes")
	}
	for i := range all {
		if counts.get(i) == 0 { // neither displacement nor datatype counts, which may be none
			all[i] = mpi.Bytes(nil, 0, 0, mpi.TypeByte)
			continue
		}
		var err error
		if all[i], err = l.data(buf+Addr(displs.get(i)), counts.get(i), types.get(i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (l *Lib) bcast(buf Addr, count int, datatype Handle, root int, h Handle) (operands, error) {
	x, err := l.collective(h, root)
	if err == nil && (x.isRoot() || x.isOther()) {
		x.recv, err = l.data(buf, count, datatype)
	}
	return x, err
}

func (l *Lib) gather(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, h Handle) (operands, error) {
	x, err := l.collective(h, root)
	if err == nil && x.isRoot() {
		x.recv, err = l.each(x.peers(), recvbuf, recvcount, recvtype)
	}
	if err == nil && x.isOther() {
		x.send, err = l.unless(x.isRoot(), sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) gatherv(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, counts, displs Ints, recvtype Handle, root int, h Handle) (operands, error) {
	x, err := l.collective(h, root)
	if err == nil && x.isRoot() {
		x.recv, x.recvCounts, x.recvDispls, err = l.vector(x.peers(), recvbuf, counts, displs, recvtype)
	}
	if err == nil && x.isOther() {
		x.send, err = l.unless(x.isRoot(), sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) scatter(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, h Handle) (operands, error) {
	x, err := l.collective(h, root)
	if err == nil && x.isRoot() {
		x.send, err = l.each(x.peers(), sendbuf, sendcount, sendtype)
	}
	if err == nil && x.isOther() {
		x.recv, err = l.unless(x.isRoot(), recvbuf, recvcount, recvtype)
	}
	return x, err
}

func (l *Lib) scatterv(sendbuf Addr, counts, displs Ints, sendtype Handle, recvbuf Addr, recvcount int, recvtype Handle, root int, h Handle) (operands, error) {
	x, err := l.collective(h, root)
	if err == nil && x.isRoot() {
		x.send, x.sendCounts, x.sendDispls, err = l.vector(x.peers(), sendbuf, counts, displs, sendtype)
	}
	if err == nil && x.isOther() {
		x.recv, err = l.unless(x.isRoot(), recvbuf, recvcount, recvtype)
	}
	return x, err
}

func (l *Lib) allgather(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err == nil {
		x.recv, err = l.each(x.peers(), recvbuf, recvcount, recvtype)
	}
	if err == nil {
		x.send, err = l.unless(!x.c.Inter(), sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) allgatherv(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, counts, displs Ints, recvtype, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err == nil {
		x.recv, x.recvCounts, x.recvDispls, err = l.vector(x.peers(), recvbuf, counts, displs, recvtype)
	}
	if err == nil {
		x.send, err = l.unless(!x.c.Inter(), sendbuf, sendcount, sendtype)
	}
	return x, err
}

// inPlace reports whether a rank whose send buffer that is finds all in the receive buffer.
func (x *operands) inPlace(sendbuf Addr) bool { return sendbuf == MPI_IN_PLACE && !x.c.Inter() }

func (l *Lib) alltoall(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err == nil {
		x.recv, err = l.each(x.peers(), recvbuf, recvcount, recvtype)
	}
	if err == nil && !x.inPlace(sendbuf) {
		x.send, err = l.each(x.peers(), sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) alltoallv(sendbuf Addr, scounts, sdispls Ints, sendtype Handle, recvbuf Addr, rcounts, rdispls Ints, recvtype, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err == nil {
		x.recv, x.recvCounts, x.recvDispls, err = l.vector(x.peers(), recvbuf, rcounts, rdispls, recvtype)
	}
	if err == nil && !x.inPlace(sendbuf) {
		x.send, x.sendCounts, x.sendDispls, err = l.vector(x.peers(), sendbuf, scounts, sdispls, sendtype)
	}
	return x, err
}

func (l *Lib) alltoallw(sendbuf Addr, scounts, sdispls Ints, sendtypes Handles, recvbuf Addr, rcounts, rdispls Ints, recvtypes Handles, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err == nil {
		x.recvs, err = l.scattered(x.peers(), recvbuf, rcounts, rdispls, recvtypes)
	}
	if err == nil && !x.inPlace(sendbuf) {
		x.sends, err = l.scattered(x.peers(), sendbuf, scounts, sdispls, sendtypes)
	}
	return x, err
}

// rooted are the operands of a reduction to a root.
func (l *Lib) rooted(sendbuf, recvbuf Addr, count int, datatype, op Handle, root int, h Handle) (operands, error) {
	x, err := l.collective(h, root)
	if err == nil && x.isRoot() {
		x.recv, err = l.data(recvbuf, count, datatype)
	}
	if err == nil && x.isOther() {
		x.send, err = l.unless(x.isRoot(), sendbuf, count, datatype)
	}
	if err == nil {
		x.op, err = l.reduceOp(op, datatype)
	}
	return x, err
}

// reduction are the operands of a reduction whose result all get.
func (l *Lib) reduction(sendbuf, recvbuf Addr, count int, datatype, op, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err == nil {
		x.recv, err = l.data(recvbuf, count, datatype)
	}
	if err == nil {
		x.send, err = l.unless(!x.c.Inter(), sendbuf, count, datatype)
	}
	if err == nil {
		x.op, err = l.reduceOp(op, datatype)
	}
	return x, err
}

func (l *Lib) reduceScatter(sendbuf, recvbuf Addr, recvcounts Ints, datatype, op, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err != nil {
		return x, err
	}
	if recvcounts.null() {
		return x, fail(mpi.ErrArg, "there are no counts")
	}
	x.recvCounts = recvcounts.slice(x.c.Size())
	total := 0
	for i, n := range x.recvCounts {
		if n < 0 {
			return x, fail(mpi.ErrCount, "%d elements of rank %d", n, i)
		}
		total += n
	}
	return x, l.parted(&x, sendbuf, recvbuf, total, x.recvCounts[x.c.Rank()], datatype, op)
}

func (l *Lib) reduceScatterBlock(sendbuf, recvbuf Addr, recvcount int, datatype, op, h Handle) (operands, error) {
	x, err := l.collective(h, 0)
	if err != nil {
		return x, err
	}
	return x, l.parted(&x, sendbuf, recvbuf, recvcount*x.c.Size(), recvcount, datatype, op)
}

// parted adds the operands of a reduction of so many elements, of which this rank gets mine.
func (l *Lib) parted(x *operands, sendbuf, recvbuf Addr, total, mine int, datatype, op Handle) (err error) {
	if x.inPlace(sendbuf) {
		x.recv, err = l.data(recvbuf, total, datatype)
	} else if x.send, err = l.data(sendbuf, total, datatype); err == nil {
		x.recv, err = l.data(recvbuf, mine, datatype)
	}
	if err == nil {
		x.op, err = l.reduceOp(op, datatype)
	}
	return err
}

// near are the operands of a collective among neighbours without any yet, and how many
// neighbours this rank receives from and sends to.
func (l *Lib) near(h Handle) (x operands, sources, dests int, err error) {
	if x, err = l.collective(h, 0); err == nil {
		sources, dests, err = x.c.NeighborCount()
	}
	return x, sources, dests, err
}

func (l *Lib) neighborAllgather(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype, h Handle) (operands, error) {
	x, sources, _, err := l.near(h)
	if err == nil {
		x.recv, err = l.each(sources, recvbuf, recvcount, recvtype)
	}
	if err == nil {
		x.send, err = l.data(sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) neighborAllgatherv(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, counts, displs Ints, recvtype, h Handle) (operands, error) {
	x, sources, _, err := l.near(h)
	if err == nil {
		x.recv, x.recvCounts, x.recvDispls, err = l.vector(sources, recvbuf, counts, displs, recvtype)
	}
	if err == nil {
		x.send, err = l.data(sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) neighborAlltoall(sendbuf Addr, sendcount int, sendtype Handle, recvbuf Addr, recvcount int, recvtype, h Handle) (operands, error) {
	x, sources, dests, err := l.near(h)
	if err == nil {
		x.recv, err = l.each(sources, recvbuf, recvcount, recvtype)
	}
	if err == nil {
		x.send, err = l.each(dests, sendbuf, sendcount, sendtype)
	}
	return x, err
}

func (l *Lib) neighborAlltoallv(sendbuf Addr, scounts, sdispls Ints, sendtype Handle, recvbuf Addr, rcounts, rdispls Ints, recvtype, h Handle) (operands, error) {
	x, sources, dests, err := l.near(h)
	if err == nil {
		x.recv, x.recvCounts, x.recvDispls, err = l.vector(sources, recvbuf, rcounts, rdispls, recvtype)
	}
	if err == nil {
		x.send, x.sendCounts, x.sendDispls, err = l.vector(dests, sendbuf, scounts, sdispls, sendtype)
	}
	return x, err
}

func (l *Lib) neighborAlltoallw(sendbuf Addr, scounts, sdispls Ints, sendtypes Handles, recvbuf Addr, rcounts, rdispls Ints, recvtypes Handles, h Handle) (operands, error) {
	x, sources, dests, err := l.near(h)
	if err == nil {
		x.recvs, err = l.scattered(sources, recvbuf, rcounts, rdispls, recvtypes)
	}
	if err == nil {
		x.sends, err = l.scattered(dests, sendbuf, scounts, sdispls, sendtypes)
	}
	return x, err
}
