package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/verbs"
)

// atomicSize is what an atomic operation works on, in bytes.
const atomicSize = 8

// atomicTest counts a word of the other end up by one, with one atomic
// operation after the other, as ib_atomic_lat does. Each brings back the count
// before, which shows that all before it happened exactly once.
type atomicTest struct {
	*endpoint
	count uint64 // at the other end, once all posted operations are done
	old   []byte // where the count before arrives
}

func newAtomicTest(p *endpoint) (*atomicTest, error) {
	t := &atomicTest{endpoint: p, old: p.mr.Bytes()[:atomicSize]}
	switch p.Spec.Op {
	case "fetch_add":
		t.wr.Opcode, t.wr.Atomic.Add = verbs.OpAtomicFetchAndAdd, 1
	case "cmp_swap":
		t.wr.Opcode = verbs.OpAtomicCmpAndSwp
	case "swap":
		t.wr.Opcode = verbs.OpAtomicSwap
	default:
		return nil, usagef("there is no atomic operation %q", p.Spec.Op)
	}
	t.wr.NumSGE, t.wr.SGL[0] = 1, p.mr.SGE(0, atomicSize)
	t.remote(p.peer.Target)
	return t, nil
}

func (t *atomicTest) Run(b Burst, rec *Recorder) error {
	if t.Server {
		return t.attend()
	}
	return t.trips(b, rec, func(int) error {
		t.wr.Atomic.Compare, t.wr.Atomic.Swap = t.count, t.count+1 // ignored by fetch_add
		if err := t.post(true); err != nil {
			return err
		}
		if err := t.drain(); err != nil {
			return err
		}
		if old := binary.NativeEndian.Uint64(t.old); old != t.count {
			return fmt.Errorf("%v: the count was %d and should have been %d: an operation did not happen exactly once", t.wr.Opcode, old, t.count)
		}
		t.count++
		return nil
	})
}
