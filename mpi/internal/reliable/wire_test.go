package reliable

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/proto/arq"
)

func TestHeader_golden(t *testing.T) {
	h := header{kind: kindData, flags: flagFirst | flagSoon, window: 0x0123, psn: 0x01020304, ack: 0x11121314, held: 0x2122}
	want := []byte{0xa1, 0, 0x01, 0x23, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, Version, 0}
	var b [HeaderLen]byte
	if h.put(b[:]); !bytes.Equal(b[:], want) {
		t.Errorf("got % x", b)
	}
}

func TestHeader_bitWalk(t *testing.T) {
	var b [HeaderLen]byte
	walk := func(h header) {
		var back header
		if h.put(b[:]); !back.parse(b[:]) || back != h {
			t.Errorf("sent %+v, got %+v", h, back)
		}
	}
	for i := range 32 {
		walk(header{kind: kindData, psn: 1 << i})
		walk(header{kind: kindAsk, ack: 1 << i})
		walk(header{kind: kindHello, ack: 1 << i})
		walk(header{kind: kindHelloAck, psn: 1 << i})
	}
	for i := range 16 {
		walk(header{kind: kindAck, held: 1 << i})
	}
	for i := range 10 {
		walk(header{kind: kindAck, window: 1 << i})
	}
	for _, f := range []uint8{flagFirst, flagLast, flagSoon} {
		walk(header{kind: kindData, flags: f})
	}
}

func TestHeader_refuses(t *testing.T) {
	good := header{kind: kindAck, sack: 2, window: arq.WindowMax}
	packet := func(h header, n int) []byte {
		b := make([]byte, n)
		h.put(b)
		return b
	}
	for name, b := range map[string][]byte{
		"too short":              packet(good, 100)[:HeaderLen-1],
		"SACK words cut off":     packet(good, HeaderLen+15),
		"more than SACK words":   packet(good, HeaderLen+17),
		"too many SACK words":    packet(header{kind: kindAck, sack: arq.MaxSackWords + 1}, HeaderLen+8*(arq.MaxSackWords+1)),
		"window too large":       packet(header{kind: kindData, window: arq.WindowMax + 1}, HeaderLen),
		"no kind":                packet(header{}, HeaderLen),
		"unknown kind":           packet(header{kind: kindEnd}, HeaderLen),
		"flags of an ack":        packet(header{kind: kindAck, flags: flagLast}, HeaderLen),
		"flags of an ask":        packet(header{kind: kindAsk, flags: flagSoon}, HeaderLen),
		"an ask with data":       packet(header{kind: kindAsk}, HeaderLen+1),
		"flags of a Hello":       packet(header{kind: kindHello, flags: flagSoon}, HeaderLen),
		"SACK words of a Hello":  packet(header{kind: kindHello, sack: 1}, HeaderLen+8),
		"an answer with data":    packet(header{kind: kindHelloAck}, HeaderLen+1),
		"data with SACK words":   packet(header{kind: kindData, sack: 1}, HeaderLen+8),
		"another version":        append(append(packet(header{kind: kindData}, HeaderLen)[:14:14], Version+1, 0), 1),
		"reserved byte not zero": append(append(packet(header{kind: kindData}, HeaderLen)[:14:14], Version, 1), 1),
	} {
		if h := (header{}); h.parse(b) {
			t.Errorf("%s: parsed as %+v", name, h)
		}
	}
	if h := (header{}); !h.parse(packet(good, HeaderLen+16)) {
		t.Error("refused what is right")
	}
}

func FuzzHeader(f *testing.F) {
	var b [HeaderLen]byte
	(&header{kind: kindData, flags: flagLast, window: 9, psn: 8, ack: 7, held: 6}).put(b[:])
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var h header
		if !h.parse(b) {
			return
		}
		var back [HeaderLen]byte
		if h.put(back[:]); !bytes.Equal(back[:], b[:HeaderLen]) {
			t.Fatalf("% x came back as % x", b[:HeaderLen], back)
		}
	})
}
