package bench

import (
	"errors"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi"
)

// What the ranks of each experiment do.

func (t *Trial) alloc() error {
	t.mine = func() error {
		w, err := t.window(t.n / 8)
		if err != nil {
			return err
		}
		return w.Free()
	}
	t.theirs = t.mine
	return nil
}

func (t *Trial) fence() error     { return t.fences(t.n, 0) }
func (t *Trial) fenceBusy() error { return t.fences(t.n, 100*mono.Microsecond) }

// fences is an epoch of accumulates between two fences, while the target computes.
func (t *Trial) fences(operations int, computes mono.Duration) error {
	w, err := t.keep(1)
	one := []float64{1}
	between := func(do func() error) func() error {
		return func() error {
			if err := w.Fence(mpi.ModeNoPrecede); err != nil {
				return err
			}
			return errors.Join(do(), w.Fence(mpi.ModeNoSucceed))
		}
	}
	t.mine = between(func() error { return t.accumulate(w, one, operations) })
	t.theirs = between(func() error { compute(t.clock, computes); return nil })
	return err
}

// accumulate adds to the window of the peer.
func (t *Trial) accumulate(w *mpi.Win, data []float64, times int) error {
	for range times {
		if err := mpi.Accumulate(w, data, t.Peer, 0, mpi.OpSum); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trial) pscw() error     { return t.exposures(0) }
func (t *Trial) pscwBusy() error { return t.exposures(100 * mono.Microsecond) }

// exposures is an epoch of accumulates on one that the target exposes while it computes.
func (t *Trial) exposures(computes mono.Duration) error {
	w, err := t.keep(1)
	if err != nil {
		return err
	}
	peer, err := t.World.Group().Incl(t.Peer)
	one := []float64{1}
	t.mine = func() error {
		if err := w.Start(peer, 0); err != nil {
			return err
		}
		return errors.Join(t.accumulate(w, one, t.n), w.Complete())
	}
	t.theirs = func() error {
		if err := w.Post(peer, 0); err != nil {
			return err
		}
		compute(t.clock, computes)
		return w.Wait()
	}
	return err
}

// matrix is the order of those that are multiplied: a millisecond or so.
const matrix = 128

// dgemm has the rank that is timed multiply matrices while the other one adds to its memory.
func (t *Trial) dgemm() error {
	w, err := t.keep(1)
	a, b, c, one := make([]float64, matrix*matrix), make([]float64, matrix*matrix), make([]float64, matrix*matrix), []float64{1}
	t.mine = func() error {
		err := t.World.Barrier()
		for i := range matrix {
			for k := range matrix {
				row, from := c[i*matrix:][:matrix], b[k*matrix:][:matrix]
				for j, by := range from {
					row[j] += a[i*matrix+k] * by
				}
			}
		}
		return errors.Join(err, t.World.Barrier())
	}
	t.theirs = func() error {
		if err := errors.Join(t.World.Barrier(), w.LockAll(0)); err != nil {
			return err
		}
		return errors.Join(t.accumulate(w, one, t.n), w.UnlockAll(), t.World.Barrier())
	}
	return err
}

func (t *Trial) selfLock() error {
	w, err := t.keep(t.n)
	data, me, mode := make([]float64, t.n), t.World.Rank(), mpi.WinMode(0)
	if t.variant == "nocheck" {
		mode = mpi.ModeNoCheck
	}
	t.mine = func() error {
		if err := w.Lock(mpi.LockExclusive, me, mode); err != nil {
			return err
		}
		return errors.Join(mpi.Put(w, data, me, 0), w.Unlock(me))
	}
	return err
}

func (t *Trial) fenceMode() error {
	w, err := t.keep(1)
	t.mine = func() error { return w.Fence(0) }
	t.theirs = t.mine
	return err
}

func (t *Trial) infoMode() error {
	w, err := t.keep(1)
	info, bad := mpi.NewInfo("symmetric", "true")
	t.mine = func() error { return w.SetInfo(info) }
	t.theirs = t.mine
	return errors.Join(err, bad)
}

func (t *Trial) getMany() error { return t.many(2, t.n, "get") }
func (t *Trial) accMany() error { return t.many(2, t.n, "acc") }
func (t *Trial) getSize() error { return t.many(t.n, 1, "get") }
func (t *Trial) accSize() error { return t.many(t.n, 1, "acc") }

// opCost is an operation, which the variant names, with its flush, while the target is in MPI.
func (t *Trial) opCost() error {
	op := t.variant
	t.variant = ""
	do, _, err := t.corner(t.n, op)
	if err != nil {
		return err
	}
	err = t.wins[0].LockAll(0)
	t.mine = func() error { return do(1) }
	t.last = t.wins[0].UnlockAll
	return err
}

// many is some operations on a corner of a cube of the other rank, of x*2*2 doubles, each with its
// flush, 5 ms of computing, and one more operation. Both ranks do it.
func (t *Trial) many(x, operations int, op string) error {
	do, w, err := t.corner(x, op)
	t.mine = func() error {
		if err := w.LockAll(0); err != nil {
			return err
		}
		if err := do(operations); err != nil {
			return err
		}
		compute(t.clock, 5*mono.Millisecond)
		return errors.Join(do(1), w.UnlockAll())
	}
	t.theirs = t.mine
	return err
}

// corner returns what does an operation so many times, each with its flush, on x*2*2 doubles of a cube of the other rank.
func (t *Trial) corner(x int, op string) (do func(times int) error, w *mpi.Win, err error) {
	far := x + 8
	corner, err := mpi.TypeSubarray([]int{far, 8, 8}, []int{x, 2, 2}, []int{0, 0, 0}, mpi.OrderC, mpi.TypeDouble)
	if err = errors.Join(err, corner.Commit()); err != nil {
		return nil, nil, err
	}
	w, bad := t.keep(far * 8 * 8)
	data := mpi.Slice(make([]float64, 4*x))
	there := mpi.At{Rank: t.Peer, Type: corner, Count: 1}
	one := func() error { return w.Accumulate(data, there, mpi.OpSum) }
	switch op {
	case "get":
		one = func() error { return w.Get(data, there) }
	case "put":
		one = func() error { return w.Put(data, there) }
	}
	return func(times int) error {
		for range times {
			if err := errors.Join(one(), w.Flush(t.Peer)); err != nil {
				return err
			}
		}
		return nil
	}, w, errors.Join(err, bad)
}

func (t *Trial) getPhases() error { return t.phases(false) }
func (t *Trial) accPhases() error { return t.phases(true) }

// phases goes through a phase of computing and one of Gets, or accumulates, on each of two windows. Ranks call
// SetInfo with symmetric between the parts of a phase, and may say what they are about to do.
func (t *Trial) phases(adds bool) error {
	const parts = 20
	told := t.variant == "told"
	if told {
		t.variant = ""
	}
	var hints [2]*mpi.Info
	for i, mode := range []string{"on", "off"} {
		hints[i], _ = mpi.NewInfo("symmetric", "true") // both are keys
		if told {
			_ = hints[i].Set("async_config", mode)
		}
	}
	part := func(w *mpi.Win, gets int, computes mono.Duration) error {
		var data [8]float64
		if err := w.LockAll(0); err != nil {
			return err
		}
		for range gets {
			compute(t.clock, computes)
			err := error(nil)
			if adds {
				err = mpi.Accumulate(w, data[:], t.Peer, 0, mpi.OpSum)
			} else {
				err = mpi.Get(w, data[:], t.Peer, 0)
			}
			if err = errors.Join(err, w.Flush(t.Peer)); err != nil {
				return err
			}
		}
		return w.UnlockAll()
	}
	t.mine = func() error {
		for _, w := range t.wins {
			for range parts {
				if err := errors.Join(w.SetInfo(hints[0]), part(w, 3, 2*mono.Millisecond)); err != nil {
					return err
				}
			}
			for range parts {
				if err := errors.Join(w.SetInfo(hints[1]), part(w, t.n/parts, 0)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	t.theirs = t.mine
	_, err := t.keep(8)
	if err == nil {
		_, err = t.keep(8)
	}
	return err
}
