package rdmap

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// tsharkFields are what Wireshark's dissector of DDP and RDMAP prints and we
// compare. Those named term_ddp_h, term_rdma_h and term_ddp_seg_len are bytes,
// the others numbers.
var tsharkFields = []string{
	"iwarp_ddp.tagged_flag", "iwarp_ddp.last_flag", "iwarp_ddp.dv", "iwarp_rdma.version", "iwarp_rdma.opcode",
	"iwarp_ddp.stag", "iwarp_ddp.tagged_offset", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_ddp.mo", "iwarp_rdma.inval_stag",
	"iwarp_rdma.sinkstag", "iwarp_rdma.sinkto", "iwarp_rdma.rdmardsz", "iwarp_rdma.srcstag", "iwarp_rdma.srcto",
	"iwarp_rdma.term_layer", "iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_etype_llp",
	"iwarp_rdma.term_errcode_rdma", "iwarp_rdma.term_errcode_ddp_tagged", "iwarp_rdma.term_errcode_ddp_untagged",
	"iwarp_rdma.term_errcode_llp", "iwarp_rdma.term_errcode",
	"iwarp_rdma.term_hdrct_m", "iwarp_rdma.hdrct_d", "iwarp_rdma.hdrct_r",
	"iwarp_rdma.term_ddp_seg_len", "iwarp_rdma.term_ddp_h", "iwarp_rdma.term_rdma_h",
	"iwarp_rdma.atomic.opcode", "iwarp_rdma.atomic.request_identifier", "iwarp_rdma.atomic.remote_stag", "iwarp_rdma.atomic.remote_tagged_offset",
	"iwarp_rdma.atomic.add_data", "iwarp_rdma.atomic.add_mask", "iwarp_rdma.atomic.swap_data", "iwarp_rdma.atomic.swap_mask",
	"iwarp_rdma.atomic.compare_data", "iwarp_rdma.atomic.compare_mask",
	"iwarp_rdma.atomic.original_request_identifier", "iwarp_rdma.atomic.original_remote_data_value",
}

// Wireshark reads our segments as we do: all that it prints of them is what
// our own parsers find. (Its version 4.0 does not know Immediate Data, Swap and
// Write-Record: of those the headers are compared.)
func TestVectors_tshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("XWARP_REQUIRE_TSHARK") == "1" {
			t.Fatal("XWARP_REQUIRE_TSHARK=1, but: ", err)
		}
		t.Skip("needs tshark: apt-get install tshark")
	}
	names, segs := foreignEyes(t)
	file := filepath.Join(t.TempDir(), "vectors.pcap")
	if err := os.WriteFile(file, mpaCapture(segs), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-r", file, "-Y", "iwarp_mpa.fpdu", "-T", "fields", "-E", "separator=|"}
	for _, f := range tsharkFields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command(tshark, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(segs) {
		t.Fatalf("tshark found %d segments, want %d", len(lines), len(segs))
	}
	for i, line := range lines {
		compareTshark(t, names[i], strings.Split(line, "|"), tsharkSees(t, segs[i]))
	}
}

// foreignEyes returns the segments to show: those of segments.json that make
// sense, and the payloads of rdmap.json and terminate.json with a header.
func foreignEyes(t *testing.T) (names []string, segs [][]byte) {
	t.Helper()
	for _, v := range vectors.Load(t, "segments.json") {
		if v.Refused == "" {
			names, segs = append(names, v.Name), append(segs, v.Bytes)
		}
	}
	ops := map[string]Opcode{"Term": Terminate, "ReadReq": ReadRequest, "AtomicReq": AtomicRequest, "AtomicResp": AtomicResponse, "Imm": ImmediateSE}
	for _, v := range append(vectors.Load(t, "terminate.json"), vectors.Load(t, "rdmap.json")...) {
		op, ok := ops[v.Kind]
		if !ok {
			continue
		}
		h, _ := valid(op)
		seg := make([]byte, ddp.UntaggedLen, ddp.UntaggedLen+len(v.Bytes))
		names, segs = append(names, v.Name), append(segs, append(seg[:h.Put(seg)], v.Bytes...))
	}
	return names, segs
}

func compareTshark(t *testing.T, name string, got []string, want map[string]uint64) {
	t.Helper()
	for i, f := range tsharkFields {
		w, ok := want[f]
		text := strings.ReplaceAll(got[i], ":", "")
		if text == "" && !ok {
			continue
		}
		base := 0
		if strings.HasPrefix(f, "iwarp_rdma.term_ddp_seg") {
			base = 16
		}
		n, err := strconv.ParseUint(text, base, 64)
		if b, boolErr := strconv.ParseBool(text); err != nil && boolErr == nil {
			n, err = 0, nil
			if b {
				n = 1
			}
		}
		if strings.HasSuffix(f, "_h") { // a copied header: compared by its digest
			b, hexErr := hex.DecodeString(text)
			n, err = digest(b), hexErr
		}
		if !ok || err != nil || n != w {
			t.Errorf("%s: tshark has %s = %q, we have %#x (%v)", name, f, got[i], w, ok)
		}
	}
}

// digest stands for bytes in a map of numbers.
func digest(b []byte) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// tsharkSees returns what tshark should print of a segment, by our parsers.
func tsharkSees(t *testing.T, seg []byte) map[string]uint64 {
	t.Helper()
	var h ddp.Header
	if !h.Parse(seg) {
		t.Fatalf("% x has no header", seg)
	}
	p := seg[h.Len():]
	op, cause, ok := Check(&h, len(p))
	if !ok {
		t.Fatalf("% x is refused: %v", seg, cause)
	}
	w := map[string]uint64{"iwarp_ddp.dv": 1, "iwarp_rdma.version": 1, "iwarp_rdma.opcode": uint64(op), "iwarp_ddp.tagged_flag": bit(h.Tagged), "iwarp_ddp.last_flag": bit(h.Last)}
	if h.Tagged {
		w["iwarp_ddp.stag"], w["iwarp_ddp.tagged_offset"] = uint64(h.STag), h.TO
	} else {
		w["iwarp_ddp.qn"], w["iwarp_ddp.msn"], w["iwarp_ddp.mo"] = uint64(h.QN), uint64(h.MSN), uint64(h.MO)
	}
	if op.Invalidates() {
		w["iwarp_rdma.inval_stag"] = uint64(h.ULP2)
	}
	switch op {
	case ReadRequest:
		var r ReadReq
		r.Parse(p)
		w["iwarp_rdma.sinkstag"], w["iwarp_rdma.sinkto"], w["iwarp_rdma.rdmardsz"] = uint64(r.SinkSTag), r.SinkTO, uint64(r.Size)
		w["iwarp_rdma.srcstag"], w["iwarp_rdma.srcto"] = uint64(r.SrcSTag), r.SrcTO
	case Terminate:
		var term Term
		term.Parse(p)
		tsharkTerm(w, &term)
	case AtomicRequest:
		var r AtomicReq
		r.Parse(p)
		tsharkAtomic(w, &r)
	case AtomicResponse:
		var r AtomicResp
		r.Parse(p)
		w["iwarp_rdma.atomic.original_request_identifier"], w["iwarp_rdma.atomic.original_remote_data_value"] = uint64(r.ID), r.Value
	}
	return w
}

func tsharkAtomic(w map[string]uint64, r *AtomicReq) {
	const f = "iwarp_rdma.atomic."
	w[f+"opcode"], w[f+"request_identifier"], w[f+"remote_stag"], w[f+"remote_tagged_offset"] = uint64(r.Op), uint64(r.ID), uint64(r.STag), r.TO
	w[f+"compare_data"], w[f+"compare_mask"] = r.Compare, r.CompareMask
	switch r.Op {
	case FetchAdd:
		w[f+"add_data"], w[f+"add_mask"] = r.Data, r.Mask
	case CmpSwap:
		w[f+"swap_data"], w[f+"swap_mask"] = r.Data, r.Mask
	case Swap: // tshark skips no operand of an operation that it does not know, so the next two are shifted
		w[f+"compare_data"], w[f+"compare_mask"] = r.Data, r.Mask
	}
}

func tsharkTerm(w map[string]uint64, term *Term) {
	const f = "iwarp_rdma."
	c := term.Cause
	w[f+"term_layer"] = uint64(c.Layer())
	etype, code := "term_etype_"+map[iwarp.Layer]string{iwarp.LayerRDMAP: "rdma", iwarp.LayerDDP: "ddp", iwarp.LayerLLP: "llp"}[c.Layer()], "term_errcode"
	switch {
	case c.Layer() == iwarp.LayerRDMAP && c.Type() != 0:
		code = "term_errcode_rdma"
	case c>>8 == 0x11:
		code = "term_errcode_ddp_tagged"
	case c>>8 == 0x12:
		code = "term_errcode_ddp_untagged"
	case c>>8 == 0x20:
		code = "term_errcode_llp"
	}
	w[f+etype], w[f+code] = uint64(c.Type()), uint64(c.Code())
	w[f+"term_hdrct_m"], w[f+"hdrct_d"], w[f+"hdrct_r"] = bit(term.HasLen), bit(term.HasDDP), bit(term.HasRDMAP)
	if !term.HasDDP {
		return
	}
	w[f+"term_ddp_seg_len"] = uint64(term.SegLen)
	// tshark takes the length of the copied header from the error type and not
	// from the header, that of a request to be 28 bytes always.
	var b [TermMaxLen]byte
	term.Put(b[:])
	n := termDDP + ddp.UntaggedLen
	if c.Type() == 1 {
		n = termDDP + ddp.TaggedLen
	}
	w[f+"term_ddp_h"] = digest(b[termDDP:n])
	if term.HasRDMAP {
		w[f+"term_rdma_h"] = digest(b[n : n+ReadReqLen])
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// mpaCapture returns a pcap file of a TCP connection in MPA (RFC 5044) without
// CRC and markers, in which one side sends the segments, one FPDU in each.
func mpaCapture(segs [][]byte) []byte {
	var c vectors.Capture
	c.Segment(40000, 0, append([]byte("MPA ID Req Frame"), 0, 1, 0, 0))
	c.Segment(40000, 1, append([]byte("MPA ID Rep Frame"), 0, 1, 0, 0))
	for _, seg := range segs {
		fpdu := binary.BigEndian.AppendUint16(nil, uint16(len(seg)))
		fpdu = append(fpdu, seg...)
		c.Segment(40000, 0, append(fpdu, make([]byte, (4-len(fpdu)&3)&3+4)...))
	}
	return c.Bytes()
}
