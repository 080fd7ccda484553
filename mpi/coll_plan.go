package mpi

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
)

// plan is what a schedule was written from. Programs call the same collectives
// with the same buffers over and over, and for short vectors writing the
// schedule is a good part of what our own code costs.
type plan struct {
	kind     planKind
	commutes bool
	elem     int // of an operation over slices
	inPlace  bool
	root     int
	user     bool
	t        *dtype.Type
	in, out  *byte
	nin      int
	nout     int
}

type planKind uint8

const (
	planNone planKind = iota
	planOfBarrier
	planOfBcast
	planOfAllreduce
	planOfAllgather
	planOfAlltoall
	planOfGather
	planOfScatter
	planOfGatherv
	planOfScatterv
	planOfAllgatherv
	planOfAlltoallv
	planOfAlltoallw
	planOfScan
	planOfExscan
	planOfReduce
	planOfReduceScatter
	planOfReduceScatterBlock
	planKinds
)

// planLongest is up to how many bytes a schedule is left for the next call: as
// long as it is there it keeps the program's buffers alive.
const planLongest = 64 << 10

// same reports whether the schedule was written for the same as p. Else it is
// empty afterwards.
func (k *call) same(p plan) bool {
	if k.plan == p {
		k.s.Rewind()
		return true
	}
	k.clear()
	if p.nin <= planLongest && p.nout <= planLongest {
		k.plan = p
	}
	return false
}

// planNames are the names of the calls that againFast is for.
var planNames = [planKinds]string{
	planOfBarrier: "Barrier", planOfBcast: "Bcast", planOfAllreduce: "Allreduce", planOfAllgather: "Allgather", planOfAlltoall: "Alltoall",
	planOfScan: "Scan", planOfExscan: "Exscan", planOfReduce: "Reduce", planOfReduceScatter: "ReduceScatter",
	planOfReduceScatterBlock: "ReduceScatterBlock", planOfGather: "Gather", planOfScatter: "Scatter", planOfGatherv: "Gatherv",
	planOfScatterv: "Scatterv", planOfAllgatherv: "Allgatherv", planOfAlltoallv: "Alltoallv",
}

// againFast returns the call of a collective whose arguments are those of the call before, ready
// to be run, or nil. Of what is empty it cannot tell whether it is given at all.
//
// Data and plans are written word by word and copied in larger pieces. A processor does not pass such
// words on from stores that are under way: it waits for these, and for the one before them into a
// slot, for which the line comes from another core.
func (c *Comm) againFast(kind planKind, root, elem int, in *byte, nin int, out *byte, nout int) *call {
	if c == nil || c.freed || c.coming || c.p.check {
		return nil
	}
	k := c.coll.blocking[kind]
	if k == nil {
		return nil
	}
	p := &k.plan
	if p.kind != kind || p.root != root || p.elem != elem || p.in != in || p.nin != nin || p.out != out || p.nout != nout {
		return nil
	}
	k.op, k.err = planNames[kind], nil
	k.s.Rewind()
	return k
}

// blocksFast is againFast for blocks of as many elements for each rank, not in place.
func blocksFast[T Scalar](c *Comm, kind planKind, send, recv []T) *call {
	in, out := mem.BytesOf(send), mem.BytesOf(recv)
	k := c.againFast(kind, 0, 0, first(in), len(in), first(out), len(out))
	if k == nil || len(in) == 0 || len(recv)%c.size != 0 {
		return nil
	}
	return k
}

// gatherFast is againFast for what goes to the root: others have no recv. lists are counts and displacements there.
func gatherFast[T Scalar](c *Comm, kind planKind, send, recv []T, root int, lists ...[]int) *call {
	if c != nil && c.rank != root {
		recv, lists = nil, nil
	}
	return partsFast(c, kind, send, recv, root, len(send), lists...)
}

// scatterFast is againFast for what comes from the root: others have no send.
func scatterFast[T Scalar](c *Comm, kind planKind, send, recv []T, root int, lists ...[]int) *call {
	if c != nil && c.rank != root {
		send, lists = nil, nil
	}
	return partsFast(c, kind, send, recv, root, len(recv), lists...)
}

// partsFast is againFast for parts of the given counts and displacements. n is the length of what every rank gives.
func partsFast[T Scalar](c *Comm, kind planKind, send, recv []T, root, n int, lists ...[]int) *call {
	in, out := mem.BytesOf(send), mem.BytesOf(recv)
	k := c.againFast(kind, root, 0, first(in), len(in), first(out), len(out))
	if k == nil || n == 0 || len(lists) > 0 && k.plan.t != dtype.Of[T]() || !countsAre(k.counts, lists...) {
		return nil
	}
	return k
}

// sameBlocks is same for what goes from send to recv, if both lie side by side.
func sameBlocks(k *call, kind planKind, send, recv Data, root int) bool {
	in, flat := send.flat()
	out, room := recv.flat()
	if !flat || !room {
		k.clear()
		return false
	}
	return k.same(plan{kind: kind, root: root, inPlace: send.none() || recv.none(), in: first(in), nin: len(in), out: first(out), nout: len(out)})
}

// sameParts is same for what goes from send to recv, if both lie side by side and have elements of one datatype,
// in parts of the given counts and displacements.
func sameParts(k *call, kind planKind, send, recv Data, root int, lists ...[]int) bool {
	in, flat := send.flat()
	out, room := recv.flat()
	t := recv.t
	if t == nil {
		t = send.t
	}
	if !flat || !room || send.t != nil && send.t != t {
		k.clear()
		return false
	}
	if !counted(k, lists) {
		k.clear()
	}
	return k.same(plan{kind: kind, root: root, inPlace: send.none(), t: t, in: first(in), nin: len(in), out: first(out), nout: len(out)})
}

// sameSlices is same for slices anywhere in memory, one for each rank. Their addresses tell them apart, for as long as
// the schedule is there it keeps them alive.
func sameSlices[T Scalar](k *call, kind planKind, send, recv [][]T) bool {
	same, at, total := true, 0, 0
	for _, list := range [...][][]T{send, recv} {
		same = recount(k, at, len(list)) && same
		at++
		for _, s := range list {
			b := mem.BytesOf(s)
			same = recount(k, at, int(mem.AddressOf(b))) && same
			same = recount(k, at+1, len(b)) && same
			at, total = at+2, total+len(b)
		}
	}
	if k.counts = k.counts[:at]; !same {
		k.clear()
	}
	return k.same(plan{kind: kind, inPlace: send == nil, nin: total})
}

// counted reports whether the plan is of these counts and displacements, which it is from now on.
func counted(k *call, lists [][]int) bool {
	same, at := true, 0
	for _, list := range lists {
		n := len(list)
		if list == nil {
			n = -1
		}
		same = recount(k, at, n) && same
		at++
		for _, n := range list {
			same = recount(k, at, n) && same
			at++
		}
	}
	k.counts = k.counts[:at]
	return same
}

// countsAre reports whether the counts of a plan are these, as counted does.
func countsAre(have []int, lists ...[]int) bool {
	for _, list := range lists {
		n := len(list)
		if list == nil {
			n = -1
		}
		if len(have) <= len(list) || have[0] != n || !slices.Equal(have[1:1+len(list)], list) {
			return false
		}
		have = have[1+len(list):]
	}
	return len(have) == 0
}

// recount makes number at of the counts of a plan n, and reports whether it was that.
func recount(k *call, at, n int) (same bool) {
	if at == len(k.counts) {
		k.counts = append(k.counts, n)
		return false
	}
	same = k.counts[at] == n
	k.counts[at] = n
	return same
}

// sameReduction is same for a reduction of send to recv, if both lie side by side.
func sameReduction(k *call, kind planKind, send, recv Data, root int, r *reduction) bool {
	in, flat := send.flat()
	out, room := recv.flat()
	if !flat || !room {
		k.clear()
		return false
	}
	t := recv.t
	if t == nil {
		t = send.t
	}
	return k.same(plan{
		kind: kind, root: root, commutes: r.commutes, elem: r.elem, user: r.user(), t: t,
		in: first(in), nin: len(in), out: first(out), nout: len(out),
	})
}

func (k *call) clear() {
	k.s.Reset()
	k.forget()
	k.plan = plan{}
}

// first returns the address of b, to tell buffers apart.
func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}
