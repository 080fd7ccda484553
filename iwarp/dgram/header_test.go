package dgram

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestHeader_golden(t *testing.T) {
	h := Header{
		Type: TypeAck, Flags: FlagAckSoon, Key: 0x0102030405060708, SrcEpoch: 0x11121314, DstEpoch: 0x21222324,
		LSN: 0x31323334, Ack: 0x41424344, Window: 0x102, Credit: 0x15, Held: 0x5354, SackWords: 1,
	}
	want := []byte{0, 0, 0, 0, 0x22, 0x40, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
		0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x55, 0x02, 0x53, 0x54}
	b := make([]byte, HeaderLen+8)
	h.Put(b)
	if !bytes.Equal(b[:HeaderLen], want) {
		t.Fatalf("got  % x\nwant % x", b[:HeaderLen], want)
	}
	var back Header
	if !back.Parse(b) || back != h {
		t.Fatalf("parsed %+v", back)
	}
}

func TestHeader_bitWalk(t *testing.T) {
	var b [HeaderLen]byte
	check := func(h Header) {
		t.Helper()
		h.Type = TypeData
		h.SrcEpoch |= 1
		h.Put(b[:])
		var back Header
		if !back.Parse(b[:]) || back != h {
			t.Errorf("sent %+v, got %+v", h, back)
		}
	}
	for i := range 64 {
		check(Header{Key: 1 << i})
		if i < 32 {
			check(Header{SrcEpoch: 1 << i})
			check(Header{DstEpoch: 1 << i})
			check(Header{LSN: 1 << i})
			check(Header{Ack: 1 << i})
		}
		if i < 16 {
			check(Header{Held: 1 << i})
		}
		if i < 10 {
			check(Header{Window: 1 << i})
		}
		if i < 8 {
			check(Header{Count: 1 << i})
			check(Header{Flags: 1 << i})
		}
		if i < 6 {
			check(Header{Credit: 1 << i})
		}
	}
}

func TestParse_refuses(t *testing.T) {
	good := Header{Type: TypeAck, SrcEpoch: 1, SackWords: 2}
	for _, c := range []struct {
		name string
		h    Header
		len  int
		edit func(b []byte)
	}{
		{"too short", Header{Type: TypeData, SrcEpoch: 1}, HeaderLen - 1, nil},
		{"empty", good, 0, nil},
		{"another version", Header{Type: TypeData, SrcEpoch: 1}, HeaderLen, func(b []byte) { b[4] ^= 0x10 }},
		{"no type", Header{SrcEpoch: 1}, HeaderLen, nil},
		{"unknown type", Header{Type: 7, SrcEpoch: 1}, HeaderLen + HelloLen, nil},
		{"window too large", Header{Type: TypeData, SrcEpoch: 1, Window: WindowMax + 1}, HeaderLen, nil},
		{"UD with SACK words", Header{Type: TypeUD, SrcEpoch: 1, SackWords: 1}, HeaderLen + 8, nil},
		{"hello without its body", Header{Type: TypeHello, SrcEpoch: 1}, HeaderLen + HelloLen - 1, nil},
		{"hello with ULPDUs", Header{Type: TypeHello, SrcEpoch: 1, Count: 1}, HeaderLen + HelloLen, nil},
		{"answer to a hello with SACK words", Header{Type: TypeHelloAck, SrcEpoch: 1, SackWords: 1}, HeaderLen + 8, nil},
		{"data with SACK words", Header{Type: TypeData, SrcEpoch: 1, SackWords: 1}, HeaderLen + 8, nil},
		{"no epoch", Header{Type: TypeData}, HeaderLen, nil},
		{"ack with ULPDUs", Header{Type: TypeAck, SrcEpoch: 1, Count: 1}, HeaderLen, nil},
		{"ack with a missing word", good, HeaderLen + 8, nil},
		{"ack with a word too many", good, HeaderLen + 24, nil},
		{"ack with too many words", Header{Type: TypeAck, SrcEpoch: 1, SackWords: MaxSackWords + 1}, HeaderLen + 8*(MaxSackWords+1), nil},
	} {
		b := make([]byte, HeaderLen+8*(MaxSackWords+2))
		c.h.Put(b)
		if c.edit != nil {
			c.edit(b)
		}
		var h Header
		if h.Parse(b[:c.len]) {
			t.Errorf("%s: parsed as %+v", c.name, h)
		}
	}
}

func TestCRC_sealsEverything(t *testing.T) {
	b := make([]byte, 200)
	(&Header{Type: TypeData, SrcEpoch: 1, Count: 1}).Put(b)
	Seal(b, CRC(CRC(0, b[CRCLen:100]), b[100:])) // in pieces, as frames are
	for i := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			var h Header
			if h.Parse(c) && CRC(0, c[CRCLen:]) == h.CRC {
				t.Fatalf("bit %d of byte %d can flip unnoticed", bit, i)
			}
		}
	}
}

func FuzzHeader(f *testing.F) {
	b := make([]byte, HeaderLen+16)
	(&Header{Type: TypeAck, SrcEpoch: 1, SackWords: 2}).Put(b)
	f.Add(b)
	(&Header{Type: TypeData, SrcEpoch: 9, Count: 3, Flags: FlagCRC}).Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Header
		if !h.Parse(b) {
			return
		}
		out := make([]byte, len(b))
		h.Put(out)
		h.CRC = 0
		if !again.Parse(out) || again != h {
			t.Fatalf("%+v became %+v", h, again)
		}
	})
}

func TestHello(t *testing.T) {
	b := make([]byte, HeaderLen+HelloLen)
	(&Header{Type: TypeHello, SrcEpoch: 1}).Put(b)
	want := Hello{MaxPayload: 0x2334, Length: 0x0405}
	want.Put(b[HeaderLen:])
	if !bytes.Equal(b[HeaderLen:], []byte{0x23, 0x34, 4, 5}) {
		t.Errorf("body % x", b[HeaderLen:])
	}
	var h Header
	var got Hello
	if !h.Parse(b) {
		t.Fatal("not parsed")
	}
	if got.Parse(b[HeaderLen:]); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The list of addresses in a Hello.
func TestPutPaths(t *testing.T) {
	list := []netip.AddrPort{netip.MustParseAddrPort("10.1.2.3:18700"), netip.MustParseAddrPort("[fd00::9]:258")}
	b := make([]byte, PathsLen(len(list)))
	PutPaths(b, list)
	want := []byte{
		2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3, 0x49, 0x0c,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2,
	}
	if !bytes.Equal(b, want) {
		t.Fatalf("% x, want % x", b, want)
	}
	for i, at := range list {
		if got := ParsePath(b[1+i*PathLen:]); got != at {
			t.Errorf("number %d is %v, want %v", i, got, at)
		}
	}
}

// PutSmall writes what Put, the length and Seal write.
func TestHeader_PutSmall(t *testing.T) {
	h := Header{
		Type: TypeData, Flags: FlagCRC | FlagAckSoon, Count: 1, Key: 0x0102030405060708, SrcEpoch: 0xa1a2a3a4, DstEpoch: 0xb1b2b3b4,
		LSN: 0xc1c2c3c4, Ack: 0xd1d2d3d4, Window: 511, Credit: 63, Held: 0xe1e2,
	}
	for n := 14; n < 1000; n += 7 {
		for _, sealed := range []bool{true, false} {
			want := make([]byte, HeaderLen+LengthLen+n)
			for i := range n {
				want[HeaderLen+LengthLen+i] = byte(i * n)
			}
			got := bytes.Clone(want)
			h.Put(want)
			binary.BigEndian.PutUint16(want[HeaderLen:], uint16(n))
			if sealed {
				Seal(want, CRC(0, want[CRCLen:]))
			}
			if h.PutOne(got, sealed); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, sealed %v:\n%x, want\n%x", n, sealed, got, want)
			}
		}
	}
}
