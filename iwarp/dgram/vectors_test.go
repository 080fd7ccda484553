package dgram

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
)

func TestVectors_dgram(t *testing.T) {
	for _, v := range vectors.Load(t, "dgram.json") {
		var h, want Header
		v.Fill(t, &want)
		ok := h.Parse(v.Bytes)
		if v.Refused == "header" {
			if ok {
				t.Errorf("%s: parsed as %+v", v.Name, h)
			}
			continue
		}
		if !ok || h != want {
			t.Errorf("%s: parsed %+v, want %+v", v.Name, h, want)
			continue
		}
		crc := CRC(0, v.Bytes[CRCLen:])
		if good := h.CRC == crc; h.Flags&FlagCRC != 0 && good != (v.Refused == "") {
			t.Errorf("%s: CRC %#08x, computed %#08x", v.Name, h.CRC, crc)
		}
		if v.Refused != "" {
			continue
		}
		b := make([]byte, HeaderLen, len(v.Bytes))
		want.Put(b)
		b = appendBody(t, b, &v)
		if h.Flags&FlagCRC != 0 {
			Seal(b, CRC(0, b[CRCLen:]))
		}
		if !bytes.Equal(b, v.Bytes) {
			t.Errorf("%s: wrote % x, want % x", v.Name, b, v.Bytes)
		}
	}
}

// appendBody writes what follows the header and checks the body of a Hello in
// the other direction too.
func appendBody(t *testing.T, b []byte, v *vectors.Vector) []byte {
	t.Helper()
	for _, u := range v.ULPDUs {
		b = binary.BigEndian.AppendUint16(b, uint16(len(u)))
		b = append(b, u...)
	}
	for _, w := range v.Sack {
		b = append(b, w...)
	}
	if v.Body == nil {
		return b
	}
	var hello, got Hello
	v.FillBody(t, &hello)
	if got.Parse(v.Bytes[HeaderLen:]); got != hello {
		t.Errorf("%s: body %+v, want %+v", v.Name, got, hello)
	}
	var body [HelloLen]byte
	hello.Put(body[:])
	b = append(b, body[:]...)
	if v.Kind == "Hello" {
		b = append(b, make([]byte, int(hello.Length)-len(b))...) // padding
	}
	return b
}
