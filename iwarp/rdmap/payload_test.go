package rdmap

import (
	"math/rand/v2"
	"testing"
)

// Every bit of every field goes out and comes back alone.
func TestPayload_bitWalk(t *testing.T) {
	var b [AtomicReqLen]byte
	for i := range 64 {
		for _, r := range []AtomicReq{
			{TO: 1 << i}, {Data: 1 << i}, {Mask: 1 << i}, {Compare: 1 << i}, {CompareMask: 1 << i},
			{ID: 1 << (i % 32)}, {STag: 1 << (i % 32)}, {Op: 1 << (i % 4)},
		} {
			var back AtomicReq
			if r.Put(b[:]); !back.Parse(b[:]) || back != r {
				t.Errorf("sent %+v, got %+v", r, back)
			}
		}
		for _, r := range []ReadReq{{SinkTO: 1 << i}, {SrcTO: 1 << i}, {SinkSTag: 1 << (i % 32)}, {Size: 1 << (i % 32)}, {SrcSTag: 1 << (i % 32)}} {
			var back ReadReq
			if r.Put(b[:]); !back.Parse(b[:]) || back != r {
				t.Errorf("sent %+v, got %+v", r, back)
			}
		}
		for _, r := range []AtomicResp{{Value: 1 << i}, {ID: 1 << (i % 32)}} {
			var back AtomicResp
			if r.Put(b[:]); !back.Parse(b[:]) || back != r {
				t.Errorf("sent %+v, got %+v", r, back)
			}
		}
		var back Imm
		if Imm(1 << i).Put(b[:]); !back.Parse(b[:]) || back != 1<<i {
			t.Errorf("sent %#x, got %#x", uint64(1)<<i, back)
		}
	}
}

func TestPayload_refusesShort(t *testing.T) {
	var b [AtomicReqLen]byte
	for n := range AtomicReqLen {
		if new(AtomicReq).Parse(b[:n]) ||
			n < ReadReqLen && new(ReadReq).Parse(b[:n]) ||
			n < AtomicRespLen && new(AtomicResp).Parse(b[:n]) ||
			n < ImmLen && new(Imm).Parse(b[:n]) {
			t.Errorf("parsed %d bytes", n)
		}
	}
}

// RFC 7306, section 5.2.1: the 28 bits above the operation are reserved.
func TestAtomicReq_ignoresReserved(t *testing.T) {
	b := make([]byte, AtomicReqLen)
	want := AtomicReq{Op: CmpSwap, ID: 1}
	want.Put(b)
	b[0], b[1], b[2], b[3] = 0xff, 0xff, 0xff, b[3]|0xf0
	var r AtomicReq
	if !r.Parse(b) || r != want {
		t.Errorf("got %+v", r)
	}
}

func TestAtomicReq_Check(t *testing.T) {
	for op := range AtomicOp(16) {
		for to := range uint64(17) {
			r := AtomicReq{Op: op, TO: to}
			cause, ok := r.Check()
			switch {
			case op > CmpSwap:
				if ok || cause != UnexpectedOpcode {
					t.Errorf("%+v: %v, %v", r, cause, ok)
				}
			case to%8 != 0:
				if ok || cause != StreamCatastrophic {
					t.Errorf("%+v: %v, %v", r, cause, ok)
				}
			case !ok:
				t.Errorf("%+v: refused: %v", r, cause)
			}
		}
	}
}

func TestAtomicReq_Apply(t *testing.T) {
	const all = ^uint64(0)
	tests := []struct {
		name      string
		r         AtomicReq
		old, want uint64
	}{
		{"add", AtomicReq{Op: FetchAdd, Data: 5}, 10, 15},
		{"add wraps", AtomicReq{Op: FetchAdd, Data: 2}, all, 1},
		{"subtract", AtomicReq{Op: FetchAdd, Data: all}, 10, 9},
		{"add to both halves", AtomicReq{Op: FetchAdd, Data: 1<<32 | 1, Mask: 1<<63 | 1<<31}, 7<<32 | 0xffffffff, 8 << 32},
		{"add to 64 bits alone", AtomicReq{Op: FetchAdd, Data: all, Mask: all}, 0x5555, ^uint64(0x5555)},
		{"swap", AtomicReq{Op: Swap, Data: 3, Mask: all}, 9, 3},
		{"swap the low byte", AtomicReq{Op: Swap, Data: all, Mask: 0xff}, 0x1200, 0x12ff},
		{"compare equal", AtomicReq{Op: CmpSwap, Data: 3, Mask: all, Compare: 9, CompareMask: all}, 9, 3},
		{"compare unequal", AtomicReq{Op: CmpSwap, Data: 3, Mask: all, Compare: 8, CompareMask: all}, 9, 9},
		{"compare the low byte, swap the high", AtomicReq{Op: CmpSwap, Data: all, Mask: 0xff << 56, Compare: 0x34, CompareMask: 0xff}, 0x1234, 0xff<<56 | 0x1234},
		{"compare nothing", AtomicReq{Op: CmpSwap, Data: 3, Mask: all, Compare: 8}, 9, 3},
	}
	for _, tt := range tests {
		if got := tt.r.Apply(tt.old); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// RFC 7306 defines FetchAdd bit by bit; so here, against Apply, which does it
// at once.
func TestAtomicReq_fetchAddByBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7306, 1))
	for range 10000 {
		r := AtomicReq{Op: FetchAdd, Data: rng.Uint64(), Mask: rng.Uint64() & rng.Uint64()}
		old := rng.Uint64()
		var want, carry uint64
		for bit := range 64 {
			sum := old>>bit&1 + r.Data>>bit&1 + carry
			want |= sum & 1 << bit
			carry = sum >> 1 &^ (r.Mask >> bit & 1)
		}
		if got := r.Apply(old); got != want {
			t.Fatalf("%#x + %#x with mask %#x = %#x, want %#x", old, r.Data, r.Mask, got, want)
		}
	}
}

func TestAllocs_payload(t *testing.T) {
	var b [AtomicReqLen]byte
	if n := testing.AllocsPerRun(100, func() {
		r := AtomicReq{Op: FetchAdd, TO: 8, Data: 1}
		r.Put(b[:])
		var back AtomicReq
		if !back.Parse(b[:]) || back.Apply(1) != 2 {
			t.Fatal("wrong")
		}
		rr := ReadReq{Size: 1}
		rr.Put(b[:])
		resp := AtomicResp{ID: 1}
		resp.Put(b[:])
		Imm(1).Put(b[:])
		if !rr.Parse(b[:]) || !resp.Parse(b[:]) {
			t.Fatal("wrong")
		}
	}); n != 0 {
		t.Errorf("%v allocations per payload", n)
	}
}
