package capi

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi"
)

// levels are the levels of threads, as package mpi orders them.
var levels = [...]int{MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE}

// Init is MPI_Init.
func Init(l *Lib, _ Ints, _ Addr) error { return l.init(MPI_THREAD_SINGLE) }

// InitThread is MPI_Init_thread.
func InitThread(l *Lib, _ Ints, _ Addr, required int, provided Ints) error {
	err := l.init(required)
	provided.set(0, l.level)
	return err
}

func (l *Lib) init(required int) error {
	if l.state.Load() != before {
		return fail(mpi.ErrOther, "it was called before")
	}
	level := mpi.ThreadSingle
	for i, n := range levels {
		if n <= required {
			level = mpi.ThreadLevel(i)
		}
	}
	if l.proc == nil { // no session has joined
		if err := l.join(level); err != nil {
			return err
		}
	}
	l.level = levels[min(level, l.proc.QueryThread())]
	l.world.Comm, l.self.Comm = l.proc.World(), l.proc.Self()
	l.users.Add(1)
	l.state.Store(initialized)
	return nil
}

// join makes the process a rank of the job.
func (l *Lib) join(level mpi.ThreadLevel) error {
	p, err := mpi.InitThread(level)
	if err == nil {
		l.proc = p
		l.requests.serial = p.QueryThread() != mpi.ThreadMultiple
		stayAwake()
		l.fixAttrs()
		l.tools.joined(p)
	}
	return err
}

// Finalize is MPI_Finalize.
func Finalize(l *Lib) error {
	err := l.up()
	if err == nil && l.state.Load() != initialized {
		err = fail(mpi.ErrOther, "MPI_Init was not called, or MPI_Finalize was")
	}
	if err == nil {
		l.tools.leaving()
		err = unlessPending(l.proc.Finalize())
		l.state.Store(finalized)
		l.users.Add(-1)
		l.world.Comm, l.self.Comm = nil, nil
	}
	return err
}

// Initialized is MPI_Initialized.
func Initialized(l *Lib, flag Ints) error {
	flag.setFlag(l.state.Load() != before)
	return nil
}

// Finalized is MPI_Finalized.
func Finalized(l *Lib, flag Ints) error {
	flag.setFlag(l.state.Load() == finalized)
	return nil
}

// QueryThread is MPI_Query_thread.
func QueryThread(l *Lib, provided Ints) error {
	err := l.up()
	if err == nil {
		provided.set(0, l.level)
	}
	return err
}

// IsThreadMain is MPI_Is_thread_main.
func IsThreadMain(l *Lib, flag Ints) error {
	err := l.up()
	if err == nil {
		flag.setFlag(l.proc.IsThreadMain())
	}
	return err
}

// Abort is MPI_Abort.
func Abort(l *Lib, comm Handle, errorcode int) error {
	if err := l.up(); err != nil {
		return err
	}
	l.die(errorcode, fmt.Sprintf("rank %d called MPI_Abort with code %d", l.proc.World().Rank(), errorcode))
	return nil
}

// Wtick is MPI_Wtick.
func Wtick(*Lib) float64 { return 1e-9 }

// GetProcessorName is MPI_Get_processor_name.
func GetProcessorName(l *Lib, name Text, length Ints) error {
	if err := l.up(); err != nil {
		return err
	}
	s, err := l.proc.ProcessorName()
	if err == nil {
		length.set(0, name.set(s, MPI_MAX_PROCESSOR_NAME))
	}
	return err
}

// GetVersion is MPI_Get_version.
func GetVersion(_ *Lib, version, subversion Ints) error {
	version.set(0, MPI_VERSION)
	subversion.set(0, MPI_SUBVERSION)
	return nil
}

// GetLibraryVersion is MPI_Get_library_version.
func GetLibraryVersion(_ *Lib, version Text, length Ints) error {
	length.set(0, version.set(mpi.LibraryVersion(), MPI_MAX_LIBRARY_VERSION_STRING))
	return nil
}
