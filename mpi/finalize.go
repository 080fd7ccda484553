package mpi

import (
	"errors"
	"sync"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Finalize leaves the job in good order (MPI_Finalize): it waits until all
// ranks call it and until everything they have sent has arrived. It does not
// wait for a rank that is lost, which is no error. Every later call fails, but for
// those on sessions that are open still: then the process leaves with the last one.
func (p *Proc) Finalize() error {
	switch {
	case p.finalized.Load():
		return fail(ErrOther, "Finalize", "it was called before")
	case p.apart:
		return fail(ErrOther, "Finalize", "the process has sessions only: finalize those")
	}
	errs := []error{p.self.attrs.removeAll("Finalize", p.self), p.world.attrs.removeAll("Finalize", p.world)}
	p.finalized.Store(true)
	t := p.watch.begin("Finalize", p.world, Undefined, Undefined, 0)
	errs = append(errs, p.BufferFlush())
	if !p.inSession() {
		p.farewells()
		errs = append(errs, p.untaken("Finalize"))
	}
	p.world.coll.op = "Finalize"
	err := p.world.barrier()
	if class := ClassOf(err); class == ErrProcFailed || class == ErrRevoked {
		// Those that are left wait for one another in another way: while one
		// of them is in an agreement, it may need the others.
		_, err = p.world.decide("Finalize", ballot{kind: ballotFinalize})
	}
	errs = append(errs, err)
	if p.inSession() {
		p.world.freed, p.self.freed = true, true
		t.end(errors.Join(errs...))
		return errors.Join(errs...)
	}
	p.threads.attendant.stop()
	p.ep.Drain()
	t.end(errors.Join(errs...))
	p.watch.last()
	return errors.Join(append(errs, p.leave())...)
}

// untaken is the error for operations whose end the program has not seen.
func (p *Proc) untaken(op string) error {
	if n := p.ep.Active() + p.calls.untaken; n > 0 {
		return fail(ErrPending, op, "%d operations were started and never waited for", n)
	}
	return nil
}

// leave is the end of the process in the job.
func (p *Proc) leave() error { return errors.Join(p.close(), p.job.Finalize()) }

// gone says that a process has left the job. Any goroutine may ask at any time.
type gone struct {
	mu  sync.Mutex
	yes bool
}

func (g *gone) set() {
	g.mu.Lock()
	g.yes = true
	g.mu.Unlock()
}

// left reports whether the process has left the job.
func (p *Proc) left() bool {
	p.gone.mu.Lock()
	defer p.gone.mu.Unlock()
	return p.gone.yes
}

// wake makes what waits in the process look again. Any goroutine may call it.
func (p *Proc) wake() {
	p.gone.mu.Lock()
	defer p.gone.mu.Unlock()
	if !p.gone.yes { // afterwards there is nothing to wake
		p.ep.Engine().Wake()
	}
}

func (p *Proc) close() error {
	if p.ep == nil {
		return p.ctx.Close()
	}
	p.threads.attendant.stop()
	p.gone.set()
	for sl := range p.slots { // of communicators that were not freed
		sl.close()
	}
	for _, k := range p.kept {
		_ = k.segment.Close()
	}
	p.ep.End(&p2p.Error{Code: p2p.Ended, Peer: -1, Detail: "Finalize was called"})
	p.leaveBoards()
	return errors.Join(p.ep.Close(), p.ctx.Close())
}
