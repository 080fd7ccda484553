package device_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/xwarp/xwarp/verbs/device"
)

// Nothing of what is written, nor of the job key, can be read on the wire.
func TestSecret_nothingInClear(t *testing.T) {
	const seed = 8
	rng := rand.New(rand.NewPCG(seed, 0)) // as testExchange draws its messages
	pattern := make([]byte, 8)
	if n := rng.IntN(400); n < len(pattern) || rng.IntN(4) == 0 {
		t.Fatal("another seed is needed")
	}
	for i := range pattern {
		pattern[i] = byte(rng.Uint32())
	}
	for _, key := range [][]byte{nil, secret} {
		file := filepath.Join(t.TempDir(), "wire.pcapng")
		spec := device.Spec{Fabric: "udp", Key: 0x7365637265746b65, Secret: key, Capture: file}
		a, err := openHost(nil, spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Capture = ""
		b, err := openHost(nil, spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{a.connect(b), b.connect(a)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		testExchange(t, a, b, 100, seed)
		for _, err := range []error{a.ctx.Close(), b.ctx.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		wire, err := os.ReadFile(file)
		if err != nil || len(wire) < 100*100 {
			t.Fatalf("%d bytes were captured, %v", len(wire), err)
		}
		for _, clear := range [][]byte{pattern, []byte("secretke")} {
			if found := bytes.Contains(wire, clear); found != (key == nil) {
				t.Errorf("with a secret of %d bytes, %q is on the wire: %v", len(key), clear, found)
			}
		}
	}
}

// A secret of another length is refused: it may be a mistake.
func TestSecret_refused(t *testing.T) {
	for _, wrong := range [][]byte{{}, secret[1:]} {
		if ctx, err := device.Open(device.Spec{Fabric: "udp", Secret: wrong}); err == nil {
			t.Errorf("a secret of %d bytes is taken: %v", len(wrong), ctx.Close())
		}
	}
}
