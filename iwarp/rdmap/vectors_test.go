package rdmap

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

func TestVectors_payloads(t *testing.T) {
	for _, v := range vectors.Load(t, "rdmap.json") {
		b := make([]byte, len(v.Bytes))
		ok := false
		switch v.Kind {
		case "ReadReq":
			var got, want ReadReq
			v.Fill(t, &want)
			want.Put(b)
			ok = len(b) == ReadReqLen && got.Parse(v.Bytes) && got == want
		case "AtomicReq":
			var got, want AtomicReq
			v.Fill(t, &want)
			want.Put(b)
			ok = len(b) == AtomicReqLen && got.Parse(v.Bytes) && got == want
		case "AtomicResp":
			var got, want AtomicResp
			v.Fill(t, &want)
			want.Put(b)
			ok = len(b) == AtomicRespLen && got.Parse(v.Bytes) && got == want
		case "Imm":
			var got Imm
			want := Imm(v.Uint(t, "Value"))
			want.Put(b)
			ok = len(b) == ImmLen && got.Parse(v.Bytes) && got == want
		}
		if !ok || !bytes.Equal(b, v.Bytes) {
			t.Errorf("%s (%s): parsed %v, wrote % x, want % x", v.Name, v.Kind, ok, b, v.Bytes)
		}
	}
}

// Whole segments: the header both ways, and what Check makes of them.
func TestVectors_segments(t *testing.T) {
	seen := map[Opcode]bool{}
	for _, v := range vectors.Load(t, "segments.json") {
		var h, want ddp.Header
		v.Fill(t, &want)
		if !h.Parse(v.Bytes) || h != want {
			t.Errorf("%s: header %+v, want %+v", v.Name, h, want)
			continue
		}
		b := make([]byte, ddp.UntaggedLen)
		if n := want.Put(b); !bytes.Equal(b[:n], v.Bytes[:n]) {
			t.Errorf("%s: wrote % x", v.Name, b[:n])
		}
		op, got, ok := Check(&h, len(v.Bytes)-h.Len())
		switch cause, refused := v.Cause(t); {
		case refused && (ok || got != iwarp.Cause(cause)):
			t.Errorf("%s: Check says %v, %v", v.Name, got, ok)
		case !refused && (!ok || op.String() != v.Kind):
			t.Errorf("%s: Check says %v, %v, %v", v.Name, op, got, ok)
		case ok:
			seen[op] = parses(op, v.Bytes[h.Len():])
		}
	}
	for op := range Opcode(16) {
		if seen[op] != op.Known() {
			t.Errorf("%v: seen %v", op, seen[op])
		}
	}
}

func TestVectors_terminate(t *testing.T) {
	seen := map[iwarp.Cause]bool{}
	for _, v := range vectors.Load(t, "terminate.json") {
		// What the fields cannot say, the copies, comes from the bytes; the
		// other direction below compares them with the segment that is blamed.
		var want, got Term
		v.Fill(t, &want)
		ok := got.Parse(v.Bytes)
		seen[got.Cause] = true
		bare := got
		bare.ddp, bare.req = want.ddp, want.req
		if !ok || bare != want {
			t.Errorf("%s: parsed %+v, want %+v", v.Name, bare, want)
			continue
		}
		sent := got
		if v.Kind == "Term" {
			sent.Blame(want.Cause, v.Segment, int(want.SegLen))
		}
		b := make([]byte, TermMaxLen)
		if b = b[:sent.Put(b)]; v.Kind != "decode" && !bytes.Equal(b, v.Bytes) {
			t.Errorf("%s: wrote % x, want % x", v.Name, b, v.Bytes)
		}
	}
	for c := range 1 << 16 {
		if c := iwarp.Cause(c); c.Known() && c>>8 != 0 && !seen[c] {
			t.Errorf("no vector for %v (%#04x)", c, uint16(c))
		}
	}
}
