package rma

import "github.com/xwarp/xwarp/mpi/internal/p2p"

// General active target synchronization (MPI 4.1, section 12.5.2): a word from each
// target to each origin when the exposure epoch begins, and one back, behind the
// operations, when the access epoch ends.

// Post begins an exposure epoch for the ranks of origins. free says that none of them
// calls Start before (MPI_MODE_NOCHECK): they are told nothing.
func (w *Window) Post(origins []int32, free bool) error {
	if w.posted {
		return wrong(-1, "an exposure epoch of Post has not ended: call Wait")
	}
	if w.access == fenced && w.busy { // the epoch of the fence exposes the memory as well
		return wrong(-1, "%s has not ended", where[w.access])
	}
	w.posted, w.exposed = true, append(w.exposed[:0], origins...)
	w.counts.epochs.Posts++
	if free {
		return nil
	}
	var first error
	for _, rank := range origins {
		if err := w.tellHome(rank, sayPost); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Start begins an access epoch for operations on the ranks of targets, and waits until
// each has posted, unless free says that all have.
func (w *Window) Start(targets []int32, free bool) error {
	if err := w.enter(starts); err != nil {
		return err
	}
	w.started = append(w.started[:0], targets...)
	w.counts.epochs.Starts++
	var first error
	for _, rank := range targets {
		t := w.target(rank)
		t.begun = true
		if free {
			continue
		}
		err := w.awaitPost(t)
		if first == nil {
			first = err
		}
	}
	if first != nil {
		for _, rank := range targets { // those that are there wait for it
			_ = w.tellHome(rank, sayComplete)
		}
		w.stop()
	}
	return first
}

// tellHome sends a word to a rank itself, whichever process serves its memory.
func (w *Window) tellHome(rank, what int32) error {
	t := w.target(rank)
	if t.client == 0 {
		return w.word(rank, what, 0)
	}
	a := p2p.Active{Context: w.context, What: what}
	if rank == w.me {
		return w.sendSelf(t, &a)
	}
	return w.deliver(t.home, &a)
}

// awaitPost waits until a target has posted.
func (w *Window) awaitPost(t *target) error {
	since := w.counts.waiting()
	for t.posts == 0 {
		if err := w.in.Trouble(w.context, t.home); err != nil {
			return err
		}
		w.in.Progress()
	}
	w.counts.waited(t, since)
	t.posts--
	return nil
}

// stop ends the access epoch of Start.
func (w *Window) stop() {
	for _, rank := range w.started {
		w.target(rank).begun = false
	}
	w.access, w.busy = none, false
}

// Complete ends the access epoch of Start. The operations are complete here; at the
// targets they are when their Wait returns.
func (w *Window) Complete() error {
	if w.access != starts {
		return wrong(-1, "this is %s, not the one of Start", where[w.access])
	}
	var first error
	for _, rank := range w.started {
		t := w.target(rank)
		if t.client != 0 || !t.alone() { // what a ghost has done a word to the target does not cover
			first = join(first, w.ping(rank, t))
			for i := range t.beside() {
				first = join(first, w.ping(i, w.target(i)))
			}
			continue
		}
		err := w.await(rank, t, gets)
		t.dirty = false // the word covers all before it, and the target waits for it, whatever became of them
		first = join(first, join(err, w.word(rank, sayComplete, 0)))
	}
	first = join(first, w.settleAll())
	for _, rank := range w.started {
		if t := w.target(rank); t.client != 0 || !t.alone() {
			first = join(first, w.tellHome(rank, sayComplete))
		}
	}
	w.stop()
	return first
}

// Wait ends the exposure epoch of Post when all origins have ended their access epochs.
func (w *Window) Wait() error {
	if !w.posted {
		return wrong(-1, "there is no exposure epoch: call Post before")
	}
	var first error
	for _, rank := range w.exposed {
		t := w.target(rank)
		since := w.counts.waiting()
		for t.ends == 0 {
			if err := w.in.Trouble(w.context, t.home); err != nil {
				first = err
				t.ends++
				break
			}
			w.in.Progress()
		}
		w.counts.waited(t, since)
		t.ends--
	}
	w.posted = false
	return first
}

// Test is Wait that does not wait, and reports whether the epoch has ended.
func (w *Window) Test() (bool, error) {
	if !w.posted {
		return false, wrong(-1, "there is no exposure epoch: call Post before")
	}
	w.in.Step()
	for _, rank := range w.exposed {
		if t := w.target(rank); t.ends == 0 && w.in.Trouble(w.context, t.home) == nil {
			w.in.Flush()
			return false, nil
		}
	}
	return true, w.Wait()
}

// Idle says whether no epoch is open, so that the window may be freed.
func (w *Window) Idle() error {
	switch {
	case w.posted:
		return wrong(-1, "an exposure epoch of Post has not ended: call Wait")
	case w.access == none, w.access == fenced && !w.busy:
		return nil
	}
	return wrong(-1, "%s has not ended", where[w.access])
}
