package mpa

import (
	"bytes"
	"errors"
	"testing"

	"github.com/xwarp/xwarp/internal/test/vectors"
	"github.com/xwarp/xwarp/iwarp"
)

// Start-up frames and FPDUs in docs/vectors/mpa.json, most of them from siw,
// both ways.
func TestVectors_mpa(t *testing.T) {
	for _, v := range vectors.Load(t, "mpa.json") {
		switch v.Kind {
		case "Request", "Reply":
			checkFrame(t, &v)
		case "FPDU", "decode":
			checkFPDUs(t, &v)
		default:
			t.Errorf("%s: kind %q", v.Name, v.Kind)
		}
	}
}

func checkFrame(t *testing.T, v *vectors.Vector) {
	t.Helper()
	var f, want Frame
	v.Fill(t, &want)
	n, err := f.Parse(v.Bytes, v.Kind == "Reply")
	if cause, refused := v.Cause(t); refused {
		if n != 0 || !errors.Is(err, iwarp.Cause(cause)) {
			t.Errorf("%s: %d, %v", v.Name, n, err)
		}
		return
	}
	want.Private = v.Private
	if n != len(v.Bytes) || err != nil || !bytes.Equal(f.Private, want.Private) {
		t.Errorf("%s: %d, private data % x (%v)", v.Name, n, f.Private, err)
	}
	private := f.Private
	f.Private, want.Private = nil, nil
	if !bytes.Equal(f.Append(nil), want.Append(nil)) {
		t.Errorf("%s: parsed %+v, want %+v", v.Name, f, want)
	}
	f.Private = private
	if b := f.Append(nil); !bytes.Equal(b, v.Bytes) {
		t.Errorf("%s: wrote % x, want % x", v.Name, b, v.Bytes)
	}
}

func checkFPDUs(t *testing.T, v *vectors.Vector) {
	t.Helper()
	var how struct{ CRC, Markers bool }
	v.Fill(t, &how)
	var want [][]byte
	for _, u := range v.ULPDUs {
		want = append(want, u)
	}
	got, cause, ok := receive(t, &Rx{CRC: how.CRC, Markers: how.Markers}, v.Bytes, func() int { return 7 })
	if !ok || !equal(got, want) {
		t.Errorf("%s: % x, %v", v.Name, got, cause)
	}
	if b := encode(&Tx{CRC: how.CRC, Markers: how.Markers}, want); v.Kind == "FPDU" && !bytes.Equal(b, v.Bytes) {
		t.Errorf("%s: wrote % x, want % x", v.Name, b, v.Bytes)
	}
}
