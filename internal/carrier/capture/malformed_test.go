package capture_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

const severityError = "8388608"

// lsn makes the datagrams of a test follow each other.
type lsn uint32

func (l *lsn) data(ulpdus ...[]byte) []byte {
	*l++
	return datagram(dgram.Header{Type: dgram.TypeData, LSN: epochA + serial.U32(*l), Ack: epochB}, nil, ulpdus...)
}

// edited changes a datagram and gives it a CRC that is right again.
func edited(b []byte, edit func(b []byte) []byte) []byte { return sealed(edit(bytes.Clone(b))) }

func TestDissector_malformed(t *testing.T) {
	needTshark(t)
	var l lsn
	send := segment(rdmap.Send, ddp.Header{Last: true, MSN: 3}, 1, 2, 3, 4)
	read := bytesOf(&rdmap.ReadReq{}, rdmap.ReadReqLen)
	end := ddp.Header{Last: true, MSN: 1}
	chunk := func(c record.Chunk, last bool) []byte {
		return l.data(segment(rdmap.WriteRecord, ddp.Header{Last: last}, append(bytesOf(&c, record.ChunkLen), 9)...))
	}
	set := func(at int, value byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = value; return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	more := func(b []byte) []byte { return append(b, 0) }
	ack := datagram(dgram.Header{Type: dgram.TypeAck, Ack: epochB, SackWords: 1}, words(0))
	probe := datagram(dgram.Header{Type: dgram.TypeHello}, hello(1472, 100, 100))
	answer := datagram(dgram.Header{Type: dgram.TypeHelloAck}, hello(1472, 100, 40))
	cases := []struct {
		name    string
		payload []byte
		want    string
	}{
		{"unknown type", edited(l.data(send), set(4, 0x27)), "Unknown type"},
		{"ULPDU longer than the datagram", edited(l.data(send), cut(1)), "ULPDU 1 of 1 does not fit the datagram"},
		{"length field cut off", edited(l.data(send), set(6, 2)), "ULPDU 2 of 2 does not fit the datagram"},
		{"bytes left over", edited(l.data(send), more), "1 bytes behind the last ULPDU"},
		{"Ack too long", edited(ack, more), "Length is not that of the SACK words"},
		{"Ack too short", edited(ack, cut(1)), "Length is not that of the SACK words"},
		{"Ack with ULPDUs", edited(ack, set(6, 1)), "ULPDUs in a datagram that carries none"},
		{"Hello of another length", edited(probe, cut(1)), "Length is not that of this datagram"},
		{"Hello without body", edited(probe, func(b []byte) []byte { return b[:39] }), "Too short for its body"},
		{"HelloAck too long", edited(answer, more), "1 bytes behind the body"},
		{"header cut off", l.data(send[:17]), "Segment of 17 bytes is too short for its DDP header"},
		{"control byte cut off", l.data(send[:1]), "Segment of 1 bytes is too short for its DDP header"},
		{"tagged Send", l.data(edit(send, 0, 0x80)), "Send: this operation has another kind of header"},
		{"Send on queue 1", l.data(edit(send, 9, 1)), "Send: this operation has another queue"},
		{"Read Request of 27 bytes", l.data(segment(rdmap.ReadRequest, end, read[1:]...)), "Read Request: want one segment of 28 bytes"},
		{"Read Request in two", l.data(segment(rdmap.ReadRequest, ddp.Header{}, read...)), "Read Request: want one segment of 28 bytes"},
		{"Write-Record without its header", l.data(segment(rdmap.WriteRecord, end, 1)), "Write-Record: too short for its header"},
		{"chunk past the end", chunk(record.Chunk{Length: 10, Offset: 10}, true), "Chunk does not fit its message, or L is not on the one that ends it"},
		{"chunk without L", chunk(record.Chunk{Length: 10, Offset: 9}, false), "Chunk does not fit its message, or L is not on the one that ends it"},
		{"Terminate of 3 bytes", l.data(segment(rdmap.Terminate, end, 1, 2, 3)), "Terminate without its control word"},
	}
	var payloads [][]byte
	for _, c := range cases {
		payloads = append(payloads, c.payload)
	}
	for i, r := range dissect(t, write(t, 18700, payloads)) {
		if c := cases[i]; r.one("_ws.expert.message") != c.want || r.one("_ws.expert.severity") != severityError || r.one("xwarp.crc.status") != "1" {
			t.Errorf("%s: %v, want %q", c.name, r, c.want)
		}
	}
}

// edit returns a segment with another byte in it.
func edit(seg []byte, at int, xor byte) []byte {
	seg = bytes.Clone(seg)
	seg[at] ^= xor
	return seg
}

// What is no error but not as usual either.
func TestDissector_odd(t *testing.T) {
	needTshark(t)
	var l lsn
	send := segment(rdmap.Send, ddp.Header{Last: true, MSN: 3}, 1, 2, 3, 4)
	noCRC := l.data(send)
	noCRC[5] = 0
	corrupt := edit(l.data(send), 59, 1)
	opcode, version := l.data(edit(send, 1, 0x0e)), l.data(edit(send, 0, 0x03))
	lost := l.data(send, send)
	cases := []struct {
		name    string
		payload []byte
		want    row
	}{
		{"no CRC", noCRC, row{"xwarp.crc.status": {"3"}}},
		{"bad CRC", corrupt, row{"xwarp.crc.status": {"0"}, "_ws.expert.message": {"CRC32C is wrong"}}},
		{"unknown opcode", opcode, row{"_ws.expert.message": {"RDMAP opcode 13"}}},
		{"DDP version 2", version, row{"_ws.expert.message": {"DDP or RDMAP version"}}},
		{"no epoch", datagram(dgram.Header{Type: dgram.TypeData, SrcEpoch: 9, LSN: 9}, nil), row{"_ws.expert.message": {"Destination epoch 0: the receiver drops this"}}},
		{"to be lost", lost, row{"xwarp.acked_in": {"9"}}},
		{"sent again", lost, row{"xwarp.resent": {"6", "6"}, "_ws.expert.message": {"Sent again", "Sent again"}}},
		{"another version", edited(lost, func(b []byte) []byte { b[4] = 0x11; return b }), row{"frame.protocols": {"eth:ethertype:ip:udp:data"}}},
		{"acknowledged", datagram(dgram.Header{Type: dgram.TypeAck, SrcEpoch: epochB, DstEpoch: epochA, Ack: epochA + serial.U32(l) + 2}, nil), row{"xwarp.acks": {"6"}}},
	}
	var payloads [][]byte
	for _, c := range cases {
		payloads = append(payloads, c.payload)
	}
	for i, r := range dissect(t, write(t, 18700, payloads), "xwarp.resent", "xwarp.acks", "xwarp.acked_in") {
		for field, want := range cases[i].want {
			if r.one(field) != strings.Join(want, "|") {
				t.Errorf("%s: %s is %q, want %q", cases[i].name, field, r[field], want)
			}
		}
	}
}

// On a port that is nobody's, datagrams are known by what they look like, and
// once one was, the whole conversation is ours.
func TestDissector_otherPorts(t *testing.T) {
	needTshark(t)
	var l lsn
	good := l.data(segment(rdmap.Send, ddp.Header{Last: true, MSN: 3}, 1, 2, 3, 4))
	noise := bytes.Repeat([]byte{0x21}, 100)
	corrupt := edit(good, 50, 1)
	for _, c := range []struct {
		payloads [][]byte
		ours     bool
	}{
		{[][]byte{noise, corrupt}, false},
		{[][]byte{good, corrupt}, true},
	} {
		for i, r := range dissect(t, write(t, 40000, c.payloads)) {
			if got := strings.HasSuffix(r.one("frame.protocols"), ":xwarp"); got != c.ours {
				t.Errorf("packet %d is %s", i, r.one("frame.protocols"))
			}
		}
	}
}

// A capture that was told to keep the beginnings only is shown as far as it
// goes.
func TestDissector_cutByCapture(t *testing.T) {
	needTshark(t)
	var l lsn
	long := l.data(segment(rdmap.Send, ddp.Header{Last: true, MSN: 3}, make([]byte, 1000)...))
	ack := datagram(dgram.Header{Type: dgram.TypeAck, Ack: epochB, SackWords: 8}, words(make([]uint64, 8)...))
	whole, err := os.ReadFile(write(t, 18700, [][]byte{long, ack}))
	if err != nil {
		t.Fatal(err)
	}
	in, err := pcapgo.NewNgReader(bytes.NewReader(whole), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cut.pcapng")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := pcapgo.NewNgWriter(f, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		data, info, err := in.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		const snap = 96
		if err := out.WritePacket(gopacket.CaptureInfo{Timestamp: info.Timestamp, CaptureLength: snap, Length: len(data)}, data[:snap]); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, r := range dissect(t, file) {
		if r.one("_ws.expert.message") != "Cut off by the capture" || r.one("xwarp.crc.status") != "2" || r.one("_ws.malformed") != "" {
			t.Errorf("packet %d: %v", i, r)
		}
	}
}

// Whatever comes, the dissector does not fail.
func TestDissector_noise(t *testing.T) {
	needTshark(t)
	good := llpVectors()
	good = append(good, carried(dgram.TypeData, epochA+100, sendVectors())...)
	good = append(good, carried(dgram.TypeData, epochA+200, oneSidedVectors())...)
	good = append(good, carried(dgram.TypeData, epochA+300, terminateVectors())...)
	good = append(good, carried(dgram.TypeUD, 0, oneSidedVectors())...)
	rng := rand.New(rand.NewPCG(1, 2))
	var payloads [][]byte
	for i := range 3000 {
		b := bytes.Clone(good[i%len(good)].payload)
		b = b[:min(len(b), 200)] // of the padded ones most is zeros
		for range 1 + rng.IntN(3) {
			switch rng.IntN(4) {
			case 0:
				b = b[:dgram.CRCLen+1+rng.IntN(len(b)-dgram.CRCLen)]
			case 1:
				b = append(b, make([]byte, rng.IntN(40))...)
			default:
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		}
		payloads = append(payloads, sealed(b))
	}
	if rows := dissect(t, write(t, 18700, payloads)); len(rows) != len(payloads) { // it looks for errors
		t.Errorf("%d packets became %d", len(payloads), len(rows))
	}
}
