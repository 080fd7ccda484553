package mpi

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/xwarp/xwarp/internal/job/boot"
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
const localArena = 20 << 20

// Run runs n ranks inside this process, each as a goroutine that calls body. They
// talk as ranks of one host do, through shared memory, or with XWARP_SHARED=0 in
// the environment over kernel UDP on loopback. It is for tests and for first
// contact: no launcher, no privileges.
//
// Run finalizes the ranks that have not done it. When a rank fails or panics,
// the calls of the others fail too, and Run returns a [RankError] that names
// the first one.
func Run(n int, body func(p *Proc) error) error { return RunWith(n, Config{}, body) }

// RunWith is Run with a configuration. What it leaves out is what the environment
// says, or the default.
func RunWith(n int, cfg Config, body func(p *Proc) error) error {
	var (
		lock  sync.Mutex
		first *RankError
	)
	err := runLocal(n, cfg, body, func(job boot.Job, err error) {
		lock.Lock()
		if first == nil {
			first = &RankError{Rank: job.Rank(), Err: err}
		}
		lock.Unlock()
		job.Abort(1, err.Error())
	}, nil)
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
	err := runLocal(n, Config{}, body, func(job boot.Job, err error) {
		ends[job.Rank()] = errors.Join(ends[job.Rank()], err)
	}, boot.Leave)
	if err != nil {
		return []error{err}
	}
	return ends
}

// runLocal runs ranks as goroutines. A rank that fails calls failed, and each
// calls left, if it is not nil, when it has ended.
func runLocal(n int, cfg Config, body func(p *Proc) error, failed func(boot.Job, error), left func(boot.Job)) error {
	if n < 1 {
		return fail(ErrArg, "Run", "%d ranks", n)
	}
	defaults, spec, err := environment()
	if err != nil {
		return err
	}
	cfg = cfg.or(defaults)
	spec.Fabric, spec.Device = "udp", ""
	if spec.Arena == 0 {
		spec.Arena = localArena
	}
	spec.Poller.Ranks, spec.Poller.Goroutines = n, true
	if cfg.Secure {
		cfg.secret = boot.NewSecret()
	}
	var group sync.WaitGroup
	for _, job := range boot.Local(n) {
		group.Go(func() {
			runRank(job, spec, cfg, body, func(err error) { failed(job, err) })
			if left != nil {
				left(job)
			}
		})
	}
	group.Wait()
	return nil
}

func runRank(job boot.Job, spec device.Spec, cfg Config, body func(p *Proc) error, failed func(error)) {
	ctx, err := open(job, spec, cfg)
	if err != nil {
		failed(err)
		return
	}
	p, err := New(job, ctx, cfg)
	if err != nil {
		failed(err)
		return
	}
	p.run(body, failed)
}

// run calls body and cleans up after it. It tells of a failure before the
// neighbours notice that the rank is gone, whose failures follow from it.
func (p *Proc) run(body func(p *Proc) error, failed func(error)) {
	err := errors.New("it ended by runtime.Goexit")
	ended := false
	defer func() {
		if !ended {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}
		if err != nil {
			failed(err)
		}
		// After a panic inside the endpoint no goroutine can come in any more.
		if !p.left() && p.ep.TryEnter() {
			p.ep.Leave()
			if err := p.close(); err != nil {
				failed(err)
			}
		}
	}()
	err = body(p)
	ended = true
	if err == nil && !p.finalized.Load() {
		err = p.Finalize()
	}
	if err == nil && p.inSession() {
		err = fail(ErrSession, "Run", "%d sessions were not finalized", p.sessions)
	}
}
