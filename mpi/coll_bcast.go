package mpi

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Barrier waits until all ranks of the communicator have called it, or all of
// the remote group of an intercommunicator (MPI_Barrier).
func (c *Comm) Barrier() error {
	if k := c.againFast(planOfBarrier, 0, 0, nil, 0, nil, 0); k != nil {
		return k.run()
	}
	return planBarrier(c.beginCached("Barrier", planOfBarrier)).run()
}

// Ibarrier is Barrier that does not wait (MPI_Ibarrier): its request is complete
// when all have called it.
func (c *Comm) Ibarrier() (Request, error) {
	return planBarrier(c.beginNonblocking("Ibarrier")).start()
}

// BarrierInit prepares Barrier to be started many times (MPI_Barrier_init).
func (c *Comm) BarrierInit() (*Persistent, error) {
	return planBarrier(c.beginPersistent("BarrierInit")).keep()
}

func planBarrier(k *call) *call {
	switch {
	case !k.ok() || k.same(plan{kind: planOfBarrier}):
	case k.c.Inter():
		k.inter().Barrier(&k.s)
	default:
		coll.Barrier(&k.s, k.team())
	}
	return k
}

// Bcast copies buf of the rank root into buf of all others (MPI_Bcast). All
// ranks call it with the same length and root. On an intercommunicator those of
// the other group than the root's get it; see [Root].
func Bcast[T Scalar](c *Comm, buf []T, root int) error {
	b := mem.BytesOf(buf)
	if k := c.againFast(planOfBcast, root, 0, first(b), len(b), nil, 0); k != nil {
		return k.run()
	}
	return planBcast(c.beginCached("Bcast", planOfBcast), Slice(buf), root).run()
}

// Ibcast is Bcast that does not wait (MPI_Ibcast).
func Ibcast[T Scalar](c *Comm, buf []T, root int) (Request, error) {
	return planBcast(c.beginNonblocking("Ibcast"), Slice(buf), root).start()
}

// BcastInit prepares Bcast to be started many times (MPI_Bcast_init).
func BcastInit[T Scalar](c *Comm, buf []T, root int) (*Persistent, error) {
	return planBcast(c.beginPersistent("BcastInit"), Slice(buf), root).keep()
}

func planBcast(k *call, buf Data, root int) *call {
	if !k.root(root) {
		return k
	}
	k.signs(buf.size())
	b, flat := buf.flat()
	if flat && k.same(plan{kind: planOfBcast, root: root, in: first(b), nin: len(b)}) {
		return k
	}
	if !flat {
		k.clear()
		switch {
		case root == ProcNull:
		case root == Root || !k.c.Inter() && root == k.c.rank:
			b = k.read(buf)
		default:
			b = k.write(buf)
		}
	}
	switch {
	case !k.ok():
	case !k.c.Inter():
		coll.Bcast(&k.s, k.team(), b, root)
	case root == Root:
		k.inter().SendBcast(&k.s, b)
	case root != ProcNull:
		k.inter().RecvBcast(&k.s, b, root)
	}
	return k
}
