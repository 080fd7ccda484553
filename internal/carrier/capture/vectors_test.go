package capture_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

const (
	epochA = 0xa0000001 // near the end of the numbers on one side
	epochB = 0xfffffffe
	key    = 0x0123456789abcdef
)

// datagram builds a datagram with these ULPDUs or, when there are none, with
// body behind the header.
func datagram(h dgram.Header, body []byte, ulpdus ...[]byte) []byte {
	h.Key, h.Flags = key, h.Flags|dgram.FlagCRC
	if h.SrcEpoch == 0 {
		h.SrcEpoch, h.DstEpoch = epochA, epochB
	}
	for _, u := range ulpdus {
		h.Count++
		body = binary.BigEndian.AppendUint16(body, uint16(len(u)))
		body = append(body, u...)
	}
	b := make([]byte, dgram.HeaderLen, dgram.HeaderLen+len(body))
	h.Put(b)
	return sealed(append(b, body...))
}

func sealed(b []byte) []byte {
	dgram.Seal(b, dgram.CRC(0, b[dgram.CRCLen:]))
	return b
}

// segment builds a DDP segment.
func segment(op rdmap.Opcode, h ddp.Header, payload ...byte) []byte {
	h.ULP, h.Tagged = rdmap.Control(op), op.Tagged()
	if !h.Tagged {
		h.QN = op.QN()
	}
	b := make([]byte, ddp.UntaggedLen)
	return append(b[:h.Put(b)], payload...)
}

// putter is any payload of RDMAP.
type putter interface{ Put(b []byte) }

func bytesOf(p putter, n int) []byte {
	b := make([]byte, n)
	p.Put(b)
	return b
}

// blame is the payload of a Terminate.
func blame(cause iwarp.Cause, seg []byte) []byte {
	var t rdmap.Term
	t.Blame(cause, seg, len(seg))
	b := make([]byte, rdmap.TermMaxLen)
	return b[:t.Put(b)]
}

// vector is a datagram, the end of its line in the info column, and fields.
type vector struct {
	name    string
	payload []byte
	info    string
	want    map[string]string
}

func words(bits ...uint64) (b []byte) {
	for _, w := range bits {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}

// hello is the body of a Hello of n bytes in all, or of the answer to one.
func hello(largest, length, n int) []byte {
	b := make([]byte, n-dgram.HeaderLen)
	(&dgram.Hello{MaxPayload: uint16(largest), Length: uint16(length)}).Put(b)
	return b
}

// llpVectors are datagrams of the types that carry no ULPDUs.
func llpVectors() []vector {
	return []vector{
		{
			"Hello, first",
			datagram(dgram.Header{Type: dgram.TypeHello, SrcEpoch: epochA}, hello(8972, 8972, 8972)),
			"Hello of a new association, 8972 bytes, takes 8972",
			map[string]string{
				"xwarp.type": "3", "xwarp.version": "2", "xwarp.key": "0x0123456789abcdef", "xwarp.src_epoch": "0xa0000001", "xwarp.dst_epoch": "0x00000000",
				"xwarp.hello.largest": "8972", "xwarp.hello.length": "8972", "xwarp.lsn": "", "xwarp.ack": "",
			},
		},
		{
			"HelloAck",
			datagram(dgram.Header{Type: dgram.TypeHelloAck, SrcEpoch: epochB, DstEpoch: epochA}, hello(1472, 8972, 40)),
			"HelloAck to 8972 bytes, takes 1472",
			map[string]string{"xwarp.hello.largest": "1472", "xwarp.hello.answers": "8972", "xwarp.request": "1"},
		},
		{
			"Hello, probe",
			datagram(dgram.Header{Type: dgram.TypeHello}, hello(8972, 40, 40)),
			"Hello probe, 40 bytes, takes 8972", nil,
		},
		{
			"Reset",
			datagram(dgram.Header{Type: dgram.TypeReset}, nil),
			"Reset of association 0xfffffffe", map[string]string{"_ws.expert.message": "Association is over"},
		},
		{
			"Ack",
			datagram(dgram.Header{Type: dgram.TypeAck, LSN: epochA + 5, Ack: 3, Window: 512, Credit: 62, Held: 1000}, nil),
			"Ack #5",
			map[string]string{
				"xwarp.lsn": "2684354566", "xwarp.lsn.relative": "5", "xwarp.ack": "3", "xwarp.ack.relative": "5", "xwarp.window": "512",
				"xwarp.credit.code": "62", "xwarp.credit": "49152", "xwarp.held": "1000", "xwarp.held_ns": "256000", "xwarp.sack.range": "",
			},
		},
		{
			"Ack with SACK words",
			datagram(dgram.Header{Type: dgram.TypeAck, LSN: epochA, Ack: epochB, Window: 256, Credit: 17, Held: 0xffff, SackWords: 3}, words(0xc000000000000003, 1, 1<<63)),
			"Ack #0 and #1-2 #63-65 #192",
			map[string]string{"xwarp.sack.range": "#1-2|#63-65|#192", "xwarp.credit": "20", "xwarp.sack": "0xc000000000000003|0x0000000000000001|0x8000000000000000"},
		},
		{
			"Ack, no credit",
			datagram(dgram.Header{Type: dgram.TypeAck, Flags: dgram.FlagAckSoon, LSN: epochA, Ack: epochB}, nil),
			"Ack #0",
			map[string]string{"xwarp.flags.ack_soon": "1", "xwarp.flags.crc": "1", "xwarp.credit": "0"},
		},
	}
}

// segmentVector is one ULPDU, the words for it, and fields.
type segmentVector struct {
	seg  []byte
	info string
	want map[string]string
}

func sendVectors() []segmentVector {
	eight := []byte("12345678")
	return []segmentVector{
		{
			segment(rdmap.Send, ddp.Header{Last: true, MSN: 3}, eight...), "Send MSN=3 MO=0 L 8 bytes",
			map[string]string{
				"xwarp.ddp.tagged": "0", "xwarp.ddp.last": "1", "xwarp.ddp.version": "1", "xwarp.ddp.qn": "0", "xwarp.ddp.msn": "3", "xwarp.ddp.mo": "0",
				"xwarp.rdmap.version": "1", "xwarp.rdmap.opcode": "3", "xwarp.payload": hex.EncodeToString(eight), "xwarp.payload.length": "8", "xwarp.ulpdu.length": "26",
			},
		},
		{segment(rdmap.Send, ddp.Header{MSN: 4, MO: 9000}, eight...), "Send MSN=4 MO=9000 8 bytes", map[string]string{"xwarp.ddp.last": "0"}},
		{segment(rdmap.Send, ddp.Header{Last: true, MSN: 5}), "Send MSN=5 MO=0 L 0 bytes", map[string]string{"xwarp.payload": "", "xwarp.payload.length": "0"}},
		{segment(rdmap.SendSE, ddp.Header{Last: true, MSN: 6}, eight...), "Send with SE MSN=6 MO=0 L 8 bytes", nil},
		{
			segment(rdmap.SendInv, ddp.Header{Last: true, MSN: 7, ULP2: 0x1234}, eight...), "Send with Invalidate MSN=7 MO=0 STag=0x00001234 L 8 bytes",
			map[string]string{"xwarp.rdmap.inv_stag": "0x00001234", "xwarp.rdmap.reserved": ""},
		},
		{segment(rdmap.SendSEInv, ddp.Header{Last: true, MSN: 8, ULP2: 0x1234}), "Send with SE and Invalidate MSN=8 MO=0 STag=0x00001234 L 0 bytes", nil},
		{
			segment(rdmap.Immediate, ddp.Header{Last: true, MSN: 9}, bytesOf(rdmap.Imm(0xfeedfacecafebeef), rdmap.ImmLen)...),
			"Immediate Data MSN=9 MO=0 L 0xfeedfacecafebeef", map[string]string{"xwarp.imm": "0xfeedfacecafebeef", "xwarp.payload": ""},
		},
		{segment(rdmap.ImmediateSE, ddp.Header{Last: true, MSN: 10}, make([]byte, 8)...), "Immediate Data with SE MSN=10 MO=0 L 0x0000000000000000", nil},
	}
}

func oneSidedVectors() []segmentVector {
	to := ddp.Header{Last: true, STag: 0xab01, TO: 0x7f0000001000}
	read := rdmap.ReadReq{SinkSTag: 0x11, SinkTO: 0x1000, Size: 70000, SrcSTag: 0x22, SrcTO: 0x7f0000002000}
	atomic := rdmap.AtomicReq{Op: rdmap.CmpSwap, ID: 77, STag: 0x33, TO: 0x7f0000003000, Data: 1, Mask: ^uint64(0), Compare: 2, CompareMask: 0xff}
	return []segmentVector{
		{
			segment(rdmap.Write, to, 1, 2, 3), "Write STag=0x0000ab01 TO=0x00007f0000001000 L 3 bytes",
			map[string]string{"xwarp.ddp.tagged": "1", "xwarp.ddp.stag": "0x0000ab01", "xwarp.ddp.to": "0x00007f0000001000", "xwarp.payload": "010203"},
		},
		{
			segment(rdmap.WriteRecord, to, append(bytesOf(&record.Chunk{ID: 5, Length: 1003, Offset: 1000}, record.ChunkLen), 1, 2, 3)...),
			"Write-Record STag=0x0000ab01 TO=0x00007f0000001000 L ID=5 chunk at 1000 of 1003 3 bytes",
			map[string]string{"xwarp.record.id": "5", "xwarp.record.length": "1003", "xwarp.record.offset": "1000", "xwarp.payload": "010203", "xwarp.payload.length": "3"},
		},
		{
			segment(rdmap.ReadRequest, ddp.Header{Last: true, MSN: 1}, bytesOf(&read, rdmap.ReadReqLen)...),
			"Read Request MSN=1 MO=0 L 70000 bytes of STag=0x00000022 TO=0x00007f0000002000",
			map[string]string{
				"xwarp.ddp.qn": "1", "xwarp.read.sink_stag": "0x00000011", "xwarp.read.sink_to": "0x0000000000001000", "xwarp.read.size": "70000",
				"xwarp.read.src_stag": "0x00000022", "xwarp.read.src_to": "0x00007f0000002000",
			},
		},
		{segment(rdmap.ReadResponse, ddp.Header{STag: 0x11, TO: 0x1000}, 1, 2), "Read Response STag=0x00000011 TO=0x0000000000001000 2 bytes", nil},
		{
			segment(rdmap.AtomicRequest, ddp.Header{Last: true, MSN: 2}, bytesOf(&atomic, rdmap.AtomicReqLen)...),
			"Atomic Request MSN=2 MO=0 L CmpSwap ID=77 STag=0x00000033 TO=0x00007f0000003000",
			map[string]string{
				"xwarp.atomic.op": "2", "xwarp.atomic.id": "77", "xwarp.atomic.stag": "0x00000033", "xwarp.atomic.to": "0x00007f0000003000", "xwarp.atomic.data": "0x0000000000000001",
				"xwarp.atomic.mask": "0xffffffffffffffff", "xwarp.atomic.compare": "0x0000000000000002", "xwarp.atomic.compare_mask": "0x00000000000000ff",
			},
		},
		{
			segment(rdmap.AtomicResponse, ddp.Header{Last: true, MSN: 1}, bytesOf(&rdmap.AtomicResp{ID: 77, Value: 2}, rdmap.AtomicRespLen)...),
			"Atomic Response MSN=1 MO=0 L ID=77 value 0x0000000000000002",
			map[string]string{"xwarp.ddp.qn": "3", "xwarp.atomic.id": "77", "xwarp.atomic.value": "0x0000000000000002"},
		},
	}
}

// terminateVectors end streams for reasons of each layer, with and without
// copies of headers. They are the only good packets that raise a warning.
func terminateVectors() []segmentVector {
	end := ddp.Header{Last: true, MSN: 1}
	write := segment(rdmap.Write, ddp.Header{STag: 0x44, TO: 8}, make([]byte, 100)...)
	read := segment(rdmap.ReadRequest, ddp.Header{Last: true, MSN: 9}, bytesOf(&rdmap.ReadReq{SrcSTag: 0x55, Size: 6}, rdmap.ReadReqLen)...)
	return []segmentVector{
		{
			segment(rdmap.Terminate, end, blame(ddp.BaseBounds, write)...), "Terminate MSN=1 MO=0 L DDP: Tagged Buffer Error, Base or bounds violation",
			map[string]string{
				"xwarp.ddp.qn": "2", "xwarp.term.cause": "0x1101", "xwarp.term.layer": "1", "xwarp.term.type": "1", "xwarp.term.code": "0x01", "xwarp.term.length": "114",
				"xwarp.term.m": "1", "xwarp.term.d": "1", "xwarp.term.r": "0", "xwarp.ddp.stag": "0x00000044",
			},
		},
		{
			segment(rdmap.Terminate, end, blame(rdmap.AccessRights, read)...), "Terminate MSN=1 MO=0 L RDMAP: Remote Protection Error, Access rights violation",
			map[string]string{"xwarp.term.r": "1", "xwarp.read.src_stag": "0x00000055", "xwarp.read.size": "6", "xwarp.ddp.msn": "1|9"},
		},
		{
			segment(rdmap.Terminate, end, blame(iwarp.LLPCatastrophic, nil)...), "Terminate MSN=1 MO=0 L LLP: LLP Error, Local catastrophic error",
			map[string]string{"xwarp.term.layer": "2", "xwarp.term.d": "0", "xwarp.term.length": ""},
		},
	}
}

// carried puts each segment into a datagram of its own, with growing LSNs.
func carried(typ dgram.Type, lsn uint32, list []segmentVector) []vector {
	var out []vector
	for i, s := range list {
		h := dgram.Header{Type: typ, LSN: serial.U32(lsn + uint32(i)), Ack: epochB, Window: 256, Credit: 63}
		v := vector{s.info, nil, "", s.want}
		if typ == dgram.TypeUD {
			h.SrcEpoch, h.LSN, h.Ack = epochA, 17, 42
			v.info = "UD QP 17 > 42 " + s.info
		} else {
			v.info = fmt.Sprintf("Data #%d ack #0 %s", lsn+uint32(i)-epochA, s.info)
		}
		v.payload = datagram(h, nil, s.seg)
		out = append(out, v)
	}
	return out
}

// check compares what tshark made of a vector.
func (v *vector) check(t *testing.T, r row) {
	t.Helper()
	if got := r.one("_ws.col.Info"); !strings.HasSuffix(got, " > 18700 "+v.info) {
		t.Errorf("%s: info is %q, want %q", v.name, got, v.info)
	}
	for field, want := range v.want {
		if got := r.one(field); got != want {
			t.Errorf("%s: %s is %q, want %q", v.name, field, got, want)
		}
	}
}

// run dissects vectors and checks all of them.
func run(t *testing.T, list []vector) []row {
	t.Helper()
	needTshark(t)
	var payloads [][]byte
	fields := map[string]bool{}
	for _, v := range list {
		payloads = append(payloads, v.payload)
		for f := range v.want {
			fields[f] = true
		}
	}
	for _, f := range always {
		delete(fields, f)
	}
	rows := dissect(t, write(t, 18700, payloads), slices.Sorted(maps.Keys(fields))...)
	if len(rows) != len(list) {
		t.Fatalf("%d packets became %d", len(list), len(rows))
	}
	for i := range list {
		list[i].check(t, rows[i])
	}
	return rows
}

func TestDissector_vectors(t *testing.T) {
	list := llpVectors()
	list = append(list, carried(dgram.TypeData, epochA+100, sendVectors())...)
	list = append(list, carried(dgram.TypeData, epochA+200, oneSidedVectors())...)
	list = append(list, carried(dgram.TypeUD, 0, sendVectors()[:3])...)
	list = append(list, carried(dgram.TypeUD, 0, oneSidedVectors()[:2])...)
	for i, r := range run(t, list) {
		checkGood(t, i, r)
	}
	run(t, carried(dgram.TypeData, epochA+300, terminateVectors()))
}
