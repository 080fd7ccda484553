package shm

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
)

// newLanes makes the ends of n neighbours that know one another; rank i is
// number i.
func newLanes(t testing.TB, n int, c LanesConfig) []*Lanes {
	t.Helper()
	ends := make([]*Lanes, n)
	for i := range ends {
		c.Rank = i
		l, err := OpenLanes(c)
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = l
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for i, l := range ends {
		for k, peer := range ends {
			if k == i {
				continue
			}
			if _, err := l.Add(k, peer.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return ends
}

// put puts a message, and lets both ends make progress until that works.
func put(t testing.TB, from, to *Lanes, head, data []byte) {
	t.Helper()
	n := from.byRank[to.cfg.Rank]
	for !n.Put(head, data) {
		if n.Err() != nil {
			t.Fatal(n.Err())
		}
		if who, m := from.Next(); m != nil {
			t.Fatalf("a message of %d bytes from rank %d", len(m), who.Rank())
		}
		runtime.Gosched()
	}
}

// next waits for a message.
func next(l *Lanes) (int, []byte) {
	for {
		if from, b := l.Next(); b != nil {
			return from.Rank(), b
		}
		runtime.Gosched()
	}
}

// TestLane_order moves messages of all lengths many times around the ring.
func TestLane_order(t *testing.T) {
	ends := newLanes(t, 2, LanesConfig{Ring: ringMin})
	tx, rx := ends[0], ends[1]
	out := tx.byRank[1]
	data := make([]byte, tx.MaxMessage())
	put(t, tx, rx, nil, nil)
	next(rx)
	rx.Release()
	sent, read, full := 0, 0, 0
	size := func(i int) int { return i * i * 37 % (tx.MaxMessage() - 8 + 1) }
	for sent < 20000 {
		n := size(sent)
		for i := range data[:n] {
			data[i] = byte(sent + i)
		}
		if out.Put(binary.BigEndian.AppendUint64(nil, uint64(sent)), data[:n]) {
			sent++
			continue
		}
		full++
		for {
			from, b := rx.Next()
			if b == nil {
				break
			}
			if from.Rank() != 0 || len(b) != 8+size(read) || binary.BigEndian.Uint64(b) != uint64(read) {
				t.Fatalf("message %d of rank %d has %d bytes, want %d", read, from.Rank(), len(b), 8+size(read))
			}
			for i, x := range b[8:] {
				if x != byte(read+i) {
					t.Fatalf("message %d differs at %d", read, i)
				}
			}
			rx.Release()
			read++
		}
		if read != sent {
			t.Fatalf("read %d messages of %d", read, sent)
		}
	}
	if full < 100 {
		t.Errorf("the lane was full %d times only", full)
	}
}

// TestLane_gone closes an end: what it has put is read, then its loss is told,
// once.
func TestLane_gone(t *testing.T) {
	ends := newLanes(t, 3, LanesConfig{})
	for i := range byte(3) {
		put(t, ends[0], ends[1], []byte{i}, nil)
	}
	if err := ends[0].Close(); err != nil {
		t.Fatal(err)
	}
	for i := range byte(3) {
		if n := ends[1].Lost(); n != nil {
			t.Fatalf("rank %d is lost before message %d is read", n.Rank(), i)
		}
		if from, b := next(ends[1]); from != 0 || b[0] != i {
			t.Fatalf("message %v from rank %d", b, from)
		}
		ends[1].Release()
	}
	lost := ends[1].Lost()
	for ; lost == nil; lost = ends[1].Lost() {
		ends[1].Next()
		runtime.Gosched()
	}
	if lost.Rank() != 0 || !errors.Is(lost.Err(), ErrGone) || ends[1].Lost() != nil {
		t.Errorf("lost rank %d: %v", lost.Rank(), lost.Err())
	}
	// Rank 2 had no lane to it, and finds out when it wants one.
	if n := ends[2].byRank[0]; n.Put(nil, nil) || ends[2].Lost() != n {
		t.Errorf("a message was put to one that is gone, or its loss not told: %v", n.Err())
	}
}

func TestLane_pull(t *testing.T) {
	ends := newLanes(t, 2, LanesConfig{})
	put(t, ends[0], ends[1], nil, nil)
	if !ends[0].byRank[1].Pulls() {
		t.Skip("process_vm_readv is not allowed here")
	}
	next(ends[1])
	ends[1].Release()
}
