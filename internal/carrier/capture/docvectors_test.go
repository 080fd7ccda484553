package capture_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// What the fields of docs/vectors are called in Wireshark.
var (
	headerFields = map[string]string{
		"Type": "xwarp.type", "Flags": "xwarp.flags", "Count": "xwarp.count", "SackWords": "xwarp.sack_words",
		"Key": "xwarp.key", "SrcEpoch": "xwarp.src_epoch", "CRC": "xwarp.crc",
	}
	flowFields = map[string]string{
		"DstEpoch": "xwarp.dst_epoch", "LSN": "xwarp.lsn", "Ack": "xwarp.ack",
		"Window": "xwarp.window", "Credit": "xwarp.credit.code", "Held": "xwarp.held",
	}
	pairFields = map[string]string{"LSN": "xwarp.src_qp", "Ack": "xwarp.dst_qp"} // UD
	helloBody  = map[string]string{"MaxPayload": "xwarp.hello.largest", "Length": "xwarp.hello.length"}
	answerBody = map[string]string{"MaxPayload": "xwarp.hello.largest", "Length": "xwarp.hello.answers"}
	ddpFields  = map[string]string{"STag": "xwarp.ddp.stag", "TO": "xwarp.ddp.to", "QN": "xwarp.ddp.qn", "MSN": "xwarp.ddp.msn", "MO": "xwarp.ddp.mo"}
)

// checkNumbers compares what tshark shows with fields of a vector.
func checkNumbers(t *testing.T, v *vectors.Vector, r row, fields, names map[string]string) {
	t.Helper()
	for name, field := range names {
		text, ok := fields[name]
		if !ok {
			text = "0"
		}
		want, err := strconv.ParseUint(text, 0, 64)
		must(t, err)
		if got, err := strconv.ParseUint(r.one(field), 0, 64); err != nil || got != want {
			t.Errorf("%s: %s is %q, want %s = %s", v.Name, field, r.one(field), name, text)
		}
	}
}

func fieldsOf(maps ...map[string]string) (list []string) {
	seen := map[string]bool{}
	for _, m := range maps {
		for _, f := range m {
			if !seen[f] {
				seen[f] = true
				list = append(list, f)
			}
		}
	}
	return list
}

func TestDissector_docsDatagrams(t *testing.T) {
	needTshark(t)
	list := vectors.Load(t, "dgram.json")
	var payloads [][]byte
	for _, v := range list {
		payloads = append(payloads, v.Bytes)
	}
	rows := dissect(t, write(t, 18700, payloads), fieldsOf(headerFields, flowFields, pairFields, helloBody, answerBody)...)
	for i := range list {
		v, r := &list[i], rows[i]
		bad := strings.Contains(r.one("_ws.expert.severity"), severityError) || !strings.HasSuffix(r.one("frame.protocols"), ":xwarp")
		if bad != (v.Refused != "") {
			t.Errorf("%s: refused for %q; %v", v.Name, v.Refused, r)
		}
		if v.Refused != "" {
			continue
		}
		checkNumbers(t, v, r, v.Fields, headerFields)
		switch v.Uint(t, "Type") {
		case uint64(dgram.TypeData), uint64(dgram.TypeAck):
			checkNumbers(t, v, r, v.Fields, flowFields)
		case uint64(dgram.TypeUD):
			checkNumbers(t, v, r, v.Fields, pairFields)
		case uint64(dgram.TypeHello):
			checkNumbers(t, v, r, v.Body, helloBody)
		case uint64(dgram.TypeHelloAck):
			checkNumbers(t, v, r, v.Body, answerBody)
		}
	}
}

// Segments that some receiver refuses for their form, whatever its state, are
// marked; the others are not.
func TestDissector_docsSegments(t *testing.T) {
	needTshark(t)
	list := vectors.Load(t, "segments.json")
	var payloads [][]byte
	var l lsn
	for _, v := range list {
		payloads = append(payloads, l.data(v.Bytes))
	}
	rows := dissect(t, write(t, 18700, payloads), fieldsOf(ddpFields, map[string]string{"": "xwarp.rdmap.opcode"})...)
	for i := range list {
		v, r := &list[i], rows[i]
		var h ddp.Header
		if v.Refused != "" {
			if r["_ws.expert.severity"] == nil {
				t.Errorf("%s: nothing said, though it is refused for %s", v.Name, v.Refused)
			}
			continue
		}
		if op := rdmap.Opcode(v.Bytes[1] & 15); op != rdmap.Terminate { // which is a warning by itself
			checkGood(t, i+1, r)
		}
		if !h.Parse(v.Bytes) {
			t.Fatal(v.Name)
		}
		names := map[string]string{"STag": ddpFields["STag"], "TO": ddpFields["TO"]}
		if !h.Tagged {
			names = map[string]string{"QN": ddpFields["QN"], "MSN": ddpFields["MSN"], "MO": ddpFields["MO"]}
		}
		if len(r["xwarp.rdmap.opcode"]) == 1 { // no copy of another header
			checkNumbers(t, v, r, v.Fields, names)
		}
	}
}
