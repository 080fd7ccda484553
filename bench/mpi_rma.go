package bench

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/mpi"
)

// rmaBench moves data with one-sided MPI, as osu_put_latency and its like do with
// lock_all and flush: the client operates on the window of the server, which waits for a
// message meanwhile.
type rmaBench struct {
	*mpiBench
	win    *mpi.Win
	op     func(r *rmaBench, n int) error
	result int64
}

// rmaOps are the operations by what the names of tests have in the middle.
var rmaOps = map[string]func(r *rmaBench, n int) error{
	"mpi_put_lat":  (*rmaBench).put,
	"mpi_put_bw":   (*rmaBench).put,
	"mpi_put_rate": (*rmaBench).put,
	"mpi_get_lat":  (*rmaBench).get,
	"mpi_get_bw":   (*rmaBench).get,
	"mpi_acc_lat":  (*rmaBench).accumulate,
	"mpi_fop_lat": func(r *rmaBench, _ int) error {
		return mpi.FetchAndOp(r.win, 1, &r.result, r.Peer, 0, mpi.OpSum)
	},
	"mpi_cas_lat": func(r *rmaBench, _ int) error {
		return mpi.CompareAndSwap(r.win, r.result+1, r.result, &r.result, r.Peer, 0)
	},
}

func openRMA(e *End) (Bench, error) {
	b, err := openMPI(e)
	if err != nil {
		return nil, err
	}
	r := &rmaBench{op: rmaOps[e.Spec.Test]}
	f, floats := b.(floating)
	if floats {
		b = f.Bench
	}
	r.mpiBench = b.(*mpiBench)
	r.win, _, err = mpi.WinAllocate[int64](r.World, (slices.Max(e.Spec.Sizes)+7)/8+1, nil)
	if err == nil {
		err = r.win.LockAll(mpi.ModeNoCheck) // the other end may be outside of MPI by now
	}
	b = r
	if floats {
		b = floating{r, f.alone}
	}
	if err == nil {
		err = e.Pair.meet(b)
	}
	if err != nil {
		return nil, errors.Join(err, r.ctx.Close())
	}
	return b, nil
}

func (r *rmaBench) put(n int) error { return r.win.Put(bytesOf(r.Out[:n]), mpi.At{Rank: r.Peer}) }
func (r *rmaBench) get(n int) error { return r.win.Get(bytesOf(r.In[:n]), mpi.At{Rank: r.Peer}) }

func bytesOf(b []byte) mpi.Data { return mpi.Slice(b) }

func (r *rmaBench) accumulate(n int) error {
	return mpi.Accumulate(r.win, r.Out[:n], r.Peer, 0, mpi.OpSum)
}

// Run implements Bench.
func (r *rmaBench) Run(b Burst, rec *Recorder) error {
	err := r.run(b, rec)
	r.failed = err != nil
	return err
}

func (r *rmaBench) run(b Burst, rec *Recorder) error {
	if r.Server {
		_, err := mpi.Recv(r.World, r.In[:0], r.Peer, mpiTag)
		return err
	}
	c, _ := Find(r.Spec.Test)
	var err error
	if c.Kind.latency() {
		err = r.trips(b, rec, func(int) error { return r.window(b.Size, 1) })
	} else {
		err = r.stream(b, rec, func(n int) error {
			for range n / b.Window {
				if err := r.window(b.Size, b.Window); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return mpi.Send(r.World, r.Out[:0], r.Peer, mpiTag)
}

// window does operations, and waits for them.
func (r *rmaBench) window(size, ops int) error {
	for range ops {
		if err := r.op(r, size); err != nil {
			return err
		}
	}
	return r.win.Flush(r.Peer)
}

// Close implements Bench.
func (r *rmaBench) Close() error {
	if r.failed {
		return r.mpiBench.Close()
	}
	return errors.Join(r.win.UnlockAll(), r.win.Free(), r.mpiBench.Close())
}
