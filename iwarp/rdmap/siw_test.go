package rdmap

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp/ddp"
)

// Segments that the kernel's iWARP driver put on the wire.
func TestVectors_siw(t *testing.T) {
	for _, v := range vectors.Load(t, "siw.json") {
		var h, want ddp.Header
		v.Fill(t, &want)
		if !h.Parse(v.Bytes) || h != want {
			t.Errorf("%s: header %+v, want %+v", v.Name, h, want)
		}
		checkForeign(t, v.Name, v.Bytes, v.Kind)
	}
}

// Whole captures of siw, when there are any: every DDP segment in them must
// parse, make sense, and go out again as it came.
func TestSiw_captures(t *testing.T) {
	dir := os.Getenv("XWARP_SIW_CAPTURES")
	if dir == "" {
		t.Skip("set XWARP_SIW_CAPTURES to a folder of pcap files of siw's traffic")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pcap files in %s (%v)", dir, err)
	}
	count := map[Opcode]int{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range vectors.TCPConnections(t, b) {
			for _, seg := range append(ulpdus(c.Initiator), ulpdus(c.Responder)...) {
				op := checkForeign(t, filepath.Base(file), seg, "")
				count[op]++
			}
		}
	}
	t.Logf("%d files: %v", len(files), count)
	for op := Write; op <= Terminate; op++ {
		if count[op] == 0 && op != SendSEInv {
			t.Errorf("no %v in the captures", op)
		}
	}
}

// checkForeign parses a segment that we did not make and writes it again. kind
// is the name of its operation, if that is known.
func checkForeign(t *testing.T, name string, seg []byte, kind string) Opcode {
	t.Helper()
	var h ddp.Header
	if !h.Parse(seg) {
		t.Errorf("%s: % x: no header: %v", name, seg[:min(len(seg), 20)], ddp.BadHeader(seg))
		return 0
	}
	out := make([]byte, len(seg)+TermMaxLen)
	n := h.Put(out)
	p := seg[n:]
	op, cause, ok := Check(&h, len(p))
	if !ok || kind != "" && op.String() != kind {
		t.Errorf("%s: % x: %v, refused: %v", name, seg[:n], op, cause)
		return op
	}
	switch op {
	case ReadRequest:
		var r ReadReq
		if ok = r.Parse(p); ok {
			r.Put(out[n:])
		}
		n += ReadReqLen
	case Terminate:
		var term Term
		if ok = term.Parse(p); ok {
			n += term.Put(out[n:])
		}
		ok = ok && term.Cause.Known()
	default:
		n += copy(out[n:], p)
	}
	if !ok || !bytes.Equal(out[:n], seg) {
		t.Errorf("%s: %v: % x went out as % x", name, op, seg, out[:n])
	}
	return op
}

// ulpdus returns the DDP segments in one direction of an MPA connection without
// markers (RFC 5044): a start-up frame, then FPDUs.
func ulpdus(stream []byte) [][]byte {
	const key, startup = 16, 20
	if len(stream) < startup || !bytes.HasPrefix(stream, []byte("MPA ID Re")) || stream[key]&0x20 != 0 { // rejected
		return nil
	}
	private := int(binary.BigEndian.Uint16(stream[18:]))
	// siw counts private data in 8 bits, and may say 0 where RFC 6581 wants 4.
	if stream[key]&0x10 != 0 && private < 4 || startup+private > len(stream) {
		return nil
	}
	var out [][]byte
	for b := stream[startup+private:]; len(b) >= 2; {
		n := int(binary.BigEndian.Uint16(b))
		fpdu := (2+n+3)&^3 + 4
		if n == 0 || fpdu > len(b) {
			break
		}
		out = append(out, b[2:2+n])
		b = b[fpdu:]
	}
	return out
}
