package mpi

import (
	"github.com/xwarp/xwarp/mpi/internal/coll"
)

// Neighbourhood collectives (MPI 4.1, section 8.6) exchange vectors with the
// neighbours that the topology of the communicator names. Those of a grid are, for
// each dimension, the one with the lower coordinate and the one with the higher;
// over an edge there is none, and the part of the receive buffer stays as it is.

// neighbors are those that a rank receives from and sends to.
type neighbors struct {
	sources, dests []int
	receives       []int // order in which to begin receives; nil: as they come
}

// neighbors returns the neighbours of this rank, or refuses a communicator without
// topology.
func (k *call) neighbors() *neighbors {
	if !k.ok() {
		return nil
	}
	near := k.c.neighbors()
	if near == nil {
		k.refuse(ErrTopology, "the communicator has no topology: make one with CartCreate, GraphCreate or DistGraphCreateAdjacent")
	}
	return near
}

// neighbors returns the neighbours of this rank, or nil.
func (c *Comm) neighbors() *neighbors {
	near := c.coll.near
	if near != nil {
		return near
	}
	switch t := c.topo.(type) {
	case *cart:
		near = t.neighbors()
	case *graph:
		near = &neighbors{sources: t.sources, dests: t.dests}
	}
	c.coll.near = near
	return near
}

// NeighborCount returns how many neighbours this rank receives from and sends to in
// neighbourhood collectives: of a grid, two for each dimension.
func (c *Comm) NeighborCount() (sources, dests int, err error) {
	const op = "Comm.NeighborCount"
	if err := c.live(op); err != nil {
		return 0, 0, c.report(err)
	}
	near := c.neighbors()
	if near == nil {
		return 0, 0, c.report(fail(ErrTopology, op, "the communicator has no topology"))
	}
	return len(near.sources), len(near.dests), nil
}

// neighbors of a place in a grid. Where a dimension has one or two places and is
// round, both neighbours are the same rank, and what goes down must come in from
// above: so the receive from above is the first.
func (t *cart) neighbors() *neighbors {
	n := &neighbors{}
	for i := range t.dims {
		for _, step := range []int{-1, 1} {
			t.coords[i] += step
			r, _ := t.rank(t.coords)
			t.coords[i] -= step
			n.sources = append(n.sources, r)
		}
		n.receives = append(n.receives, 2*i+1, 2*i)
	}
	n.dests = n.sources
	return n
}

// neighbor plans an exchange with the neighbours: parts go to them, and what comes
// is put into room.
func (k *call) neighbor(near *neighbors, parts, room []Data) *call {
	return k.hear(near, k.parts(parts), room)
}

// hear is neighbor for what is blocks already. It changes room.
func (k *call) hear(near *neighbors, out []coll.Block, room []Data) *call {
	if !k.ok() {
		return k
	}
	for i, r := range near.sources {
		if r < 0 { // over the edge: nothing comes, and nothing is changed
			room[i] = Data{}
		}
	}
	if in := k.parts(room); k.ok() {
		coll.Neighbors(&k.s, k.team(), near.dests, out, near.sources, in, near.receives)
	}
	return k
}

// even cuts a vector into equal parts for n neighbours.
func (k *call) even(d Data, n int) []Data {
	switch {
	case !k.ok() || n == 0:
		return nil
	case d.count%n != 0:
		k.refuse(ErrCount, "%d elements are not the same number for each of %d neighbours", d.count, n)
		return nil
	}
	list := k.room(n)
	for i := range list {
		list[i] = d.part(i*(d.count/n), d.count/n)
	}
	return list
}

// everywhere gives the same bytes to n ranks.
func everywhere(s *coll.Schedule, b []byte, n int) []coll.Block {
	list := s.Parts(n)
	for i := range list {
		list[i] = coll.Flat(b)
	}
	return list
}

// NeighborAllgather sends send to all neighbours and puts what comes from the i-th
// one, which is as long, into the i-th part of recv (MPI_Neighbor_allgather).
func NeighborAllgather[T Scalar](c *Comm, send, recv []T) error {
	return planNeighborAllgather(c.beginBlocking("NeighborAllgather"), Slice(send), Slice(recv)).run()
}

// IneighborAllgather is NeighborAllgather that does not wait (MPI_Ineighbor_allgather).
func IneighborAllgather[T Scalar](c *Comm, send, recv []T) (Request, error) {
	return planNeighborAllgather(c.beginNonblocking("IneighborAllgather"), Slice(send), Slice(recv)).start()
}

// NeighborAllgatherInit prepares NeighborAllgather to be started many times
// (MPI_Neighbor_allgather_init).
func NeighborAllgatherInit[T Scalar](c *Comm, send, recv []T) (*Persistent, error) {
	return planNeighborAllgather(c.beginPersistent("NeighborAllgatherInit"), Slice(send), Slice(recv)).keep()
}

func planNeighborAllgather(k *call, send, recv Data) *call {
	near := k.neighbors()
	if near == nil {
		return k
	}
	room := k.even(recv, len(near.sources))
	return k.hear(near, everywhere(&k.s, k.read(send), len(near.dests)), room)
}

// NeighborAllgatherv is NeighborAllgather of vectors of different lengths
// (MPI_Neighbor_allgatherv): counts[i] elements of the i-th neighbour go to recv from
// displs[i] on. displs nil: one vector comes after the other.
func NeighborAllgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) error {
	return planNeighborAllgatherv(c.beginBlocking("NeighborAllgatherv"), Slice(send), Slice(recv), counts, displs).run()
}

// IneighborAllgatherv is NeighborAllgatherv that does not wait (MPI_Ineighbor_allgatherv).
func IneighborAllgatherv[T Scalar](c *Comm, send, recv []T, counts, displs []int) (Request, error) {
	return planNeighborAllgatherv(c.beginNonblocking("IneighborAllgatherv"), Slice(send), Slice(recv), counts, displs).start()
}

// NeighborAllgathervInit prepares NeighborAllgatherv to be started many times
// (MPI_Neighbor_allgatherv_init).
func NeighborAllgathervInit[T Scalar](c *Comm, send, recv []T, counts, displs []int) (*Persistent, error) {
	return planNeighborAllgatherv(c.beginPersistent("NeighborAllgathervInit"), Slice(send), Slice(recv), counts, displs).keep()
}

func planNeighborAllgatherv(k *call, send, recv Data, counts, displs []int) *call {
	near := k.neighbors()
	if near == nil {
		return k
	}
	room := k.blocksOf(len(near.sources), recv, counts, displs)
	return k.hear(near, everywhere(&k.s, k.read(send), len(near.dests)), room)
}

// NeighborAlltoall sends the i-th of the equal parts of send to the i-th neighbour
// and puts what comes from it into the i-th part of recv (MPI_Neighbor_alltoall).
func NeighborAlltoall[T Scalar](c *Comm, send, recv []T) error {
	return planNeighborAlltoall(c.beginBlocking("NeighborAlltoall"), Slice(send), Slice(recv)).run()
}

// IneighborAlltoall is NeighborAlltoall that does not wait (MPI_Ineighbor_alltoall).
func IneighborAlltoall[T Scalar](c *Comm, send, recv []T) (Request, error) {
	return planNeighborAlltoall(c.beginNonblocking("IneighborAlltoall"), Slice(send), Slice(recv)).start()
}

// NeighborAlltoallInit prepares NeighborAlltoall to be started many times
// (MPI_Neighbor_alltoall_init).
func NeighborAlltoallInit[T Scalar](c *Comm, send, recv []T) (*Persistent, error) {
	return planNeighborAlltoall(c.beginPersistent("NeighborAlltoallInit"), Slice(send), Slice(recv)).keep()
}

func planNeighborAlltoall(k *call, send, recv Data) *call {
	near := k.neighbors()
	if near == nil {
		return k
	}
	return k.neighbor(near, k.even(send, len(near.dests)), k.even(recv, len(near.sources)))
}

// NeighborAlltoallv is NeighborAlltoall with parts of different lengths
// (MPI_Neighbor_alltoallv), which are named as those of [Alltoallv].
func NeighborAlltoallv[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) error {
	return planNeighborAlltoallv(c.beginBlocking("NeighborAlltoallv"), Slice(send), sendCounts, sendDispls, Slice(recv), recvCounts, recvDispls).run()
}

// IneighborAlltoallv is NeighborAlltoallv that does not wait (MPI_Ineighbor_alltoallv).
func IneighborAlltoallv[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (Request, error) {
	return planNeighborAlltoallv(c.beginNonblocking("IneighborAlltoallv"), Slice(send), sendCounts, sendDispls, Slice(recv), recvCounts, recvDispls).start()
}

// NeighborAlltoallvInit prepares NeighborAlltoallv to be started many times
// (MPI_Neighbor_alltoallv_init).
func NeighborAlltoallvInit[T Scalar](c *Comm, send []T, sendCounts, sendDispls []int, recv []T, recvCounts, recvDispls []int) (*Persistent, error) {
	return planNeighborAlltoallv(c.beginPersistent("NeighborAlltoallvInit"), Slice(send), sendCounts, sendDispls, Slice(recv), recvCounts, recvDispls).keep()
}

func planNeighborAlltoallv(k *call, send Data, sendCounts, sendDispls []int, recv Data, recvCounts, recvDispls []int) *call {
	near := k.neighbors()
	if near == nil {
		return k
	}
	out := k.blocksOf(len(near.dests), send, sendCounts, sendDispls)
	return k.neighbor(near, out, k.blocksOf(len(near.sources), recv, recvCounts, recvDispls))
}

// NeighborAlltoallw is NeighborAlltoall with parts anywhere in memory
// (MPI_Neighbor_alltoallw).
func NeighborAlltoallw[T Scalar](c *Comm, send, recv [][]T) error {
	k := c.beginBlocking("NeighborAlltoallw")
	return planNeighborAlltoallw(k, slicesOf(k, send), slicesOf(k, recv)).run()
}

// IneighborAlltoallw is NeighborAlltoallw that does not wait (MPI_Ineighbor_alltoallw).
func IneighborAlltoallw[T Scalar](c *Comm, send, recv [][]T) (Request, error) {
	k := c.beginNonblocking("IneighborAlltoallw")
	return planNeighborAlltoallw(k, slicesOf(k, send), slicesOf(k, recv)).start()
}

// NeighborAlltoallwInit prepares NeighborAlltoallw to be started many times
// (MPI_Neighbor_alltoallw_init).
func NeighborAlltoallwInit[T Scalar](c *Comm, send, recv [][]T) (*Persistent, error) {
	k := c.beginPersistent("NeighborAlltoallwInit")
	return planNeighborAlltoallw(k, slicesOf(k, send), slicesOf(k, recv)).keep()
}

func planNeighborAlltoallw(k *call, send, recv []Data) *call {
	near := k.neighbors()
	switch {
	case near == nil:
	case len(send) != len(near.dests) || len(recv) != len(near.sources):
		k.refuse(ErrArg, "%d parts to send and room for %d: this rank speaks to %d neighbours and hears %d", len(send), len(recv), len(near.dests), len(near.sources))
	default:
		room := k.room(len(recv))
		copy(room, recv)
		k.neighbor(near, send, room)
	}
	return k
}
