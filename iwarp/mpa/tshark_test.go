package mpa

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// tsharkFields are what Wireshark's dissectors print of a packet and we compare.
var tsharkFields = []string{
	"iwarp_mpa.key.req", "iwarp_mpa.key.rep", "iwarp_mpa.marker_flag", "iwarp_mpa.crc_flag", "iwarp_mpa.rej_flag", "iwarp_mpa.rev",
	"iwarp_mpa.pdlength", "iwarp_mpa.privatedata", "iwarp_mpa.ulpdulength", "iwarp_mpa.crc", "iwarp_mpa.crc_check", "iwarp_mpa.marker_fpduptr", "iwarp_rdma.opcode", "_ws.malformed",
}

// Wireshark reads the connections that we make, of every kind, as they are
// meant: no malformed packet, each CRC right, each marker found.
func TestStreams_tshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("XWARP_REQUIRE_TSHARK") == "1" {
			t.Fatal("XWARP_REQUIRE_TSHARK=1, but: ", err)
		}
		t.Skip("needs tshark: apt-get install tshark")
	}
	var w witness
	for _, c := range []struct{ initiator, responder Config }{
		{Config{}, Config{}},
		{Config{IRD: 4, ORD: 4}, Config{IRD: 4, ORD: 4}},
		{Config{CRC: true}, Config{}},
		{Config{}, Config{CRC: true}},
		{Config{RTR: RTRWrite | RTRRead, CRC: true}, Config{}},
		{Config{RTR: RTRRead}, Config{}},
		{Config{RTR: RTRSend}, Config{}},
		{Config{Revision: 1}, Config{}},
		{Config{Revision: 1, CRC: true}, Config{CRC: true}},
		// One side only would be right too, but Wireshark then looks for them in
		// both directions.
		{Config{Markers: true}, Config{Markers: true}},
		{Config{Markers: true, CRC: true}, Config{Markers: true, CRC: true}},
		{Config{Revision: 1, Markers: true, CRC: true}, Config{Markers: true}},
		{Config{RTR: RTRWrite, Markers: true, CRC: true}, Config{Markers: true}},
	} {
		w.connection(t, c.initiator, c.responder)
	}
	w.rejected(t, Config{IRD: 4, ORD: 4})
	w.rejected(t, Config{Revision: 1, CRC: true})

	file := filepath.Join(t.TempDir(), "streams.pcap")
	if err := os.WriteFile(file, w.capture.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	// What Sends carry is nobody else's protocol.
	read := []string{"-n", "-r", file, "--disable-heuristic", "rpcrdma_iwarp", "--disable-heuristic", "smb_direct_iwarp"}
	args := append(slices.Clone(read), "-T", "fields", "-E", "separator=/t", "-E", "aggregator=,")
	for _, f := range tsharkFields {
		args = append(args, "-e", f)
	}
	lines := strings.Split(strings.TrimSuffix(run(t, tshark, args...), "\n"), "\n")
	if len(lines) != len(w.want) {
		t.Fatalf("tshark found %d packets, want %d", len(lines), len(w.want))
	}
	for i, line := range lines {
		if want := strings.Join(w.want[i], "\t"); line != want {
			t.Errorf("%s:\ntshark has %q\nwant       %q", w.name[i], line, want)
		}
	}
	text := run(t, tshark, append(read, "-V")...)
	if good := strings.Count(text, "(Good CRC32)"); good != w.crcs || strings.Contains(text, "Bad CRC32") || strings.Contains(text, "Malformed") {
		t.Errorf("%d of %d CRCs are good, or there is worse", good, w.crcs)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.String())
	}
	return string(out)
}

// witness writes connections to a capture, and what Wireshark should say.
type witness struct {
	capture vectors.Capture
	port    uint16
	name    []string
	want    [][]string // by packet, then in the order of tsharkFields
	crcs    int
}

// packet adds a packet; fields are name and value in turn.
func (w *witness) packet(name string, side int, payload []byte, fields ...string) {
	w.capture.Segment(40000+w.port, side, payload)
	row := make([]string, len(tsharkFields))
	for i := 0; i < len(fields); i += 2 {
		for k, f := range tsharkFields {
			if f == "iwarp_mpa."+fields[i] || f == "iwarp_rdma."+fields[i] {
				row[k] = fields[i+1]
			}
		}
	}
	w.name, w.want = append(w.name, fmt.Sprintf("connection %d: %s", w.port, name)), append(w.want, row)
}

func (w *witness) frame(name string, side int, b []byte) {
	key := "key.req"
	if side == 1 {
		key = "key.rep"
	}
	private := ""
	if len(b) > frameLen {
		private = hex.EncodeToString(b[frameLen:])
	}
	bit := func(mask byte) string { return fmt.Sprint(b[keyLen] & mask / mask) }
	w.packet(name, side, b, key, hex.EncodeToString(b[:keyLen]), "marker_flag", bit(flagMarkers), "crc_flag", bit(flagCRC), "rej_flag", bit(flagReject),
		"rev", fmt.Sprint(b[keyLen+1]), "pdlength", fmt.Sprint(len(b)-frameLen), "privatedata", private)
}

// connection starts up and sends messages in both directions, one FPDU to a
// segment of TCP, as Wireshark wants it when there are markers.
func (w *witness) connection(t *testing.T, ci, cr Config) {
	t.Helper()
	w.port++
	var i Initiator
	var r Responder
	req, err := i.Start(ci, []byte("the initiator's"))
	if err != nil {
		t.Fatal(err)
	}
	w.frame("Request", 0, req)
	if _, _, err := r.Request(req); err != nil {
		t.Fatal(err)
	}
	rep, ra, err := r.Accept(cr, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.frame("Reply", 1, rep)
	_, ia, err := i.Reply(rep)
	if err != nil {
		t.Fatal(err)
	}
	tx := [2]Tx{{CRC: ia.CRC, Markers: ia.SendMarkers}, {CRC: ra.CRC, Markers: ra.SendMarkers}}
	if kind := ia.RTR; kind != 0 {
		op := map[RTR]rdmap.Opcode{RTRSend: rdmap.Send, RTRWrite: rdmap.Write, RTRRead: rdmap.ReadRequest}[kind]
		w.fpdu("first message", 0, &tx[0], segment(op, 0))
	}
	for round := range 4 {
		for op := rdmap.Write; op <= rdmap.SendSEInv; op++ {
			n := []int{0, 1, 301, MULPDU(1448, ia.SendMarkers) - ddp.UntaggedLen}[round]
			w.fpdu(op.String(), (round+int(op))&1, &tx[(round+int(op))&1], segment(op, n))
		}
	}
	w.fpdu("Terminate", 1, &tx[1], segment(rdmap.Terminate, 0))
}

func (w *witness) rejected(t *testing.T, c Config) {
	t.Helper()
	w.port++
	var i Initiator
	var r Responder
	req, err := i.Start(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.frame("Request", 0, req)
	if _, _, err := r.Request(req); err != nil {
		t.Fatal(err)
	}
	rep, err := r.Reject([]byte("no"))
	if err != nil {
		t.Fatal(err)
	}
	w.frame("Reply that rejects", 1, rep)
	var rejected *RejectedError
	if _, _, err := i.Reply(rep); !errors.As(err, &rejected) {
		t.Fatal(err)
	}
}

// segment makes a DDP segment of an operation, with n bytes of payload where it
// has any.
func segment(op rdmap.Opcode, n int) []byte {
	h := ddp.Header{Tagged: op.Tagged(), Last: true, ULP: rdmap.Control(op)}
	if h.Tagged {
		h.STag, h.TO = 0x01020304, 0x1122334455667788
	} else {
		h.QN, h.MSN = op.QN(), 7
	}
	b := make([]byte, ddp.UntaggedLen+max(n, rdmap.TermMaxLen))
	k := h.Put(b)
	switch op {
	case rdmap.ReadRequest:
		(&rdmap.ReadReq{SinkSTag: 1, Size: uint32(n), SrcSTag: 2}).Put(b[k:])
		return b[:k+rdmap.ReadReqLen]
	case rdmap.Terminate:
		var term rdmap.Term
		term.Blame(iwarp.LLPCRC, nil, 0)
		return b[:k+term.Put(b[k:])]
	}
	for i := range n {
		b[k+i] = byte(i)
	}
	return b[:k+n]
}

func (w *witness) fpdu(name string, side int, tx *Tx, seg []byte) {
	b := encode(tx, [][]byte{seg})
	var pointers []string
	begin := 0
	if tx.Markers {
		// The markers that stand in b, read where the stream of this side has them.
		left := tx.left + len(b)
		for at := left % markerEvery; at < len(b); at += markerEvery {
			pointers = append(pointers, fmt.Sprint(binary.BigEndian.Uint16(b[at+2:])))
			if at == 0 {
				begin = markerLen
			}
		}
	}
	crc := fmt.Sprintf("0x%08x", binary.BigEndian.Uint32(b[len(b)-CRCLen:]))
	field := "crc"
	if tx.CRC {
		field = "crc_check"
		w.crcs++
	}
	w.packet(name, side, b, "ulpdulength", fmt.Sprint(binary.BigEndian.Uint16(b[begin:])), field, crc,
		"marker_fpduptr", strings.Join(pointers, ","), "opcode", fmt.Sprintf("0x%02x", seg[1]&15))
}
