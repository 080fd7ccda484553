package verbs

import (
	"errors"
	"testing"
)

func recvOf(wrid uint64, s ...SGE) *RecvWR {
	wr := &RecvWR{WRID: wrid, NumSGE: uint8(len(s))}
	copy(wr.SGL[:], s)
	return wr
}

// Posting and taking in turns, past the end of the ring: oldest first, each
// with its own buffers.
func TestRecvQueue_order(t *testing.T) {
	c := newContext()
	pd := newPD(t, c)
	m := newMR(t, pd, 1000, LocalWrite)
	var r recvQueue
	r.init(6)
	posted, taken := uint64(0), uint64(0)
	for round := range 50 {
		for r.len() < 6 {
			i := int(posted % 90)
			ok(t, r.post(c, pd, recvOf(posted, []SGE{m.SGE(i, 1), m.SGE(i+1, 2), m.SGE(i+3, 3)}[:posted%4]...)))
			posted++
		}
		if err := r.post(c, pd, recvOf(0)); !errors.Is(err, ErrQueueFull) {
			t.Fatalf("a seventh receive: %v", err)
		}
		for range 1 + round%6 {
			e := r.take()
			n := taken % 4
			if e.wrid != taken || e.bufN != uint8(n) || e.total != []uint32{0, 1, 3, 6}[n] {
				t.Fatalf("receive %d is %+v", taken, e)
			}
			if at := taken % 90; n > 0 && &e.buf[0] != &m.Bytes()[at] || n > 2 && &e.more[1][0] != &m.Bytes()[at+3] {
				t.Fatalf("receive %d has the buffers of another", taken)
			}
			if n < 2 && e.more != nil {
				t.Fatalf("receive %d has more buffers", taken)
			}
			taken++
		}
	}
	r.clear()
	if r.len() != 0 || r.ring[0].buf != nil {
		t.Error("something is left")
	}
}

func TestRecvQueue_refuses(t *testing.T) {
	c := newContext()
	pd := newPD(t, c)
	m, readOnly := newMR(t, pd, 100, LocalWrite), newMR(t, pd, 100, 0)
	var r recvQueue
	r.init(2)
	for name, wr := range map[string]*RecvWR{
		"too many elements": {NumSGE: MaxSGE + 1},
		"read-only":         recvOf(0, readOnly.SGE(0, 1)),
		"outside":           recvOf(0, m.SGE(0, 10), m.SGE(99, 2)),
		"no key":            recvOf(0, SGE{}),
	} {
		if err := r.post(c, pd, wr); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.len() != 0 {
		t.Error("something was posted")
	}
	ok(t, r.post(c, pd, recvOf(1)))
	ok(t, r.post(c, pd, recvOf(2, m.SGE(0, 100))))
	if e := r.take(); e.wrid != 1 || e.total != 0 {
		t.Errorf("%+v", e)
	}
}

func TestAllocs_recvQueue(t *testing.T) {
	c := newContext()
	pd := newPD(t, c)
	m := newMR(t, pd, 100, LocalWrite)
	var r recvQueue
	r.init(4)
	wr := recvOf(1, m.SGE(0, 1), m.SGE(1, 2))
	if n := testing.AllocsPerRun(100, func() {
		ok(t, r.post(c, pd, wr))
		r.take()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
