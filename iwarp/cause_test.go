package iwarp

import (
	"strings"
	"testing"
)

func TestCause_bitWalk(t *testing.T) {
	for layer := range Layer(16) {
		for typ := range uint8(16) {
			for code := range 256 {
				c := MakeCause(layer, typ, uint8(code))
				if c.Layer() != layer || c.Type() != typ || c.Code() != uint8(code) {
					t.Fatalf("%d/%d/%d came back as %d/%d/%d", layer, typ, code, c.Layer(), c.Type(), c.Code())
				}
			}
		}
	}
	if c := MakeCause(LayerLLP, 0, 2); c != LLPCRC {
		t.Errorf("layer 2, type 0, code 2 is %#04x", uint16(c))
	}
}

// Each cause has a text of its own, and every 16-bit value says something.
func TestCause_Error(t *testing.T) {
	seen := map[string]Cause{}
	known := 0
	for v := range 1 << 16 {
		c := Cause(v)
		text := c.Error()
		if other, twice := seen[text]; twice {
			t.Fatalf("%#04x and %#04x both say %q", v, uint16(other), text)
		}
		seen[text] = c
		if c.Known() {
			known++
		} else if !strings.Contains(text, "no RFC") {
			t.Errorf("%#04x is unknown and says %q", v, text)
		}
	}
	if want := 256 + len(registry); known != want {
		t.Errorf("%d causes are known, want %d", known, want)
	}
	if got := LLPCRC.Error(); got != "a CRC was wrong (LLP error 0/0x02)" {
		t.Errorf("LLPCRC says %q", got)
	}
}

func TestCause_Protection(t *testing.T) {
	for c, want := range map[Cause]bool{
		0x0100: true, 0x0102: true, 0x0109: true, 0x1100: true, 0x1101: true, 0x1103: true,
		0x0000: false, 0x0206: false, 0x1000: false, 0x1104: false, 0x1205: false, LLPLost: false,
	} {
		if c.Protection() != want {
			t.Errorf("%v: Protection() = %v", c, !want)
		}
	}
}
