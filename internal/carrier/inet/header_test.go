package inet

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func sizeName(n int) string { return strconv.Itoa(n) + "B" }

// Frames that Linux sent over a veth pair with checksum offload switched off;
// tshark 4 with checksum validation on finds all of them good.
var golden = []struct {
	name    string
	hex     string
	payload []byte
}{
	{"text", `02000000000b02000000000a08004500002700004000401126 2a0a4d00010a4d0002
		12b712b8001337e0 68656c6c6f207877617270`, []byte("hello xwarp")},
	{"empty", `02000000000b02000000000a08004500001c00004000401126350a4d00010a4d0002
		12b712b80008c5d2`, nil},
	{"64 bytes", `02000000000b02000000000a08004500005c0000400040 1125f50a4d00010a4d0002
		12b712b80048e14e 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
		202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f`, counting(64)},
	{"with record route", `02000000000b02000000000a08004700002f000040004011c7100a4d00010a4d0002
		0707080a4d000100 12b712b8001337e0 68656c6c6f207877617270`, []byte("hello xwarp")},
}

var (
	macA, macB = MAC{2, 0, 0, 0, 0, 10}, MAC{2, 0, 0, 0, 0, 11}
	addrA      = netip.MustParseAddrPort("10.77.0.1:4791")
	addrB      = netip.MustParseAddrPort("10.77.0.2:4792")
)

func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n", r) {
			return -1
		}
		return r
	}, s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHeaders_golden(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			frame := unhex(t, g.hex)
			eth := Ethernet(frame)
			if !eth.Valid() || eth.Dst() != macB || eth.Src() != macA || eth.Type() != EtherIPv4 {
				t.Errorf("Ethernet: %v to %v, type %#x", eth.Src(), eth.Dst(), eth.Type())
			}
			ip := IPv4(frame[EthernetLen:])
			if !ip.Valid() || !ip.ChecksumGood() || ip.Fragmented() {
				t.Fatal("IPv4 header is not accepted")
			}
			if ip.TotalLen() != len(frame)-EthernetLen || ip.Protocol() != ProtoUDP || ip.TTL() != 64 || ip.ID() != 0 {
				t.Errorf("IPv4: length %d, protocol %d, TTL %d, ID %d", ip.TotalLen(), ip.Protocol(), ip.TTL(), ip.ID())
			}
			if ip.Src() != addrA.Addr().As4() || ip.Dst() != addrB.Addr().As4() {
				t.Errorf("IPv4: %v to %v", ip.Src(), ip.Dst())
			}
			udp := UDP(ip[ip.HeaderLen():])
			if !udp.Valid() || udp.SrcPort() != 4791 || udp.DstPort() != 4792 || udp.Len() != UDPLen+len(g.payload) || !udp.HasChecksum() {
				t.Errorf("UDP: %d to %d, length %d", udp.SrcPort(), udp.DstPort(), udp.Len())
			}
			if !ip.pseudo(udp.Len()).Add(udp[:udp.Len()]).Good() {
				t.Error("UDP checksum is wrong")
			}
			if !bytes.Equal(udp[UDPLen:udp.Len()], g.payload) {
				t.Errorf("payload %q", udp[UDPLen:])
			}
		})
	}
}

func TestTemplate_golden(t *testing.T) {
	tmpl := newTemplate(addresses{srcMAC: macA, dstMAC: macB, src: addrA, dst: addrB, ttl: 64})
	for _, g := range golden[:3] { // the last one has options, which we do not send
		frame := make([]byte, HeaderLen, HeaderLen+len(g.payload))
		sum := tmpl.put((*[HeaderLen]byte)(frame), 0, len(g.payload))
		frame = append(frame, g.payload...)
		sum.Add(g.payload).PutChecksumUDP(frame[udpAt+udpChecksum:])
		if want := unhex(t, g.hex); !bytes.Equal(frame, want) {
			t.Errorf("%s:\n%x, want\n%x", g.name, frame, want)
		}
	}
}

// TestTemplate_everyLength compares the incremental checksum with a full one.
func TestTemplate_everyLength(t *testing.T) {
	tmpl := newTemplate(addresses{srcMAC: macA, dstMAC: macB, src: addrA, dst: addrB, ttl: 64})
	var frame [HeaderLen]byte
	for n := 0; n <= 65507; n += 13 {
		tmpl.put(&frame, uint16(n*7), n)
		ip := IPv4(frame[ipAt:])
		if !ip.ChecksumGood() || ip.TotalLen() != IPv4Len+UDPLen+n || ip.ID() != uint16(n*7) || UDP(ip[IPv4Len:]).Len() != UDPLen+n {
			t.Fatalf("%d bytes: header %x", n, frame)
		}
	}
}

// TestIPv4_bitWalk flips every bit of a header: the checksum notices each, and
// each accessor changes for the bits of its own field only.
func TestIPv4_bitWalk(t *testing.T) {
	var b [IPv4Len]byte
	PutIPv4(b[:], IPv4Fields{TotalLen: 0x1234, ID: 0x5678, TTL: 9, Protocol: 17, Src: [4]byte{1, 2, 3, 4}, Dst: [4]byte{5, 6, 7, 8}})
	type fields struct {
		headerLen, totalLen int
		id                  uint16
		fragmented          bool
		ttl, protocol       uint8
		src, dst            [4]byte
	}
	read := func(h IPv4) fields {
		return fields{h.HeaderLen(), h.TotalLen(), h.ID(), h.Fragmented(), h.TTL(), h.Protocol(), h.Src(), h.Dst()}
	}
	whole := read(b[:])
	owner := func(bit int) (mask fields) { // non-zero where the bit is
		switch byt := bit / 8; {
		case byt == 0 && bit%8 < 4:
		case byt == 0:
			mask.headerLen = 1
		case byt == 1:
		case byt < 4:
			mask.totalLen = 1
		case byt < 6:
			mask.id = 1
		case byt < 8:
			mask.fragmented = bit > 6*8+1
		case byt == 8:
			mask.ttl = 1
		case byt == 9:
			mask.protocol = 1
		case byt < 12:
		case byt < 16:
			mask.src[0] = 1
		default:
			mask.dst[0] = 1
		}
		return mask
	}
	for bit := range IPv4Len * 8 {
		b[bit/8] ^= 0x80 >> (bit % 8)
		now, want := read(b[:]), owner(bit)
		changed := fields{}
		if now.headerLen != whole.headerLen {
			changed.headerLen = 1
		}
		if now.totalLen != whole.totalLen {
			changed.totalLen = 1
		}
		if now.id != whole.id {
			changed.id = 1
		}
		changed.fragmented = now.fragmented != whole.fragmented
		if now.ttl != whole.ttl {
			changed.ttl = 1
		}
		if now.protocol != whole.protocol {
			changed.protocol = 1
		}
		if now.src != whole.src {
			changed.src[0] = 1
		}
		if now.dst != whole.dst {
			changed.dst[0] = 1
		}
		if changed != want {
			t.Errorf("bit %d changes %+v, want %+v", bit, changed, want)
		}
		if now.headerLen == IPv4Len && IPv4(b[:]).ChecksumGood() {
			t.Errorf("checksum does not notice bit %d", bit)
		}
		b[bit/8] ^= 0x80 >> (bit % 8)
	}
}

func TestIPv4_Valid(t *testing.T) {
	good := make([]byte, IPv4Len)
	PutIPv4(good, IPv4Fields{TotalLen: 28, Protocol: ProtoUDP})
	for _, c := range []struct {
		name  string
		spoil func([]byte) []byte
		want  bool
	}{
		{"good", func(b []byte) []byte { return b }, true},
		{"cut short", func(b []byte) []byte { return b[:IPv4Len-1] }, false},
		{"empty", func(b []byte) []byte { return nil }, false},
		{"version 6", func(b []byte) []byte { b[0] = 0x65; return b }, false},
		{"header of 16 bytes", func(b []byte) []byte { b[0] = 0x44; return b }, false},
		{"options cut off", func(b []byte) []byte { b[0] = 0x46; return b }, false},
		{"total length below the header's", func(b []byte) []byte { binary.BigEndian.PutUint16(b[ipTotalLen:], 19); return b }, false},
	} {
		if got := IPv4(c.spoil(bytes.Clone(good))).Valid(); got != c.want {
			t.Errorf("%s: Valid is %v", c.name, got)
		}
	}
}

func TestUDP_Valid(t *testing.T) {
	var b [UDPLen]byte
	for _, c := range []struct {
		length int
		want   bool
	}{{0, false}, {7, false}, {8, true}, {65535, true}} {
		PutUDP(b[:], 1, 2, c.length)
		if got := UDP(b[:]).Valid(); got != c.want {
			t.Errorf("length field %d: Valid is %v", c.length, got)
		}
	}
	if UDP(b[:7]).Valid() {
		t.Error("7 bytes are a valid header")
	}
}

func TestMAC(t *testing.T) {
	if s := (MAC{2, 0, 0xab, 0, 0, 0x0f}).String(); s != "02:00:ab:00:00:0f" {
		t.Errorf("String is %s", s)
	}
	if !(MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).Group() || !(MAC{1}).Group() || macA.Group() {
		t.Error("Group is wrong")
	}
}

// FuzzHeaders: views of any bytes never panic once Valid said yes.
func FuzzHeaders(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if eth := Ethernet(b); eth.Valid() {
			_, _, _ = eth.Dst(), eth.Src(), eth.Type()
		}
		if ip := IPv4(b); ip.Valid() {
			_, _, _, _ = ip.Src(), ip.Dst(), ip.ID(), ip.TTL()
			ip.ChecksumGood()
			if n := ip.HeaderLen(); n < IPv4Len || n > len(b) || n > ip.TotalLen() {
				t.Fatalf("header of %d bytes in %d", n, len(b))
			}
		}
		if udp := UDP(b); udp.Valid() {
			_, _, _ = udp.SrcPort(), udp.DstPort(), udp.HasChecksum()
		}
	})
}
