package conform

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/verbs"
)

// atomicCases are about the operations of RFC 7306, section 5.
var atomicCases = []verbsCase{
	{name: "atomics", on: onRel, run: atomics},
	{name: "atomicsContended", on: onRel, hosts: 3, run: atomicsContended},
	{name: "compareAndSwapContended", on: onRel, hosts: 3, run: swapsContended},
}

// putWord and word are 8 bytes as the hosts have them.
func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
func word(b []byte) uint64       { return binary.NativeEndian.Uint64(b) }

func atomics(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	target, old := b.region(64, verbs.LocalWrite|verbs.RemoteAtomic), a.region(24, verbs.LocalWrite)
	const ones = ^uint64(0)
	for i, c := range []struct {
		op     verbs.Opcode
		before uint64
		atomic verbs.Atomic
		after  uint64
	}{
		{verbs.OpAtomicFetchAndAdd, 5, verbs.Atomic{Add: 3}, 8},
		{verbs.OpAtomicFetchAndAdd, 5, verbs.Atomic{Add: ones}, 4},
		{verbs.OpAtomicFetchAndAdd, ones, verbs.Atomic{Add: 1}, 0},
		// A mask with the top bit of a field ends its carry there.
		{verbs.OpAtomicFetchAndAdd, 0xffffffff, verbs.Atomic{Add: 1, Mask: 1 << 31}, 0},
		{verbs.OpAtomicFetchAndAdd, 0xfffffffe_ffffffff, verbs.Atomic{Add: 1<<32 | 2, Mask: 1<<31 | 1<<63}, 0xffffffff_00000001},
		{verbs.OpAtomicFetchAndAdd, 0x00ff, verbs.Atomic{Add: 0x0101, Mask: 1 << 7}, 0x0100},
		{verbs.OpAtomicSwap, 7, verbs.Atomic{Swap: 0x0123456789abcdef}, 0x0123456789abcdef},
		{verbs.OpAtomicSwap, 0xff00, verbs.Atomic{Swap: 0x1234, Mask: 0x00ff}, 0xff34},
		{verbs.OpAtomicCmpAndSwp, 7, verbs.Atomic{Compare: 7, Swap: 9}, 9},
		{verbs.OpAtomicCmpAndSwp, 7, verbs.Atomic{Compare: 8, Swap: 9}, 7},
		{verbs.OpAtomicCmpAndSwp, 0xff07, verbs.Atomic{Compare: 7, CompareMask: 0xff, Swap: 0}, 0},
		{verbs.OpAtomicCmpAndSwp, 0xff07, verbs.Atomic{Compare: 7, CompareMask: 0xff, Swap: 9, Mask: 0x0f}, 0xff09},
		{verbs.OpAtomicCmpAndSwp, 0xff08, verbs.Atomic{Compare: 7, CompareMask: 0xff, Swap: 9, Mask: 0x0f}, 0xff08},
	} {
		off := 8 * (i % 8)
		clear(target.b)
		clear(old.b)
		putWord(target.b[off:], c.before)
		wr := at(a.wr(c.op, b, old.SGE(8, 8)), target, off)
		wr.Atomic = c.atomic
		a.do(wr)
		var want [8]byte
		putWord(want[:], c.after)
		target.is(off, want[:])
		putWord(want[:], c.before)
		old.is(8, want[:])
	}
	if b.to(a).Stats.RemoteAtomics != 13 || a.to(b).Stats.Atomics != 13 {
		r.t.Errorf("%d atomics are counted here, %d there; 13 were made", a.to(b).Stats.Atomics, b.to(a).Stats.RemoteAtomics)
	}
}

// atomicsContended lets two peers count in one word: each finds every value
// once.
func atomicsContended(r *rig) {
	const count = 200
	b := r.hosts[1]
	target := b.region(8, verbs.LocalWrite|verbs.RemoteAtomic)
	seen := map[uint64]bool{}
	type counter struct {
		h            *host
		old          *region
		posted, done int
	}
	counters := []*counter{{h: r.hosts[0]}, {h: r.hosts[2]}}
	for _, c := range counters {
		c.old = c.h.region(8*count, verbs.LocalWrite)
	}
	r.until(func() bool {
		for _, c := range counters {
			for c.posted < count && c.posted-c.done < 20 {
				wr := at(c.h.wr(verbs.OpAtomicFetchAndAdd, b, c.old.SGE(8*c.posted, 8)), target, 0)
				wr.Atomic.Add = 1
				c.h.post(wr)
				c.posted++
			}
			var wcs [8]verbs.WC
			for _, wc := range wcs[:c.h.scq.Poll(wcs[:])] {
				if wc.Status != verbs.Success {
					r.t.Fatalf("host %d: %+v", c.h.i, wc)
				}
				v := word(c.old.b[8*c.done:])
				if seen[v] || v >= 2*count {
					r.t.Fatalf("host %d: value %d twice, or too large", c.h.i, v)
				}
				seen[v] = true
				c.done++
			}
		}
		return counters[0].done+counters[1].done == 2*count
	})
	if v := word(target.b); v != 2*count {
		r.t.Errorf("counted to %d, want %d", v, 2*count)
	}
}

// swapsContended lets two peers increment a word by CmpAndSwp, again whenever
// the other was faster.
func swapsContended(r *rig) {
	const count = 60
	b := r.hosts[1]
	target := b.region(8, verbs.LocalWrite|verbs.RemoteAtomic)
	type counter struct {
		h     *host
		old   *region
		guess uint64
		won   int
		busy  bool
	}
	counters := []*counter{{h: r.hosts[0]}, {h: r.hosts[2]}}
	for _, c := range counters {
		c.old = c.h.region(8, verbs.LocalWrite)
	}
	r.until(func() bool {
		for _, c := range counters {
			if !c.busy && c.won < count {
				wr := at(c.h.wr(verbs.OpAtomicCmpAndSwp, b, c.old.SGE(0, 8)), target, 0)
				wr.Atomic.Compare, wr.Atomic.Swap = c.guess, c.guess+1
				c.h.post(wr)
				c.busy = true
			}
			var wc [1]verbs.WC
			if c.h.scq.Poll(wc[:]) == 0 {
				continue
			}
			if wc[0].Status != verbs.Success {
				r.t.Fatalf("host %d: %+v", c.h.i, wc[0])
			}
			c.busy = false
			if v := word(c.old.b); v == c.guess {
				c.won++
				c.guess++
			} else {
				c.guess = v
			}
		}
		return counters[0].won+counters[1].won == 2*count
	})
	if v := word(target.b); v != 2*count {
		r.t.Errorf("counted to %d, want %d", v, 2*count)
	}
}
