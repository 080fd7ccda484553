package mpi

import "github.com/xwarp/xwarp/mpi/internal/dtype"

// plan is what a schedule was written from. Programs call the same collectives
// with the same buffers over and over, and for short vectors writing the
// schedule is a good part of what our own code costs.
type plan struct {
	kind     planKind
	commutes bool
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
