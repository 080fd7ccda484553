package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi"
)

// Overlap is mpi_overlap: an origin operates on the window of a target that computes for a
// while between two calls. The origin waits for what is not done while the target computes
// (Si, Peña, Hammond, Balaji, Takagi, Ishikawa: Casper, IPDPS 2015).
type Overlap struct {
	*Messages
	win      *mpi.Win
	memory   []byte // of this rank
	op       func() error
	fences   bool
	messages bool // in place of operations
	receives bool
	both     bool // the origin computes, too
	clock    mono.Real
}

// OverlapOps returns what --op of mpi_overlap may be: an Accumulate, a Put, a Get, an
// Accumulate on every other word, many Accumulates between two fences, a receive of what the
// target sends from its window before it computes, a send of what it receives there, or what the origin waits
// for such a message behind as much computing, when it has posted a receive into its own window before.
func OverlapOps() []string { return append(OverlapPeers(), "both") }

// OverlapPeers returns those that other libraries do, too.
func OverlapPeers() []string { return []string{"acc", "put", "get", "vector", "fence", "recv", "send"} }

// overlapWord is what the bytes of an operation are a multiple of.
const overlapWord = 8

// OverlapWindow is how many operations there are between two fences.
const OverlapWindow = 64

// Overlap makes a window for operations on size bytes. All ranks of the world call it.
func (m *Messages) Overlap(op string, size int) (*Overlap, error) {
	o := &Overlap{Messages: m, fences: op == "fence", both: op == "both"}
	o.receives = op == "recv" || o.both
	o.messages = op == "send" || o.receives
	words := mem.ScalarsOf[int64](m.Out[:size])
	there := mpi.At{Rank: m.Peer}
	switch op {
	case "acc", "fence":
		o.op = func() error { return mpi.Accumulate(o.win, words, m.Peer, 0, mpi.OpSum) }
	case "recv", "send", "both":
	case "put":
		o.op = func() error { return o.win.Put(mpi.Slice(words), there) }
	case "get":
		into := mem.ScalarsOf[int64](m.In[:size])
		o.op = func() error { return o.win.Get(mpi.Slice(into), there) }
	case "vector":
		every, err := mpi.TypeVector(len(words), 1, 2, mpi.TypeInt64)
		if err = errors.Join(err, every.Commit()); err != nil {
			return nil, err
		}
		there.Type, there.Count = every, 1
		o.op = func() error { return o.win.Accumulate(mpi.Slice(words), there, mpi.OpSum) }
	default:
		return nil, fmt.Errorf("there is no operation %q", op)
	}
	var all []int64
	var err error
	o.win, all, err = mpi.WinAllocate[int64](m.World, 2*len(words), nil)
	if err == nil {
		o.memory = mem.BytesOf(all)[:size]
	}
	return o, err
}

// End gives the window back. All ranks of the world call it.
func (o *Overlap) End() error { return o.win.Free() }

// Origin goes through an epoch, and returns how long it took: lock_all, an operation and
// flush, or operations and the fence that ends them, or a message.
func (o *Overlap) Origin(computes mono.Duration) (mono.Duration, error) {
	if o.messages {
		err := o.World.Barrier()
		if err != nil {
			return 0, err
		}
		if o.both {
			return o.posted(mpi.Irecv[byte], computes)
		}
		start := o.clock.Now()
		if o.receives {
			_, err = mpi.Recv(o.World, o.In[:len(o.memory)], o.Peer, mpiTag)
		} else {
			err = mpi.Send(o.World, o.Out[:len(o.memory)], o.Peer, mpiTag)
		}
		return o.clock.Now().Sub(start), err
	}
	if o.fences {
		if err := o.win.Fence(mpi.ModeNoPrecede); err != nil {
			return 0, err
		}
		start := o.clock.Now()
		for range OverlapWindow {
			if err := o.op(); err != nil {
				return 0, err
			}
		}
		err := o.win.Fence(mpi.ModeNoSucceed)
		return o.clock.Now().Sub(start), err
	}
	start := o.clock.Now()
	if err := o.win.LockAll(0); err != nil {
		return 0, err
	}
	if err := o.op(); err != nil {
		return 0, err
	}
	err := o.win.Flush(o.Peer)
	took := o.clock.Now().Sub(start)
	if err != nil {
		return 0, err
	}
	return took, o.win.UnlockAll()
}

// Target is the other end of n epochs: it computes for a while between two calls.
func (o *Overlap) Target(computes mono.Duration, n int) error {
	if o.messages {
		return o.overlapped(computes, n)
	}
	if !o.fences {
		for {
			compute(o.clock, computes)
			_, done, err := o.World.Iprobe(o.Peer, mpiTag)
			if err != nil {
				return err
			}
			if done {
				return o.Serve()
			}
		}
	}
	for range n {
		if err := o.win.Fence(mpi.ModeNoPrecede); err != nil {
			return err
		}
		compute(o.clock, computes)
		if err := o.win.Fence(mpi.ModeNoSucceed); err != nil {
			return err
		}
	}
	return o.Serve()
}

// overlapped is Target of messages.
func (o *Overlap) overlapped(computes mono.Duration, n int) error {
	for range n {
		if err := o.World.Barrier(); err != nil {
			return err
		}
		start := mpi.Irecv[byte]
		if o.receives {
			start = mpi.Isend[byte]
		}
		if _, err := o.posted(start, computes); err != nil {
			return err
		}
	}
	return o.Serve()
}

// posted starts a message from the window, or into it, computes, and returns how long the end takes behind that.
func (o *Overlap) posted(start func(*mpi.Comm, []byte, int, int) (mpi.Request, error), computes mono.Duration) (mono.Duration, error) {
	r, err := start(o.World, o.memory, o.Peer, mpiTag)
	if err != nil {
		return 0, err
	}
	compute(o.clock, computes)
	behind := o.clock.Now()
	_, err = r.Wait()
	return o.clock.Now().Sub(behind), err
}

// OverlapMost is the longest that a target computes, in microseconds.
const OverlapMost = 1_000_000

// ParseCompute reads for how long targets compute, in microseconds: "0,10,100".
func ParseCompute(list string) ([]int, error) {
	return ParseInts(list, func(n int) bool { return n >= 0 && n <= OverlapMost },
		fmt.Sprintf("microseconds up to %d: write for how long the target computes, as in 0,10,100", OverlapMost))
}

// CheckOverlapSize judges the size of an operation of mpi_overlap.
func CheckOverlapSize(n int) error {
	if n < overlapWord || n%overlapWord != 0 {
		return usagef("size %d: mpi_overlap accumulates words of %d bytes", n, overlapWord)
	}
	return nil
}

// ParseOverlapOps reads operations of mpi_overlap: "acc,put".
func ParseOverlapOps(list string) ([]string, error) {
	ops := strings.Split(list, ",")
	for _, op := range ops {
		if !slices.Contains(OverlapOps(), op) {
			return nil, usagef("there is no operation %q; those of mpi_overlap are %s", op, strings.Join(OverlapOps(), ", "))
		}
	}
	return ops, nil
}
