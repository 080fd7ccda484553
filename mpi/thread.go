package mpi

import (
	"syscall"

	"github.com/xwarp/xwarp/internal/base/config"
)

// ThreadLevel says which goroutines of a rank call this package (MPI 4.1, section
// 11.6). Levels are ordered: each allows what the lower ones do.
type ThreadLevel uint8

// The levels, in the order of config.Threads.
const (
	ThreadSingle     ThreadLevel = iota // there is only one (MPI_THREAD_SINGLE)
	ThreadFunneled                      // the one that called Init (MPI_THREAD_FUNNELED)
	ThreadSerialized                    // any, but one at a time (MPI_THREAD_SERIALIZED)
	ThreadMultiple                      // any, at the same time (MPI_THREAD_MULTIPLE)
)

func (l ThreadLevel) String() string { return config.Threads.Name(uint8(l), "ThreadLevel") }

// InitThread is [Init] for programs whose goroutines share the Proc
// (MPI_Init_thread). What they may do is what [Proc.QueryThread] says, which is
// less than required only where ThreadMultiple is not to be had: in a simulation.
//
// Under ThreadMultiple any number of goroutines may call any operation at the
// same time, on the same communicator or on different ones, and a request may be
// waited for by another goroutine than the one that has started it. As in MPI,
// it is for the program to see to it that at most one goroutine at a time is in
// a collective of a communicator, waits for a request, or uses a [Persistent];
// to find a message with Probe and then to receive it is for one goroutine per
// source and tag: others use [Comm.Mprobe]. Finalize is for when all others are
// done. Reductions must not call this package.
func InitThread(required ThreadLevel) (*Proc, error) {
	return InitWith(Config{Threads: required})
}

// QueryThread returns what the goroutines of this rank may do
// (MPI_Query_thread): ThreadMultiple if that was asked for, else
// ThreadSerialized, since less costs the same.
func (p *Proc) QueryThread() ThreadLevel {
	if p.ep.Threads() {
		return ThreadMultiple
	}
	return ThreadSerialized
}

// IsThreadMain reports whether the caller runs on the thread that called Init
// (MPI_Is_thread_main). Goroutines change their threads unless they call
// runtime.LockOSThread, so it means something for those only, and in C.
func (p *Proc) IsThreadMain() bool { return syscall.Gettid() == p.threads.main }
