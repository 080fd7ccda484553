package mpa

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// siwMSS is that of the captures: 1500 bytes of MTU, with TCP time stamps.
const siwMSS = 1448

// TestSiw_captures reads captures of the kernel's iWARP driver, when there are
// any. Each start-up frame and each FPDU, of both sides, is taken by whoever
// receives it, and goes out again as it came from what was read out of it.
func TestSiw_captures(t *testing.T) {
	count := map[rdmap.Opcode]int{}
	for name, connections := range siwCaptures(t) {
		for _, c := range connections {
			in, out, ok := siwStartup(t, name, c)
			if !ok {
				continue
			}
			for _, d := range []*siwStream{in, out} {
				for _, ulpdu := range d.ulpdus(t, name) {
					count[d.again(t, name, ulpdu)]++
				}
				if len(d.got) > 0 {
					t.Errorf("%s: % x went out as % x", name, d.got, d.want)
				}
			}
		}
	}
	t.Log(count)
	for op := rdmap.Write; op <= rdmap.Terminate; op++ {
		if count[op] == 0 && op != rdmap.SendSEInv {
			t.Errorf("no %v in the captures", op)
		}
	}
}

// siwCaptures returns the connections of each capture, by the name of its file.
func siwCaptures(t *testing.T) map[string][]vectors.Connection {
	t.Helper()
	dir := os.Getenv("XWARP_SIW_CAPTURES")
	if dir == "" {
		t.Skip("set XWARP_SIW_CAPTURES to a folder of pcap files of siw's traffic")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pcap files in %s (%v)", dir, err)
	}
	all := map[string][]vectors.Connection{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = vectors.TCPConnections(t, b)
	}
	return all
}

// siwStream is one direction of a connection behind the start-up frame.
type siwStream struct {
	rx   Rx
	tx   Tx
	got  []byte // not yet compared
	want []byte // the last FPDU that we made
}

// siwStartup plays both ends of a start-up against the other's frame. ok is
// false when that ends the connection.
func siwStartup(t *testing.T, name string, c vectors.Connection) (in, out *siwStream, ok bool) {
	t.Helper()
	var r Responder
	n := frameEnd(t, c.Initiator, func(b []byte) (int, error) {
		n, _, err := r.Request(b)
		return n, err
	})
	p := &r.Peer
	mine := Config{Revision: p.Revision, CRC: p.CRC, Markers: p.SendMarkers, IRD: p.IRD, ORD: p.ORD, RTR: p.RTR}
	var i Initiator
	request, err := i.Start(mine, p.Private)
	if err != nil || !bytes.Equal(request, c.Initiator[:n]) {
		t.Errorf("%s: Request % x went out as % x (%v)", name, c.Initiator[:n], request, err)
	}
	in = &siwStream{got: c.Initiator[n:]}

	var a Agreed
	m, err := 0, error(nil)
	for k := 0; k <= len(c.Responder) && m == 0 && err == nil; k++ {
		m, a, err = i.Reply(c.Responder[:k])
	}
	var f Frame
	length, _ := f.Parse(c.Responder, true)
	theirs := Config{CRC: f.CRC, Markers: f.Markers, IRD: f.IRD, ORD: f.ORD}
	var rejected *RejectedError
	switch {
	case name == "quirk-pd252.pcap":
		// siw counts private data in 8 bits: 252 and its own 4 are 0.
		if !errors.Is(err, iwarp.LLPStartup) {
			t.Errorf("%s: %v", name, err)
		}
		return nil, nil, false
	case errors.As(err, &rejected):
		if reply, err := r.Reject(rejected.Private); err != nil || !bytes.Equal(reply, c.Responder[:length]) {
			t.Errorf("%s: Reply % x went out as % x (%v)", name, c.Responder[:length], reply, err)
		}
		return nil, nil, false
	case err != nil || m != length:
		t.Errorf("%s: Reply % x: %v", name, c.Responder[:length], err)
		return nil, nil, false
	}
	reply, b, err := r.Accept(theirs, a.Private)
	if err != nil || !bytes.Equal(reply, c.Responder[:m]) {
		t.Errorf("%s: Reply % x went out as % x (%v)", name, c.Responder[:m], reply, err)
	}
	if a.CRC != b.CRC || a.RTR != b.RTR || a.SendMarkers || b.SendMarkers || a.RTR != f.RTR {
		t.Errorf("%s: the ends agree on %+v and %+v", name, a, b)
	}
	out = &siwStream{got: c.Responder[m:]}
	in.rx.CRC, in.tx.CRC, out.rx.CRC, out.tx.CRC = a.CRC, a.CRC, a.CRC, a.CRC
	return in, out, true
}

// frameEnd gives parse a byte more each time until the frame is there.
func frameEnd(t *testing.T, stream []byte, parse func(b []byte) (int, error)) int {
	t.Helper()
	for k := range len(stream) + 1 {
		n, err := parse(stream[:k])
		if err != nil {
			t.Fatalf("after %d bytes: %v", k, err)
		}
		if n > 0 {
			return n
		}
	}
	t.Fatal("no start-up frame")
	return 0
}

// ulpdus takes all FPDUs out of the stream.
func (d *siwStream) ulpdus(t *testing.T, name string) (all [][]byte) {
	t.Helper()
	for b := d.got; len(b) > 0; {
		ulpdu, n, want, cause, ok := d.rx.Next(b)
		if !ok || n == 0 {
			t.Fatalf("%s: % x: want %d, %v", name, b[:min(len(b), 40)], want, cause)
		}
		all = append(all, ulpdu)
		b = b[n:]
	}
	return all
}

// again makes an FPDU from what the next ULPDU means, and compares it with the
// stream.
func (d *siwStream) again(t *testing.T, name string, ulpdu []byte) rdmap.Opcode {
	t.Helper()
	var h ddp.Header
	if !h.Parse(ulpdu) {
		t.Fatalf("%s: % x has no header", name, ulpdu)
	}
	p := ulpdu[h.Len():]
	op, cause, ok := rdmap.Check(&h, len(p))
	if !ok {
		t.Fatalf("%s: % x is refused: %v", name, ulpdu, cause)
	}
	b := make([]byte, LengthLen+ddp.UntaggedLen)
	b[0], b[1] = byte(len(ulpdu)>>8), byte(len(ulpdu))
	b = b[:LengthLen+h.Put(b[LengthLen:])]
	payload := make([]byte, max(len(p), rdmap.TermMaxLen))
	switch op {
	case rdmap.ReadRequest:
		var r rdmap.ReadReq
		r.Parse(p)
		r.Put(payload)
		payload = payload[:rdmap.ReadReqLen]
	case rdmap.Terminate:
		var term rdmap.Term
		term.Parse(p)
		payload = payload[:term.Put(payload)] // with the bits in siw's order
	default:
		payload = payload[:copy(payload, p)]
	}
	var trailer [TrailerMax]byte
	n := d.tx.Trailer(trailer[:], b, payload)
	d.want = append(append(b, payload...), trailer[:n]...)
	if pad := d.want[len(b)+len(payload) : len(d.want)-CRCLen]; strings.HasPrefix(name, "ib_") && len(d.got) >= len(d.want) {
		// siw does not clear the pad behind payload that it copies next to the
		// header; without CRC, nothing else changes.
		copy(pad, d.got[len(b)+len(payload):])
	}
	if !bytes.HasPrefix(d.got, d.want) {
		t.Fatalf("%s: %v % x went out as % x", name, op, d.got[:min(len(d.got), len(d.want))], d.want)
	}
	d.got = d.got[len(d.want):]
	return op
}

// A message is cut as siw cuts it, given the same segment size of TCP: each
// FPDU but the last is as long as it may be.
func TestSiw_segmentation(t *testing.T) {
	longest := MULPDU(siwMSS, false)
	cut := 0
	for name, connections := range siwCaptures(t) {
		for _, c := range connections {
			in, out, ok := siwStartup(t, name, c)
			if !ok {
				continue
			}
			for _, d := range []*siwStream{in, out} {
				cut += checkCuts(t, name, d.ulpdus(t, name), longest)
			}
		}
	}
	if cut < 50 {
		t.Errorf("only %d messages of several segments", cut)
	}
}

// checkCuts puts messages together and cuts them again. It returns how many
// have several segments.
func checkCuts(t *testing.T, name string, ulpdus [][]byte, longest int) (cut int) {
	t.Helper()
	open := map[bool][]int{} // lengths of payloads of the message so far, of either kind
	for _, u := range ulpdus {
		var h ddp.Header
		h.Parse(u)
		open[h.Tagged] = append(open[h.Tagged], len(u)-h.Len())
		if !h.Last {
			continue
		}
		total, rest := 0, 0
		for _, n := range open[h.Tagged] {
			total += n
		}
		for i, n := range open[h.Tagged] {
			if rest = total - i*(longest-h.Len()); n != min(rest, longest-h.Len()) {
				t.Errorf("%s: %d bytes are cut into %v", name, total, open[h.Tagged])
				break
			}
		}
		if len(open[h.Tagged]) > 1 {
			cut++
		}
		open[h.Tagged] = nil
	}
	return cut
}
