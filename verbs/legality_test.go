package verbs

import (
	"errors"
	"strings"
	"testing"
)

// expected is the table of ibv_post_send(3), written out: opcodes down, types
// across, and the flags that each takes (s Signaled, i Inline, o Solicited,
// f Fence, n Numbered, b Bulk and BulkNext, m More). A dash means that the opcode cannot be posted. Where it differs
// from the manual: SEND_WITH_IMM (iWARP has none), atomic SWAP and Write-Record
// (the manual has none), LOCAL_INV and BIND_MW on UD (a window can be reached
// by Write-Record).
const expected = `
SEND                  RD:siofm UD:siobm RC:siofm
SEND_WITH_INV         RD:siof  UD:-    RC:siof
SEND_WITH_IMM         RD:-     UD:-    RC:-
RDMA_WRITE            RD:sifm  UD:-    RC:sifm
RDMA_WRITE_WITH_IMM   RD:siof  UD:-    RC:siof
RDMA_READ             RD:sf    UD:-    RC:sf
ATOMIC_CMP_AND_SWP    RD:sf    UD:-    RC:sf
ATOMIC_FETCH_AND_ADD  RD:sf    UD:-    RC:sf
ATOMIC_SWAP           RD:sf    UD:-    RC:sf
RDMA_WRITE_RECORD     RD:sif   UD:sinb RC:-
LOCAL_INV             RD:sf    UD:s    RC:sf
BIND_MW               RD:sf    UD:s    RC:sf
`

var flagLetters = map[rune]SendFlags{'s': Signaled, 'i': Inline, 'o': Solicited, 'f': Fence, 'n': Numbered, 'b': Bulk | BulkNext, 'm': More}

// parseExpected returns the flags that each opcode takes on each type; opcodes
// that cannot be posted are not in it.
func parseExpected(t *testing.T) map[Opcode]map[QPType]SendFlags {
	t.Helper()
	out := map[Opcode]map[QPType]SendFlags{}
	for line := range strings.Lines(strings.TrimSpace(expected)) {
		f := strings.Fields(line)
		op := Opcode(1)
		for op.String() != f[0] {
			if op++; op == opcodeCount {
				t.Fatalf("no opcode is called %s", f[0])
			}
		}
		out[op] = map[QPType]SendFlags{}
		for i, typ := range []QPType{RD, UD, RC} {
			name, letters, _ := strings.Cut(f[1+i], ":")
			if name != typ.String() {
				t.Fatalf("%s: column %s", f[0], name)
			}
			if letters == "-" {
				continue
			}
			var flags SendFlags
			for _, l := range letters {
				flags |= flagLetters[l]
			}
			out[op][typ] = flags
		}
	}
	return out
}

// wellFormed returns a request with everything that any opcode may need.
func wellFormed(op Opcode, flags SendFlags) *SendWR {
	wr := &SendWR{Opcode: op, Flags: flags, RKey: 1, InvKey: 1, Bind: &Bind{}}
	switch op {
	case OpLocalInv, OpBindMW:
	default:
		wr.NumSGE, wr.SGL[0].Length = 1, 8
	}
	return wr
}

// All opcodes, types and flags.
func TestLegality_all(t *testing.T) {
	legal := parseExpected(t)
	for op := range 256 {
		for typ := range 256 {
			op, typ := Opcode(op), QPType(typ)
			takes, can := legal[op][typ]
			if err := typ.allows(op); (err == nil) != can {
				t.Fatalf("%v on %v: %v", op, typ, err)
			}
			if op > opcodeCount || typ > RC+1 {
				continue // nothing changes with the flags
			}
			for flags := range 256 {
				flags := SendFlags(flags)
				err := typ.checkLegal(wellFormed(op, flags))
				if want := can && flags&^takes == 0; (err == nil) != want {
					t.Fatalf("%v on %v with flags %04b: %v", op, typ, flags, err)
				}
				if e, ok := errors.AsType[*OpcodeError](err); err != nil && (!errors.Is(err, ErrInvalid) || !ok || e.Opcode != op || e.Type != typ || len(e.Why) < 10) {
					t.Fatalf("%v on %v with flags %04b: %v", op, typ, flags, err)
				}
			}
		}
	}
}

func TestLegality_details(t *testing.T) {
	for _, c := range []struct {
		name string
		op   Opcode
		typ  QPType
		edit func(*SendWR)
		want string // of the error; empty: none
	}{
		{"Send with immediate", OpSendWithImm, RD, nil, "RDMA_WRITE_WITH_IMM of length 0"},
		{"which can be posted", OpRDMAWriteWithImm, RD, func(w *SendWR) { w.NumSGE, w.RKey, w.SGL[0].Length = 0, 0, 0 }, ""},
		{"a Write on UD", OpRDMAWrite, UD, nil, "RDMA_WRITE_RECORD"},
		{"a Record on RC", OpRDMAWriteRecord, RC, nil, "RDMA_WRITE_WITH_IMM"},
		{"a completion", OpRecv, RD, nil, "of a completion"},
		{"inline Read", OpRDMARead, RD, func(w *SendWR) { w.Flags = Inline }, "data that goes out"},
		{"solicited Write", OpRDMAWrite, RD, func(w *SendWR) { w.Flags = Solicited }, "Solicited is for"},
		{"fence on UD", OpSend, UD, func(w *SendWR) { w.Flags = Fence }, "of which UD has none"},
		{"bulk on RD", OpSend, RD, func(w *SendWR) { w.Flags = Bulk }, "chooses the way itself"},
		{"more behind a Read", OpRDMARead, RD, func(w *SendWR) { w.Flags = More }, "More is for SEND"},
		{"Read without key", OpRDMARead, RD, func(w *SendWR) { w.RKey = 0 }, "RKey is missing"},
		{"Write without key", OpRDMAWrite, RD, func(w *SendWR) { w.RKey = 0 }, "RKey is missing"},
		{"inline Write without key", OpRDMAWrite, RD, func(w *SendWR) { w.Flags, w.InlineData, w.RKey = Inline, make([]byte, 1), 0 }, "RKey is missing"},
		{"Write of nothing without key", OpRDMAWrite, RD, func(w *SendWR) { w.RKey, w.SGL[0].Length = 0, 0 }, ""},
		{"Record without key", OpRDMAWriteRecord, UD, func(w *SendWR) { w.RKey = 0 }, "RKey is missing"},
		{"Send without key", OpSend, UD, func(w *SendWR) { w.RKey = 0 }, ""},
		{"atomic without key", OpAtomicSwap, RD, func(w *SendWR) { w.RKey = 0 }, "RKey is missing"},
		{"atomic, 7 bytes", OpAtomicFetchAndAdd, RD, func(w *SendWR) { w.SGL[0].Length = 7 }, "8 bytes"},
		{"atomic, 16 bytes", OpAtomicCmpAndSwp, RD, func(w *SendWR) { w.SGL[0].Length = 16 }, "8 bytes"},
		{"atomic, no list", OpAtomicSwap, RD, func(w *SendWR) { w.NumSGE, w.SGL[0].Length = 0, 0 }, "8 bytes"},
		{"atomic, elements without a number", OpAtomicSwap, RD, func(w *SendWR) { w.NumSGE = 0 }, "set NumSGE"},
		{"Send, elements without a number", OpSend, RD, func(w *SendWR) { w.NumSGE = 0 }, "set NumSGE"},
		{"on UD", OpSend, UD, func(w *SendWR) { w.NumSGE = 0 }, "set NumSGE"},
		{"Write, elements without a number", OpRDMAWrite, RC, func(w *SendWR) { w.NumSGE = 0 }, "set NumSGE"},
		{"Read, elements without a number", OpRDMARead, RC, func(w *SendWR) { w.NumSGE = 0 }, "set NumSGE"},
		{"inline, elements left from before", OpSend, RD, func(w *SendWR) { w.Flags, w.NumSGE = Inline, 0 }, ""},
		{"end, elements left from before", OpLocalInv, RD, func(w *SendWR) { w.NumSGE, w.SGL[0].Length = 0, 8 }, ""},
		{"atomic, twice 4 bytes", OpAtomicSwap, RD, func(w *SendWR) { w.NumSGE, w.SGL[0].Length, w.SGL[1].Length = 2, 4, 4 }, "one element"},
		{"invalidate what", OpSendWithInv, RD, func(w *SendWR) { w.InvKey = 0 }, "InvKey is missing"},
		{"end what", OpLocalInv, UD, func(w *SendWR) { w.InvKey = 0 }, "InvKey is missing"},
		{"end with data", OpLocalInv, RD, func(w *SendWR) { w.NumSGE = 1 }, "NumSGE must be 0"},
		{"bind what", OpBindMW, RD, func(w *SendWR) { w.Bind = nil }, "Bind is missing"},
		{"bind with data", OpBindMW, RC, func(w *SendWR) { w.NumSGE = 1 }, "NumSGE must be 0"},
		{"too many elements", OpSend, RD, func(w *SendWR) { w.NumSGE = MaxSGE + 1 }, "at most 4"},
		{"as many as possible", OpSend, RD, func(w *SendWR) { w.NumSGE = MaxSGE }, ""},
	} {
		wr := wellFormed(c.op, 0)
		if c.edit != nil {
			c.edit(wr)
		}
		err := c.typ.checkLegal(wr)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want a word on %q", c.name, err, c.want)
		}
	}
}

func TestAllocs_checkLegal(t *testing.T) {
	for _, op := range []Opcode{OpSend, OpRDMAWrite, OpRDMARead, OpAtomicFetchAndAdd, OpLocalInv, OpBindMW} {
		wr := wellFormed(op, Signaled)
		if n := testing.AllocsPerRun(100, func() {
			if RD.checkLegal(wr) != nil {
				t.Fatal("refused")
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", op, n)
		}
	}
}

func BenchmarkCheckLegal(b *testing.B) {
	wr := wellFormed(OpRDMAWrite, Signaled)
	for b.Loop() {
		if RD.checkLegal(wr) != nil {
			b.Fatal("refused")
		}
	}
}
