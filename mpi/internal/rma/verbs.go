package rma

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// FetchOne and Swap of 8 bytes at a target through the network are atomics of verbs: its engine
// does them when they arrive, in the same steps in which the target does what messages say, and
// with instructions of the processor, as others do that have the memory mapped. Messages may
// still wait to be handled then, so that an atomic goes only where none from here is under way,
// for accumulates of one origin are done in their order.

// sums says of which kinds Sum is addition of 64 bits.
var sums = sumsOf64()

func sumsOf64() (all [dtype.Derived]bool) {
	for k := range dtype.Derived {
		t := k.Type()
		_, integer := dtype.Band.On(t)
		_, sum := dtype.Sum.On(t)
		all[k] = t.Size() == 8 && integer == nil && sum == nil
	}
	return all
}

// atomicOf returns the atomic that FetchOne is.
func atomicOf(o *Op, value []byte) (a p2p.Atomic, ok bool) {
	switch {
	case o.Op == dtype.NoOp: // it adds nothing
		a.Op = p2p.AtomicAdd
	case o.Op == dtype.Replace:
		a.Op, a.Operands.Swap = p2p.AtomicSwap, binary.NativeEndian.Uint64(value)
	case o.Op == dtype.Sum && sums[o.Kind]:
		a.Op, a.Operands.Add = p2p.AtomicAdd, binary.NativeEndian.Uint64(value)
	default:
		return a, false
	}
	return a, true
}

// fit reports whether an operation on n bytes may be an atomic of verbs now.
func (t *target) fit(o *Op, n int) bool {
	return n == 8 && t.Words && o.At%8 == 0 && t.reached && !t.dirty && t.fetches == 0
}

// byVerbs sends an atomic, whose old value goes to dst.
func byVerbs(w *flow, o *Op, a *p2p.Atomic, dst []byte) error {
	if err := w.sendGathered(0, 0); err != nil {
		return err
	}
	t := w.target(o.Target)
	w.listen(o.Target, t)
	i, r := w.record()
	r.cur, _ = plain(dst)
	r.bytes, r.target, r.tally = 8, o.Target, o.Tally.more()
	t.fetches++
	a.Key, a.Addr = t.Key, t.Addr+uint64(o.At)
	a.Context, a.What, a.ID = w.context, sayData|t.client<<clientShift, uint32(i)
	for !p2p.Atomics(w.in).Try(t.world, a) {
		if err := w.in.Trouble(w.context, t.world); err != nil {
			w.abandon(o.Target, err)
			return t.take()
		}
		w.in.Progress()
	}
	return nil
}
