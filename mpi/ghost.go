package mpi

import (
	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
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
	defer p.ep.Leave()
	g := rma.NewGhost(p.ep.Inside(), int32(p.rank), p.ghosts)
	return p.serveWith(g, g)
}

// serveWith has a ghost, or what stands before it, take messages until the job is over, or
// until it has stood still for so long that ranks may go on without it: what has queued
// meanwhile must not reach memory that they serve themselves. So it looks at the clock before
// each step takes anything in.
func (p *Proc) serveWith(server p2p.Server, g *rma.Ghost) error {
	in, l := p.ep.Inside(), p.lease()
	if l != nil {
		server = leased{server, l}
		p.ep.Engine().Add(l)
		defer p.ep.Engine().Remove(l)
	}
	p.ep.SetServer(server)
	p.ep.Engine().Add(g)
	defer g.Close()
	defer p.ep.Engine().Remove(g)
	for in.Trouble(0, int32(p.rank)) == nil {
		if l != nil {
			if stood, over := l.renew(); over {
				return fail(ErrGhostFailed, "Ghost", "it has stood still for %v, so ranks may have gone on without it: it ends", stood)
			}
		}
		in.Progress()
		g.Turn()
	}
	return nil
}

// hasGhost reports whether a ghost can serve memory of this rank: there is one, and shared
// memory.
func (p *Proc) hasGhost() bool {
	if p.ghosts == nil {
		return false
	}
	in, ghost := p.ep.Inside(), p.ghosts.Of[p.rank]
	return in.Segments().With(ghost) && !in.Lost(ghost)
}

// provideServed gives a window memory of n bytes: of a segment, if a ghost is to serve it.
// lack is why there is none.
func (w *Win) provideServed(op string, n int) (lack error) {
	p := w.c.p
	if w.async.mode == AsyncOff || n == 0 || !p.hasGhost() {
		w.memory, lack = p.allocOwn(n, true)
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
	got, err := rma.ServiceOf(w.w).Serve(id, w.memory)
	if err != nil && !w.c.p.fallsBack() {
		return own, err
	}
	if got.Client == 0 { // it has said why
		w.async.mode = AsyncOff
	} else if err = w.follows(); err != nil {
		return own, err
	} else {
		own.Key, own.Addr, own.Client, own.Others = got.Key, got.Addr, got.Client, got.Others
	}
	if err = w.hints.Set(asyncConfig, w.async.mode.String()); err == nil {
		err = w.hints.Set(ghostBinding, config.GhostBindings[w.binding].Name)
	}
	return own, err
}

// ghostBinding is the hint that says which of several ghosts of a host serves what.
const ghostBinding = "ghost_binding"

// bindingWanted returns the binding that info says, or else otherwise.
func bindingWanted(op string, info *Info, otherwise GhostBinding) (GhostBinding, error) {
	value, ok := info.Get(ghostBinding)
	if !ok {
		return otherwise, nil
	}
	at := config.GhostBindings.Index(value)
	if at < 0 {
		return 0, fail(ErrInfoValue, op, "%s is %q; it must be one of %s", ghostBinding, value, config.GhostBindings)
	}
	return GhostBinding(at), nil
}

// putOthers appends to what a rank tells of its memory which ghosts serve it beside its own: three
// words for each ghost that a host has beyond one, the first of which is 0 where there is none.
func (p *Proc) putOthers(words []int64, all []rma.Other) []int64 {
	for _, o := range all {
		words = append(words, int64(o.World), int64(o.Key), int64(o.Addr))
	}
	return append(words, make([]int64, 3*max(p.ghosts.Most()-1-len(all), 0))...)
}

// getOthers is the opposite.
func getOthers(words []int64) (all []rma.Other) {
	for ; len(words) >= 3; words = words[3:] {
		if words[0] != 0 { // which is no ghost
			all = append(all, rma.Other{World: int32(words[0]), Key: uint32(words[1]), Addr: uint64(words[2])})
		}
	}
	return all
}
