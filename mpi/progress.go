package mpi

import (
	"runtime"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/progress"
)

// Progress says what makes progress while the program computes: whose windows are operated on
// meanwhile, and whose messages move. It is for comparing [Ghost] with what others do, since
// every call pays for a lock and for being woken by another thread.
type Progress uint8

// The ways, in the order of config.Progresses.
const (
	ProgressNone   Progress = iota // nothing else: the calls of the program do
	ProgressThread                 // a thread of the rank, wherever the rank may run
	ProgressCore                   // a thread on the second half of the processors where the rank may run, which leaves these to it
)

func (p Progress) String() string { return config.Progresses.Name(uint8(p), "Progress") }

// threads are those of the operating system that a rank knows of.
type threads struct {
	main      int // that called Init
	attendant attendant
}

// attendant is the thread that makes progress beside the program.
type attendant struct {
	over  atomic.Bool
	wake  func()
	ended chan struct{} // nil: there is none
}

// attend starts the thread that the configuration asks for.
func (p *Proc) attend(cfg Config) error {
	a := &p.threads.attendant
	switch {
	case cfg.Progress == ProgressNone:
		return nil
	case cfg.Progress > ProgressCore:
		return fail(ErrArg, "Init", "%v is no way to make progress", cfg.Progress)
	case !p.ep.Threads():
		return fail(ErrArg, "Init", "a simulation has no threads: leave Config.Progress away")
	}
	tie := func() error { return nil }
	if cfg.Progress == ProgressCore {
		_, local := p.job.Host()
		var err error
		if tie, err = progress.DivideProcessors(local); err != nil {
			return fail(ErrOther, "Init", "a processor of its own for the thread that makes progress: %v; %s=%v needs none", err, EnvProgress, ProgressThread)
		}
	}
	// The thread comes back from the kernel while the program computes.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	a.wake, a.ended = p.ep.Engine().Wake, make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and it ends with the goroutine
		err := tie()
		if started <- err; err == nil {
			p.ep.Attend(&a.over)
		}
		close(a.ended)
	}()
	if err := <-started; err != nil {
		return fail(ErrOther, "Init", "the processor of the thread that makes progress: %v", err)
	}
	return nil
}

// stop ends the thread, if there is one, and waits for its end.
func (a *attendant) stop() {
	if a.ended == nil {
		return
	}
	a.over.Store(true)
	a.wake()
	<-a.ended
}
