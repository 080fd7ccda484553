package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/rma"
)

// Ghost makes this process a ghost of the job that it was started for, which serves the
// windows of ranks of its host until the launcher ends it, or the job. It is what xrun
// --ghosts runs beside the ranks; programs do not call it.
func Ghost() error {
	p, err := join(Config{})
	if err != nil {
		return err
	}
	if p.rank < p.job.Size() {
		return fail(ErrOther, "Ghost", "this process is rank %d of %d: xrun --ghosts starts ghosts", p.rank, p.job.Size())
	}
	return p.serve()
}

// serve is what a ghost does until the job is over.
func (p *Proc) serve() error {
	if p.ghosts == nil {
		return fail(ErrOther, "Ghost", "there are ranks without a ghost on their host")
	}
	p.ep.Enter()
	in := p.ep.Inside()
	p.ep.SetServer(rma.NewGhost(in, int32(p.rank), p.ghosts))
	for in.Trouble(0, int32(p.rank)) == nil {
		in.Progress()
	}
	p.ep.Leave()
	return nil
}

// hasGhost reports whether a ghost can serve memory of this rank: there is one, and shared
// memory.
func (p *Proc) hasGhost() bool {
	return p.ghosts != nil && p.ep.Inside().Segments().With(p.ghosts.Of[p.rank])
}

// provideServed gives a window memory of n bytes: of a segment, if a ghost is to serve it.
// lack is why there is none.
func (w *Win) provideServed(op string, n int) (lack error) {
	p := w.c.p
	if w.async.mode == AsyncOff || n == 0 || !p.hasGhost() {
		w.memory, lack = p.alloc(n)
		return lack
	}
	if w.segment, lack = w.newSegment(n); lack == nil {
		w.memory = w.segment.Bytes()[:n:n]
		lack = w.segment.Populate(0, n)
	}
	if lack != nil {
		return &Error{Class: ErrNoMem, Op: op, Rank: -1, Err: lack}
	}
	return nil
}

// askGhost asks the ghost of this rank to serve the memory of the window, and returns what
// others are to know about it: nothing else than before if it cannot, or is not to.
func (w *Win) askGhost(own rma.Remote) (rma.Remote, error) {
	if w.flavor != FlavorAllocate || w.c.p.ghosts == nil {
		return own, nil
	}
	if w.async.mode == AsyncOff || !w.c.p.hasGhost() {
		w.async.mode = AsyncOff
		return own, w.hints.Set(asyncConfig, "off")
	}
	id := uint64(0)
	if w.segment != nil {
		id = w.segment.ID()
	}
	got, err := w.w.Serve(id, uint64(len(w.memory)))
	if err != nil {
		return own, err
	}
	if got.Client == 0 { // it has said why
		w.async.mode = AsyncOff
	} else {
		own.Key, own.Addr, own.Client = got.Key, got.Addr, got.Client
	}
	return own, w.hints.Set(asyncConfig, w.async.mode.String())
}
