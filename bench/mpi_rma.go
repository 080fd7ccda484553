package bench

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/mpi"
)

// OneSided are the loops of tests of one-sided MPI, as osu_put_latency and its like have
// them with lock_all and flush: one rank operates on the window of the other one, which
// waits for a message meanwhile.
type OneSided struct {
	*Messages
	win    *mpi.Win
	op     func(o *OneSided, n int) error
	result int64
}

// oneSidedOps are the operations by the names of tests.
var oneSidedOps = map[string]func(o *OneSided, n int) error{
	"mpi_put_lat":  (*OneSided).put,
	"mpi_put_bw":   (*OneSided).put,
	"mpi_put_rate": (*OneSided).put,
	"mpi_get_lat":  (*OneSided).get,
	"mpi_get_bw":   (*OneSided).get,
	"mpi_acc_lat":  (*OneSided).accumulate,
	"mpi_fop_lat": func(o *OneSided, _ int) error {
		return mpi.FetchAndOp(o.win, 1, &o.result, o.Peer, 0, mpi.OpSum)
	},
	"mpi_cas_lat": func(o *OneSided, _ int) error {
		return mpi.CompareAndSwap(o.win, o.result+1, o.result, &o.result, o.Peer, 0)
	},
}

// OneSided makes a window for operations on up to largest bytes, and locks it. All ranks
// of the world call it.
func (m *Messages) OneSided(test string, largest int) (*OneSided, error) {
	o := &OneSided{Messages: m, op: oneSidedOps[test]}
	var err error
	if o.win, _, err = mpi.WinAllocate[int64](m.World, (largest+7)/8+1, nil); err != nil {
		return nil, err
	}
	return o, o.win.LockAll(mpi.ModeNoCheck) // the other end may be outside of MPI by now
}

// End gives the window back. All ranks of the world call it.
func (o *OneSided) End() error { return errors.Join(o.win.UnlockAll(), o.win.Free()) }

func (o *OneSided) put(n int) error { return mpi.Put(o.win, o.Out[:n], o.Peer, 0) }
func (o *OneSided) get(n int) error { return mpi.Get(o.win, o.In[:n], o.Peer, 0) }

func (o *OneSided) accumulate(n int) error {
	return mpi.Accumulate(o.win, o.Out[:n], o.Peer, 0, mpi.OpSum)
}

// Flushed does n operations, and waits for them after each window.
func (o *OneSided) Flushed(size, window, n int) error {
	for range n / window {
		for range window {
			if err := o.op(o, size); err != nil {
				return err
			}
		}
		if err := o.win.Flush(o.Peer); err != nil {
			return err
		}
	}
	return nil
}

// rmaBench does that between two ends.
type rmaBench struct {
	*mpiBench
	ops *OneSided
}

func openRMA(e *End) (Bench, error) {
	b, err := openMPI(e)
	if err != nil {
		return nil, err
	}
	r := &rmaBench{mpiBench: b.(*mpiBench)}
	if r.ops, err = r.OneSided(e.Spec.Test, slices.Max(e.Spec.Sizes)); err == nil {
		err = e.Pair.meet(r)
	}
	if err != nil {
		return nil, errors.Join(err, r.ctx.Close())
	}
	return r, nil
}

// Run implements Bench.
func (r *rmaBench) Run(b Burst, rec *Recorder) error {
	err := r.run(b, rec)
	r.failed = err != nil
	return err
}

func (r *rmaBench) run(b Burst, rec *Recorder) (err error) {
	switch {
	case r.Server:
		return r.ops.Serve()
	case r.Spec.kind().Latency():
		err = r.trips(b, rec, func(int) error { return r.ops.Flushed(b.Size, 1, 1) })
	default:
		err = r.stream(b, rec, func(n int) error { return r.ops.Flushed(b.Size, b.Window, n) })
	}
	if err != nil {
		return err
	}
	return r.ops.Done()
}

// Close implements Bench.
func (r *rmaBench) Close() error {
	if r.failed {
		return r.mpiBench.Close()
	}
	return errors.Join(r.ops.End(), r.mpiBench.Close())
}
