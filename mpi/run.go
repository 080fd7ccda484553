package mpi

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/verbs/device"
)

// RankError is what [Run] returns: the first rank that failed, and why.
type RankError struct {
	Rank int
	Err  error
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }

// Unwrap returns why the rank failed.
func (e *RankError) Unwrap() error { return e.Err }

// localArena is the size in bytes of the arena of a rank of Run, of which there
// may be many.
const localArena = 16 << 20

// Run runs n ranks inside this process, each as a goroutine that calls body,
// over kernel UDP on loopback. It is for tests and for first contact: no
// launcher, no privileges.
//
// Run finalizes the ranks that have not done it. When a rank fails or panics,
// the calls of the others fail too, and Run returns a [RankError] that names
// the first one.
func Run(n int, body func(p *Proc) error) error {
	var (
		lock  sync.Mutex
		first *RankError
	)
	err := runLocal(n, body, func(job boot.Job, err error) {
		if err == nil {
			return
		}
		lock.Lock()
		defer lock.Unlock()
		if first == nil {
			first = &RankError{Rank: job.Rank(), Err: err}
		}
		job.Abort(1, err.Error())
	})
	if first != nil {
		return first
	}
	return err
}

// RunEach is Run for ranks that die alone, for programs that survive this: when a
// rank fails or panics, the others are told that it is lost, and go on. It returns
// what became of each, by rank.
func RunEach(n int, body func(p *Proc) error) []error {
	ends := make([]error, max(n, 1))
	err := runLocal(n, body, func(job boot.Job, err error) {
		ends[job.Rank()] = err
		boot.Leave(job)
	})
	if err != nil {
		return []error{err}
	}
	return ends
}

// runLocal runs ranks as goroutines. ended is called by each with what became of
// it.
func runLocal(n int, body func(p *Proc) error, ended func(job boot.Job, err error)) error {
	if n < 1 {
		return fail(ErrArg, "Run", "%d ranks", n)
	}
	cfg, spec, err := fromEnv(os.LookupEnv)
	if err != nil {
		return err
	}
	spec.Fabric, spec.Device = "udp", ""
	if spec.Arena == 0 {
		spec.Arena = localArena
	}
	spec.Poller.Ranks, spec.Poller.Goroutines = n, true
	var group sync.WaitGroup
	for _, job := range boot.Local(n) {
		group.Go(func() {
			err := errors.New("it ended by runtime.Goexit")
			defer func() { ended(job, err) }()
			err = runRank(job, spec, cfg, body)
		})
	}
	group.Wait()
	return nil
}

func runRank(job boot.Job, spec device.Spec, cfg Config, body func(p *Proc) error) error {
	ctx, err := open(job, spec)
	if err != nil {
		return err
	}
	p, err := New(job, ctx, cfg)
	if err != nil {
		return err
	}
	return p.run(body)
}

// run calls body and cleans up after it.
func (p *Proc) run(body func(p *Proc) error) (err error) {
	ended := false
	defer func() {
		if !ended {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}
		if !p.finalized {
			err = errors.Join(err, p.close())
		}
	}()
	err = body(p)
	ended = true
	if err == nil && !p.finalized {
		err = p.Finalize()
	}
	return err
}
