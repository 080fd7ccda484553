package rping

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The first Send of rping on Linux' siw.
const capturedInfo = "0000558f99cf837032fc740000000040"

func TestInfo_siw(t *testing.T) {
	b, err := hex.DecodeString(capturedInfo)
	if err != nil {
		t.Fatal(err)
	}
	var i Info
	if want := (Info{Addr: 0x558f99cf8370, RKey: 0x32fc7400, Size: 64}); !i.Parse(b) || i != want {
		t.Errorf("got %+v, want %+v", i, want)
	}
	out := make([]byte, InfoLen)
	i.Put(out)
	if !bytes.Equal(out, b) {
		t.Errorf("% x went out as % x", b, out)
	}
}

func FuzzInfo(f *testing.F) {
	b, _ := hex.DecodeString(capturedInfo)
	f.Add(b)
	f.Add(b[:15])
	f.Add(append(b, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		var i Info
		if ok := i.Parse(b); ok != (len(b) == InfoLen) {
			t.Fatalf("%d bytes: %v", len(b), ok)
		} else if !ok {
			return
		}
		out := make([]byte, InfoLen)
		if i.Put(out); !bytes.Equal(out, b) {
			t.Errorf("% x went out as % x", b, out)
		}
	})
}
