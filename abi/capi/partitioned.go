package capi

import (
	"math"

	"github.com/xwarp/xwarp/mpi"
)

// PsendInit is MPI_Psend_init.
func PsendInit(l *Lib, buf Addr, partitions, count int, datatype Handle, dest, tag int, comm, _ Handle, request Handles) error {
	c, d, err := l.partitions(buf, partitions, count, datatype, dest, comm)
	if err != nil {
		return err
	}
	p, err := c.PsendInit(d, partitions, rankFrom(dest), tag)
	return l.prepare(p, err, comm, request)
}

// PrecvInit is MPI_Precv_init.
func PrecvInit(l *Lib, buf Addr, partitions, count int, datatype Handle, source, tag int, comm, _ Handle, request Handles) error {
	c, d, err := l.partitions(buf, partitions, count, datatype, source, comm)
	if err != nil {
		return err
	}
	p, err := c.PrecvInit(d, partitions, rankFrom(source), tagFrom(tag))
	return l.prepare(p, err, comm, request)
}

// partitions is peer of a buffer whose count is that of each partition.
func (l *Lib) partitions(buf Addr, partitions, count int, datatype Handle, rank int, comm Handle) (*comm, mpi.Data, error) {
	switch {
	case partitions < 0:
		return nil, mpi.Data{}, fail(mpi.ErrArg, "%d partitions", partitions)
	case count < 0:
		return nil, mpi.Data{}, fail(mpi.ErrCount, "%d elements in each partition", count)
	case partitions > 0 && count > math.MaxInt/partitions:
		return nil, mpi.Data{}, fail(mpi.ErrCount, "%d elements in each of %d partitions", count, partitions)
	}
	return l.peer(buf, partitions*count, datatype, rank, comm)
}

// partitioned returns a request of a partitioned message.
func (l *Lib) partitioned(h Handle) (*request, error) {
	r, err := l.request(h)
	if err == nil && (r == nil || r.persistent == nil) {
		err = fail(mpi.ErrRequest, "the request is not of a partitioned message")
	}
	return r, err
}

// Pready is MPI_Pready.
func Pready(l *Lib, partition int, request Handle) error {
	return PreadyRange(l, partition, partition, request)
}

// PreadyRange is MPI_Pready_range.
func PreadyRange(l *Lib, low, high int, request Handle) error {
	r, err := l.partitioned(request)
	if err != nil {
		return err
	}
	return on(r.comm, r.persistent.PreadyRange(low, high))
}

// PreadyList is MPI_Pready_list.
func PreadyList(l *Lib, length int, list Ints, request Handle) error {
	r, err := l.partitioned(request)
	if err != nil {
		return err
	}
	partitions, err := list.list("partitions", length)
	if err == nil {
		err = r.persistent.Pready(partitions...)
	}
	return on(r.comm, err)
}

// Parrived is MPI_Parrived.
func Parrived(l *Lib, request Handle, partition int, flag Ints) error {
	r, err := l.request(request)
	if err != nil {
		return err
	}
	if r == nil { // as after its end
		flag.setFlag(true)
		return nil
	}
	if r, err = l.partitioned(request); err != nil {
		return err
	}
	there, err := r.persistent.Parrived(partition)
	flag.setFlag(there)
	return on(r.comm, err)
}
