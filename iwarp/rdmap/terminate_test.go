package rdmap

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// segment returns a whole segment of op with a payload of n bytes.
func segment(op Opcode, n int) []byte {
	h, _ := valid(op)
	b := make([]byte, ddp.UntaggedLen+n)
	b = b[:h.Put(b)+n]
	switch op {
	case ReadRequest:
		(&ReadReq{SinkSTag: 1, SinkTO: 2, Size: 3, SrcSTag: 4, SrcTO: 5}).Put(b[h.Len():])
	case AtomicRequest:
		(&AtomicReq{Op: CmpSwap, ID: 1, STag: 2, TO: 8, Compare: 3, CompareMask: 4}).Put(b[h.Len():])
	}
	return b
}

func TestTerm_Blame(t *testing.T) {
	tests := []struct {
		name    string
		cause   iwarp.Cause
		seg     []byte
		hdr     bool // copies the DDP header
		req     bool // and that of the request
		wantLen int
	}{
		{"Write beyond its region", ddp.BaseBounds, segment(Write, 100), true, false, 20},
		{"Write without the right", AccessRights, segment(Write, 100), true, false, 20},
		{"Send without a receive", ddp.NoBuffer, segment(Send, 100), true, false, 24},
		{"Send with Invalidate", CannotInvalidate, segment(SendInv, 9), true, false, 24},
		{"Read of unknown memory", InvalidSTag, segment(ReadRequest, ReadReqLen), true, true, 52},
		{"Read of unknown memory, cut off", InvalidSTag, segment(ReadRequest, ReadReqLen)[:ddp.UntaggedLen+ReadReqLen-1], true, false, 24},
		{"Read with a wrong MSN is DDP's", ddp.MSNRange, segment(ReadRequest, ReadReqLen), true, false, 24},
		{"atomic of unknown memory", InvalidSTag, segment(AtomicRequest, AtomicReqLen), true, true, 76},
		{"unknown opcode", UnexpectedOpcode, []byte{0x41, 0x4f, 18: 0}, true, false, 24},
		{"RDMAP version", InvalidVersion, segment(Send, 9), false, false, 4},
		{"DDP version", ddp.TaggedVersion, []byte{0x82, 14: 0}, false, false, 4},
		{"local failure", LocalCatastrophic, segment(Send, 9), false, false, 4},
		{"DDP's local failure", ddp.LocalCatastrophic, segment(Send, 9), false, false, 4},
		{"lower layer", iwarp.LLPCRC, segment(Send, 9), false, false, 4},
		{"no segment", ddp.NoBuffer, nil, false, false, 4},
		{"segment shorter than its header", ddp.NoBuffer, segment(Send, 0)[:17], false, false, 4},
	}
	for _, tt := range tests {
		var sent, got Term
		sent.Blame(tt.cause, tt.seg, len(tt.seg))
		var b [TermMaxLen]byte
		n := sent.Put(b[:])
		if n != tt.wantLen || n != sent.Len() {
			t.Errorf("%s: %d bytes, Len %d, want %d", tt.name, n, sent.Len(), tt.wantLen)
			continue
		}
		if !got.Parse(b[:n]) || got != sent || got.Cause != tt.cause {
			t.Errorf("%s: % x came back as %+v", tt.name, b[:n], got)
		}
		if got.HasDDP != tt.hdr || got.HasLen != tt.hdr || got.HasRDMAP != tt.req {
			t.Errorf("%s: D %v, M %v, R %v", tt.name, got.HasDDP, got.HasLen, got.HasRDMAP)
		}
		var h, want ddp.Header
		if want.Parse(tt.seg); tt.hdr && (!got.Header(&h) || h != want || int(got.SegLen) != len(tt.seg)) {
			t.Errorf("%s: header %+v, length %d", tt.name, h, got.SegLen)
		} else if !tt.hdr && got.Header(&h) {
			t.Errorf("%s: has a header", tt.name)
		}
	}
}

func TestTerm_requests(t *testing.T) {
	var term Term
	var rr ReadReq
	var ar AtomicReq
	term.Blame(InvalidSTag, segment(ReadRequest, ReadReqLen), 46)
	if !term.ReadReq(&rr) || rr.Size != 3 || rr.SrcTO != 5 || term.AtomicReq(&ar) {
		t.Errorf("read request: %+v", rr)
	}
	term.Blame(InvalidSTag, segment(AtomicRequest, AtomicReqLen), 70)
	if !term.AtomicReq(&ar) || ar.Op != CmpSwap || ar.CompareMask != 4 || term.ReadReq(&rr) {
		t.Errorf("atomic request: %+v", ar)
	}
	// A tagged segment with the opcode of a request has no RDMAP header.
	term.Blame(UnexpectedOpcode, append([]byte{0xc1, Control(ReadRequest)}, make([]byte, 100)...), 102)
	if term.HasRDMAP || term.Len() != 20 {
		t.Errorf("tagged: %+v", term)
	}
}

func TestTerm_longSegment(t *testing.T) {
	var term Term
	term.Blame(ddp.BaseBounds, segment(Write, 0), 1<<20)
	if term.SegLen != 0xffff {
		t.Errorf("length %d", term.SegLen)
	}
}

// Whatever is cut off behind the control word, the cause remains.
func TestTerm_cutOff(t *testing.T) {
	var full Term
	full.Blame(InvalidSTag, segment(AtomicRequest, AtomicReqLen), 70)
	var b [TermMaxLen]byte
	full.Put(b[:])
	for n := range TermMaxLen + 1 {
		var got Term
		if ok := got.Parse(b[:n]); ok != (n >= TermMinLen) {
			t.Fatalf("%d bytes: %v", n, ok)
		}
		if n < TermMinLen {
			continue
		}
		if got.Cause != InvalidSTag || got.HasDDP != (n >= 24) || got.HasRDMAP != (n == TermMaxLen) {
			t.Errorf("%d bytes: %+v", n, got)
		}
	}
}

// The control words that siw sent to a tester (all without CRC), and how they
// are read: its bit fields are in the other order.
func TestTerm_siw(t *testing.T) {
	ddpHdr := []byte{0x00, 0x40, 0xc1, 0x40, 0x12, 0xb3, 0x0c, 0, 0, 0, 0x55, 0xc4, 0x5a, 0x90, 0xb0, 0}
	tests := []struct {
		word    []byte
		rest    []byte
		cause   iwarp.Cause
		swapped bool
	}{
		{[]byte{0x11, 0x00, 0x03, 0x00}, ddpHdr, ddp.InvalidSTag, true},
		{[]byte{0x11, 0x01, 0x03, 0x00}, ddpHdr, ddp.BaseBounds, true},
		{[]byte{0x21, 0x06, 0x00, 0x00}, nil, ddp.UntaggedVersion, true},
		{[]byte{0x11, 0x04, 0x00, 0x00}, nil, ddp.TaggedVersion, false}, // the same in both orders
		{[]byte{0x02, 0x02, 0x00, 0x00}, nil, iwarp.LLPCRC, true},
		// Ambiguous: read as the RFC has them.
		{[]byte{0x02, 0x06, 0x00, 0x00}, nil, UnexpectedOpcode, false},
		{[]byte{0x20, 0x05, 0x00, 0x00}, nil, iwarp.LLPCatastrophic, false},
	}
	for _, tt := range tests {
		b := append(tt.word, tt.rest...)
		var got Term
		if !got.Parse(b) || got.Cause != tt.cause || got.Swapped != tt.swapped || got.HasDDP != (tt.rest != nil) {
			t.Errorf("% x: %+v", tt.word, got)
		}
		out := make([]byte, TermMaxLen)
		if out = out[:got.Put(out)]; !bytes.Equal(out, b) {
			t.Errorf("% x went out as % x", b, out)
		}
	}
}

// What a bare control word means on a connection: siw's answer to an operation that
// it does not know (20 06), to too many Reads (20 07), and to a Reply that it cannot
// live with (02 06), beside what the RFCs have.
func TestTerm_stream(t *testing.T) {
	tests := []struct {
		word         []byte
		startup      iwarp.Cause
		operation    iwarp.Cause
		swapped      bool // at start-up
		swappedLater bool
	}{
		{[]byte{0x20, 0x06, 0, 0}, iwarp.LLPResources, UnexpectedOpcode, false, true},
		{[]byte{0x20, 0x07, 0, 0}, iwarp.LLPNoRTR, StreamCatastrophic, false, true},
		{[]byte{0x02, 0x06, 0, 0}, iwarp.LLPResources, UnexpectedOpcode, true, false},
		{[]byte{0x02, 0x07, 0, 0}, iwarp.LLPNoRTR, StreamCatastrophic, true, false},
		// The others mean the same all the time.
		{[]byte{0x02, 0x02, 0, 0}, iwarp.LLPCRC, iwarp.LLPCRC, true, true},
		{[]byte{0x02, 0x04, 0, 0}, iwarp.LLPStartup, iwarp.LLPStartup, true, true},
		{[]byte{0x20, 0x05, 0, 0}, iwarp.LLPCatastrophic, iwarp.LLPCatastrophic, false, false},
		{[]byte{0x02, 0x05, 0, 0}, InvalidVersion, InvalidVersion, false, false},
		{[]byte{0x20, 0x08, 0, 0}, GlobalCatastrophic, GlobalCatastrophic, true, true},
		{[]byte{0x12, 0x02, 0, 0}, ddp.NoBuffer, ddp.NoBuffer, false, false},
	}
	for _, tt := range tests {
		for _, startup := range []bool{true, false} {
			cause, swapped := tt.operation, tt.swappedLater
			if startup {
				cause, swapped = tt.startup, tt.swapped
			}
			var got Term
			if !got.ParseStream(tt.word, startup) || got.Cause != cause || got.Swapped != swapped {
				t.Errorf("% x, start-up %v: %+v, want %v", tt.word, startup, got, cause)
			}
			var b [TermMaxLen]byte
			if n := got.Put(b[:]); !bytes.Equal(b[:n], tt.word) {
				t.Errorf("% x went out as % x", tt.word, b[:n])
			}
		}
	}
	// With headers there is no doubt.
	var term, got Term
	term.Blame(UnexpectedOpcode, segment(Send, 9), 9)
	var b [TermMaxLen]byte
	n := term.Put(b[:])
	if !got.ParseStream(b[:n], true) || got != term {
		t.Errorf("%+v", got)
	}
	if got.ParseStream(b[:3], true) {
		t.Error("3 bytes are a Terminate")
	}
}

func TestSwap_isItsInverse(t *testing.T) {
	for bit := range 32 {
		w := uint32(1) << bit
		if kept := w & 0xffffe700; swap(swap(w)) != kept {
			t.Errorf("bit %d: %#08x, then %#08x", bit, swap(w), swap(swap(w)))
		}
	}
}

func TestAllocs_term(t *testing.T) {
	seg := segment(ReadRequest, ReadReqLen)
	var b [TermMaxLen]byte
	if n := testing.AllocsPerRun(100, func() {
		var sent, got Term
		sent.Blame(BaseBounds, seg, len(seg))
		if !got.Parse(b[:sent.Put(b[:])]) || got.Cause != BaseBounds {
			t.Fatal("wrong")
		}
	}); n != 0 {
		t.Errorf("%v allocations per Terminate", n)
	}
}

func FuzzTerm(f *testing.F) {
	for _, op := range []Opcode{Write, Send, ReadRequest, AtomicRequest} {
		var term Term
		term.Blame(AccessRights, segment(op, AtomicReqLen), 100)
		b := make([]byte, TermMaxLen)
		f.Add(b[:term.Put(b)])
	}
	f.Add([]byte{0x11, 0, 3, 0, 0, 0x40, 0xc1, 0x40, 0x12, 0xb3, 0x0c, 0, 0, 0, 0x55, 0xc4, 0x5a, 0x90, 0xb0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, again Term
		if !got.Parse(b) {
			return
		}
		out := make([]byte, TermMaxLen)
		n := got.Put(out)
		if n != got.Len() || n > len(b) {
			t.Fatalf("%d bytes came back as %d (Len %d)", len(b), n, got.Len())
		}
		if !bytes.Equal(out[TermMinLen:n], b[TermMinLen:n]) || got.Cause.Code() != b[1] {
			t.Fatalf("% x came back as % x", b, out[:n])
		}
		if !again.Parse(out[:n]) {
			t.Fatal("does not parse again")
		}
		var h ddp.Header
		var r ReadReq
		var a AtomicReq
		got.Header(&h)
		if got.ReadReq(&r) && got.AtomicReq(&a) {
			t.Fatal("two requests")
		}
	})
}
