package vectors

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

func TestHex(t *testing.T) {
	var h Hex
	if err := json.Unmarshal([]byte(`"c1 40\n0102"`), &h); err != nil || string(h) != "\xc1\x40\x01\x02" {
		t.Errorf("% x, %v", []byte(h), err)
	}
	for _, bad := range []string{`"c"`, `"xy"`, `7`} {
		if json.Unmarshal([]byte(bad), &h) == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestFill(t *testing.T) {
	var got struct {
		A uint8
		B uint64
		C bool
		D uint32
	}
	got.D = 7
	v := Vector{Fields: map[string]string{"A": "255", "B": "0xffffffffffffffff", "C": "true"}}
	if v.Fill(t, &got); got.A != 255 || got.B != 1<<64-1 || !got.C || got.D != 0 {
		t.Errorf("%+v", got)
	}
	if v.Uint(t, "A") != 255 || v.Uint(t, "missing") != 0 {
		t.Error("Uint")
	}
	if _, ok := v.Cause(t); ok {
		t.Error("refused for nothing")
	}
	v.Refused = "0x1205"
	if c, ok := v.Cause(t); !ok || c != 0x1205 {
		t.Errorf("%#x, %v", c, ok)
	}
}

// Every file of the folder can be read: names are unique, bytes are hex.
func TestLoad(t *testing.T) {
	files, err := filepath.Glob("../../../docs/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, file := range files {
		t.Logf("%s: %d vectors", filepath.Base(file), len(Load(t, filepath.Base(file))))
	}
}
