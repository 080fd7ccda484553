package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Scatter gives rank i the i-th of the equal parts of the vector send of the rank
// root (MPI_Scatter). Others may give nil as send. In place, which is nil as recv
// at the root, the root's part stays where it is.
func Scatter[T Scalar](c *Comm, send, recv []T, root int) error {
	if k := scatterFast(c, planOfScatter, send, recv, root); k != nil {
		return k.run()
	}
	return planScatter(c.beginCached("Scatter", planOfScatter), Slice(send), Slice(recv), root).run()
}

// Iscatter is Scatter that does not wait (MPI_Iscatter).
func Iscatter[T Scalar](c *Comm, send, recv []T, root int) (Request, error) {
	return planScatter(c.beginNonblocking("Iscatter"), Slice(send), Slice(recv), root).start()
}

// ScatterInit prepares Scatter to be started many times (MPI_Scatter_init).
func ScatterInit[T Scalar](c *Comm, send, recv []T, root int) (*Persistent, error) {
	return planScatter(c.beginPersistent("ScatterInit"), Slice(send), Slice(recv), root).keep()
}

func planScatter(k *call, send, recv Data, root int) *call {
	if !k.root(root) {
		return k
	}
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		if k.whole(send.count, c.size) {
			if b := k.read(send); k.ok() {
				k.inter().Exchange(&k.s, k.s.EvenParts(b, c.size), nil)
			}
		}
	case c.Inter():
		if b := k.write(recv); k.ok() {
			k.inter().Recv(&k.s, b, root)
		}
	case c.rank != root:
		k.signs(recv.size())
		if sameBlocks(k, planOfScatter, Data{}, recv, root) {
			return k
		}
		if b := k.write(recv); k.ok() {
			coll.Scatter(&k.s, k.team(), nil, b, root)
		}
	case k.whole(send.count, c.size):
		if k.signs(send.size() / c.size); sameBlocks(k, planOfScatter, send, recv, root) || !k.disjoint(send, recv) {
			return k
		}
		if all := k.read(send); k.ok() {
			if mine := k.scattered(recv, k.own(all)); k.ok() {
				coll.Scatter(&k.s, k.team(), all, mine, root)
			}
		}
	}
	return k
}

// scattered returns where the root of a scatter gets its own part: in place it
// stays where it is.
func (k *call) scattered(recv Data, part []byte) []byte {
	switch {
	case recv.none():
		return part
	case recv.size() != len(part):
		k.refuse(ErrCount, "room for %d bytes: this rank gets %d", recv.size(), len(part))
		return nil
	}
	return k.write(recv)
}

// Scatterv is Scatter of parts of different lengths (MPI_Scatterv). counts and
// displs count at the root only: rank i gets counts[i] elements of send from
// displs[i] on. displs nil: one part comes after the other.
func Scatterv[T Scalar](c *Comm, send []T, counts, displs []int, recv []T, root int) error {
	if k := scatterFast(c, planOfScatterv, send, recv, root, counts, displs); k != nil {
		return k.run()
	}
	return planScatterv(c.beginCached("Scatterv", planOfScatterv), Slice(send), counts, displs, Slice(recv), root).run()
}

// Iscatterv is Scatterv that does not wait (MPI_Iscatterv).
func Iscatterv[T Scalar](c *Comm, send []T, counts, displs []int, recv []T, root int) (Request, error) {
	return planScatterv(c.beginNonblocking("Iscatterv"), Slice(send), counts, displs, Slice(recv), root).start()
}

// ScattervInit prepares Scatterv to be started many times (MPI_Scatterv_init).
func ScattervInit[T Scalar](c *Comm, send []T, counts, displs []int, recv []T, root int) (*Persistent, error) {
	return planScatterv(c.beginPersistent("ScattervInit"), Slice(send), counts, displs, Slice(recv), root).keep()
}

func planScatterv(k *call, send Data, counts, displs []int, recv Data, root int) *call {
	if !k.root(root) {
		return k
	}
	switch c := k.c; {
	case root == ProcNull:
	case root == Root:
		if out := k.parts(k.blocks(send, counts, displs)); k.ok() {
			k.inter().Exchange(&k.s, out, nil)
		}
	case c.Inter():
		if b := k.write(recv); k.ok() {
			k.inter().Recv(&k.s, b, root)
		}
	case c.rank != root:
		if sameParts(k, planOfScatterv, Data{}, recv, root) {
			return k
		}
		if b := k.write(recv); k.ok() {
			coll.Scatterv(&k.s, k.team(), nil, b, root)
		}
	default:
		if sameParts(k, planOfScatterv, send, recv, root, counts, displs) {
			return k
		}
		parts := k.blocks(send, counts, displs)
		if out := k.each(parts, (*call).read); k.ok() && k.disjoint(parts[c.rank], recv) {
			if mine := k.scattered(recv, out[c.rank]); k.ok() {
				coll.Scatterv(&k.s, k.team(), out, mine, root)
			}
		}
	}
	return k
}
