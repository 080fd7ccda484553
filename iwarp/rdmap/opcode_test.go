package rdmap

import (
	"math"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/record"
)

func TestControl_roundTrip(t *testing.T) {
	for op := range Opcode(16) {
		if got, ok := ParseControl(Control(op)); !ok || got != op {
			t.Errorf("opcode %d came back as %d, %v", op, got, ok)
		}
		if got, ok := ParseControl(Control(op) | 0x30); !ok || got != op {
			t.Errorf("with reserved bits opcode %d came back as %d, %v", op, got, ok)
		}
	}
	for _, version := range []uint8{0, 2, 3} {
		if _, ok := ParseControl(version<<6 | uint8(Send)); ok {
			t.Errorf("RDMAP version %d was taken", version)
		}
	}
	if Control(Send) != 0x43 { // as in captures of Linux's siw driver
		t.Errorf("Control(Send) = %#x", Control(Send))
	}
}

// The table of operations, written a second time: RFC 5040, section 4.3,
// and RFC 7306, sections 5 and 6.
var wantOps = []struct {
	op        Opcode
	name      string
	tagged    bool
	qn        iwarp.QN
	single    bool
	min, max  int // max -1: any
	place     Placement
	deliver   Delivery
	solicited bool
	inv       bool
}{
	{Write, "Write", true, 0, false, 0, -1, PlaceRegion, DeliverNothing, false, false},
	{ReadRequest, "Read Request", false, 1, true, 28, 28, PlaceQueue, DeliverRequest, false, false},
	{ReadResponse, "Read Response", true, 0, false, 0, -1, PlaceRegion, DeliverResponse, false, false},
	{Send, "Send", false, 0, false, 0, -1, PlaceReceive, DeliverReceive, false, false},
	{SendInv, "Send with Invalidate", false, 0, false, 0, -1, PlaceReceive, DeliverReceive, false, true},
	{SendSE, "Send with SE", false, 0, false, 0, -1, PlaceReceive, DeliverReceive, true, false},
	{SendSEInv, "Send with SE and Invalidate", false, 0, false, 0, -1, PlaceReceive, DeliverReceive, true, true},
	{Terminate, "Terminate", false, 2, true, 4, 76, PlaceQueue, DeliverEnd, false, false},
	{Immediate, "Immediate Data", false, 0, true, 8, 8, PlaceQueue, DeliverReceive, false, false},
	{ImmediateSE, "Immediate Data with SE", false, 0, true, 8, 8, PlaceQueue, DeliverReceive, true, false},
	{AtomicRequest, "Atomic Request", false, 1, true, 52, 52, PlaceQueue, DeliverRequest, false, false},
	{AtomicResponse, "Atomic Response", false, 3, true, 12, 12, PlaceQueue, DeliverResponse, false, false},
	{WriteRecord, "Write-Record", true, 0, false, record.ChunkLen, -1, PlaceRegion, DeliverRecord, false, false},
}

func TestOpcode_table(t *testing.T) {
	for i, w := range wantOps {
		op := w.op
		if int(op) != i || !op.Known() || op.String() != w.name {
			t.Errorf("opcode %d is %v, want %d %s", op, op, i, w.name)
		}
		if op.Tagged() != w.tagged || op.QN() != w.qn || op.Single() != w.single {
			t.Errorf("%v: tagged %v, QN %d, single %v", op, op.Tagged(), op.QN(), op.Single())
		}
		if op.Placement() != w.place || op.Delivery() != w.deliver || op.Solicited() != w.solicited || op.Invalidates() != w.inv {
			t.Errorf("%v: placement %d, delivery %d, solicited %v, invalidates %v", op, op.Placement(), op.Delivery(), op.Solicited(), op.Invalidates())
		}
	}
	for op := len(wantOps); op < 256; op++ {
		if Opcode(op).Known() {
			t.Errorf("opcode %d is known", op)
		}
	}
	if got := Opcode(13).String(); got != "Opcode(13)" {
		t.Errorf("opcode 13 is called %q", got)
	}
}

// What goes where and when are two questions: nothing that is placed in a
// region takes a receive, whatever takes a receive travels on queue 0, and
// only what RDMAP reads itself is carried out or answered.
func TestOpcode_placementAndDelivery(t *testing.T) {
	for _, w := range wantOps {
		op := w.op
		if (op.Placement() == PlaceRegion) != op.Tagged() {
			t.Errorf("%v: tagged %v, placement %d", op, op.Tagged(), op.Placement())
		}
		if op.Tagged() {
			if op.Delivery() == DeliverReceive {
				t.Errorf("%v takes a receive", op)
			}
			continue
		}
		if (op.Delivery() == DeliverReceive) != (op.QN() == iwarp.QNSend) {
			t.Errorf("%v: QN %d, delivery %d", op, op.QN(), op.Delivery())
		}
		if (op.Placement() == PlaceReceive) == op.Single() {
			t.Errorf("%v: placement %d, single %v", op, op.Placement(), op.Single())
		}
		if op.Solicited() && op.Delivery() != DeliverReceive {
			t.Errorf("%v is solicited and completes nothing", op)
		}
	}
}

// valid returns the header of a segment of op that makes sense, and a length
// that does.
func valid(op Opcode) (ddp.Header, int) {
	w := wantOps[op]
	h := ddp.Header{Tagged: w.tagged, Last: true, ULP: Control(op)}
	if w.tagged {
		h.STag, h.TO = 0x100, 0x1000
	} else {
		h.QN, h.MSN = w.qn, 1
	}
	return h, w.min
}

// Check against the table: every opcode with every length from -1 to 100, both
// kinds of header, queues 0 to 4, L or not, offset or not.
func TestCheck_exhaustive(t *testing.T) {
	for ulp := range 256 {
		for n := -1; n <= 100; n++ {
			for bits := range 8 {
				for qn := range iwarp.QN(5) {
					h := ddp.Header{Tagged: bits&1 != 0, Last: bits&2 != 0, ULP: uint8(ulp)}
					if !h.Tagged {
						h.QN, h.MO = qn, uint32(bits&4)
					}
					op, cause, ok := Check(&h, n)
					want, wantOK := model(&h, n)
					if ok != wantOK || !ok && cause != want || op != Opcode(ulp&15) {
						t.Fatalf("Check(%+v, %d) = %v, %v, %v; want %v, %v", h, n, op, cause, ok, want, wantOK)
					}
				}
			}
		}
	}
}

// model is Check in the order in which the RFCs give their rules.
func model(h *ddp.Header, n int) (cause iwarp.Cause, ok bool) {
	if h.ULP>>6 != 1 {
		return InvalidVersion, false
	}
	op := int(h.ULP & 15)
	if op >= len(wantOps) || wantOps[op].tagged != h.Tagged {
		return UnexpectedOpcode, false
	}
	w := wantOps[op]
	tooShort := n < w.min
	if tooShort && !w.single {
		return OperationUnspecified, false
	}
	if h.Tagged {
		return 0, true
	}
	if h.QN != w.qn {
		return ddp.InvalidQN, false
	}
	if w.single {
		if h.MO != 0 {
			return ddp.InvalidMO, false
		}
		if n > w.max || !h.Last {
			return ddp.MessageTooLong, false
		}
	}
	if tooShort {
		return OperationUnspecified, false
	}
	return 0, true
}

func TestCheck_ends(t *testing.T) {
	tests := []struct {
		name  string
		op    Opcode
		alter func(h *ddp.Header)
		n     int
		cause iwarp.Cause
		ok    bool
	}{
		{"Write up to the last address", Write, func(h *ddp.Header) { h.TO = math.MaxUint64 - 7 }, 8, 0, true},
		{"Write past the last address", Write, func(h *ddp.Header) { h.TO = math.MaxUint64 - 7 }, 9, ddp.TOWrap, false},
		{"empty Write to the last address", Write, func(h *ddp.Header) { h.TO = math.MaxUint64 }, 0, 0, true},
		{"Read Response past the last address", ReadResponse, func(h *ddp.Header) { h.TO = math.MaxUint64 }, 2, ddp.TOWrap, false},
		{"the header of a chunk takes no address", WriteRecord, func(h *ddp.Header) { h.TO = math.MaxUint64 }, 13, 0, true},
		{"chunk past the last address", WriteRecord, func(h *ddp.Header) { h.TO = math.MaxUint64 }, 14, ddp.TOWrap, false},
		{"Send up to 4 GiB", Send, func(h *ddp.Header) { h.MO = math.MaxUint32 }, 1, 0, true},
		{"Send past 4 GiB", Send, func(h *ddp.Header) { h.MO = math.MaxUint32 }, 2, ddp.InvalidMO, false},
		{"unfinished Send", SendSE, func(h *ddp.Header) { h.Last = false }, 0, 0, true},
		{"reserved bits", Send, func(h *ddp.Header) { h.ULP |= 0x30 }, 5, 0, true},
	}
	for _, tt := range tests {
		h, _ := valid(tt.op)
		tt.alter(&h)
		op, cause, ok := Check(&h, tt.n)
		if op != tt.op || ok != tt.ok || !ok && cause != tt.cause {
			t.Errorf("%s: %v, %v, %v", tt.name, op, cause, ok)
		}
	}
}

func TestAllocs_check(t *testing.T) {
	h, n := valid(AtomicRequest)
	if a := testing.AllocsPerRun(100, func() {
		if op, _, ok := Check(&h, n); !ok || op.Delivery() != DeliverRequest {
			t.Fatal("refused")
		}
	}); a != 0 {
		t.Errorf("%v allocations per check", a)
	}
}

func BenchmarkCheck(b *testing.B) {
	var hs [2]ddp.Header
	hs[0], _ = valid(Write)
	hs[1], _ = valid(Send)
	for i := 0; b.Loop(); i++ {
		if _, _, ok := Check(&hs[i&1], 64); !ok {
			b.Fatal("refused")
		}
	}
}

// FuzzCheck: what Check lets through, the payload structs parse.
func FuzzCheck(f *testing.F) {
	for op := range Opcode(13) {
		h, n := valid(op)
		b := make([]byte, ddp.UntaggedLen+n)
		f.Add(b[:h.Put(b)+n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h ddp.Header
		if !h.Parse(b) {
			if c := ddp.BadHeader(b); !c.Known() {
				t.Fatalf("refused for %v", c)
			}
			return
		}
		p := b[h.Len():]
		op, cause, ok := Check(&h, len(p))
		if !ok {
			if !cause.Known() {
				t.Fatalf("refused for %v", cause)
			}
			return
		}
		if !parses(op, p) {
			t.Fatalf("%v with %d bytes was let through and does not parse", op, len(p))
		}
	})
}

func parses(op Opcode, p []byte) bool {
	switch op {
	case ReadRequest:
		return new(ReadReq).Parse(p)
	case AtomicRequest:
		return new(AtomicReq).Parse(p)
	case AtomicResponse:
		return new(AtomicResp).Parse(p)
	case Immediate, ImmediateSE:
		return new(Imm).Parse(p)
	case Terminate:
		return new(Term).Parse(p)
	case WriteRecord:
		return new(record.Chunk).Parse(p)
	}
	return true
}

func TestIsWholeSend(t *testing.T) {
	whole := ddp.Header{Last: true, ULP: Control(Send), ULP2: 7, MSN: 9}
	for _, c := range []struct {
		name string
		edit func(h *ddp.Header)
		want bool
	}{
		{"whole", func(*ddp.Header) {}, true},
		{"not the last", func(h *ddp.Header) { h.Last = false }, false},
		{"not the first", func(h *ddp.Header) { h.MO = 1 }, false},
		{"another queue", func(h *ddp.Header) { h.QN = 1 }, false},
		{"another version", func(h *ddp.Header) { h.ULP = uint8(Send) }, false},
		{"tagged", func(h *ddp.Header) { h.Tagged = true }, false},
		{"solicited", func(h *ddp.Header) { h.ULP = Control(SendSE) }, false},
		{"with invalidate", func(h *ddp.Header) { h.ULP = Control(SendInv) }, false},
		{"write", func(h *ddp.Header) { h.ULP = Control(Write) }, false},
	} {
		h := whole
		c.edit(&h)
		var b [ddp.UntaggedLen]byte
		h.Put(b[:])
		if got := IsWholeSend(b[:]); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if _, _, ok := Check(&h, 0); c.want && !ok {
			t.Errorf("%s: Check refuses it", c.name)
		}
	}
}
