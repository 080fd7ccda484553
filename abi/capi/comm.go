package capi

import "github.com/xwarp/xwarp/mpi"

// comm is a communicator of the program.
type comm struct {
	*mpi.Comm
	handler  Handle   // its error handler
	attached attached // to MPI_Bsend
}

// lookup returns a communicator, or nil.
func (l *Lib) lookup(h Handle) *comm {
	switch h {
	case MPI_COMM_WORLD:
		return &l.world
	case MPI_COMM_SELF:
		return &l.self
	}
	return l.comms.get(h)
}

// comm returns a communicator, or says what is wrong.
func (l *Lib) comm(h Handle) (*comm, error) {
	c := l.lookup(h)
	if c != nil && c.Comm != nil && l.users.Load() > 0 {
		return c, nil
	}
	if err := l.up(); err != nil {
		return nil, err
	}
	if h == MPI_COMM_NULL {
		return nil, fail(mpi.ErrComm, "MPI_COMM_NULL")
	}
	if c != nil {
		return nil, fail(mpi.ErrComm, "MPI_COMM_WORLD and MPI_COMM_SELF are there from MPI_Init to MPI_Finalize: the process has sessions only")
	}
	return nil, fail(mpi.ErrComm, "%#x is no communicator, or was freed", uintptr(h))
}

// addComm gives the program a communicator that was made from others, whose error handler it
// inherits.
func (l *Lib) addComm(c *mpi.Comm, handler Handle) Handle {
	if c == nil {
		return MPI_COMM_NULL
	}
	return l.comms.add(comm{Comm: c, handler: l.hold(handler)})
}

// dropComm is the end of a communicator that was freed.
func (l *Lib) dropComm(h Handle) {
	l.release(l.comms.get(h).handler)
	l.comms.remove(h)
}

// CommRank is MPI_Comm_rank.
func CommRank(l *Lib, comm Handle, rank Ints) error {
	c, err := l.comm(comm)
	if err == nil {
		rank.set(0, c.Rank())
	}
	return err
}

// CommSize is MPI_Comm_size.
func CommSize(l *Lib, comm Handle, size Ints) error {
	c, err := l.comm(comm)
	if err == nil {
		size.set(0, c.Size())
	}
	return err
}
