package p2p

import (
	"encoding/hex"
	"testing"
)

func TestHeader_bytes(t *testing.T) {
	h := header{kind: kindRTS, context: 0x0102, source: 0x03040506, tag: 0x0708090a, id: 0x0b0c0d0e}
	var b [rtsLen]byte
	h.put(b[:])
	if got, want := hex.EncodeToString(b[:headerLen]), "020001020304050607"+"08090a0b0c0d0e"; got != want {
		t.Errorf("header is %s, want %s", got, want)
	}
	var back header
	if !back.parse(b[:], 0x03040507) || back != h {
		t.Errorf("parse gives %+v, want %+v", back, h)
	}
	g := grant{request: 1, rkey: 2, addr: 3, size: 4}
	var c [ctsLen]byte
	g.put(c[:])
	if got, want := hex.EncodeToString(c[headerLen:]), "00000001"+"00000002"+"0000000000000003"+"0000000000000004"; got != want {
		t.Errorf("grant is %s, want %s", got, want)
	}
	var again grant
	if again.get(c[:]); again != g {
		t.Errorf("get gives %+v, want %+v", again, g)
	}
}

func TestHeader_refuses(t *testing.T) {
	good := func() []byte {
		b := make([]byte, ctsLen)
		(&header{kind: kindCTS, source: 1}).put(b)
		return b
	}
	for name, b := range map[string][]byte{
		"empty":             nil,
		"short header":      good()[:headerLen-1],
		"short CTS":         good()[:ctsLen-1],
		"kind 0":            append([]byte{0}, good()[1:]...),
		"unknown kind":      append([]byte{byte(kindEnd)}, good()[1:]...),
		"source too large":  func() []byte { b := good(); b[7] = 2; return b }(),
		"source below zero": func() []byte { b := good(); b[4] = 0x80; return b }(),
		"tag below zero":    func() []byte { b := good(); b[8] = 0x80; return b }(),
	} {
		var h header
		if h.parse(b, 2) {
			t.Errorf("%s: accepted as %+v", name, h)
		}
	}
	var h header
	if !h.parse(good(), 2) {
		t.Error("the good one was refused")
	}
}
