package rdmap

import "testing"

func TestControl_roundTrip(t *testing.T) {
	for op := Write; op <= Terminate; op++ {
		if got, ok := ParseControl(Control(op)); !ok || got != op {
			t.Errorf("opcode %d came back as %d, %v", op, got, ok)
		}
	}
	for _, version := range []uint8{0, 2, 3} {
		if _, ok := ParseControl(version<<6 | uint8(Send)); ok {
			t.Errorf("RDMAP version %d was taken", version)
		}
	}
	if Control(Send) != 0x43 { // as in captures of Linux's siw driver
		t.Errorf("Control(Send) = %#x", Control(Send))
	}
}

func TestCause_bitWalk(t *testing.T) {
	var b [TerminateLen]byte
	for layer := range Layer(3) {
		for typ := range uint8(4) {
			for code := range 256 {
				c := Cause{layer, typ, uint8(code)}
				c.Put(b[:])
				if got, ok := ParseCause(b[:]); !ok || got != c {
					t.Fatalf("%+v came back as %+v, %v", c, got, ok)
				}
			}
		}
	}
	// RFC 5040, section 4.8: layer and type share the first byte.
	InvalidSTag.Put(b[:])
	if b != [4]byte{0x01, 0x00, 0, 0} {
		t.Errorf("InvalidSTag is % x on the wire", b)
	}
	if _, ok := ParseCause(b[:3]); ok {
		t.Error("parsed three bytes")
	}
	for _, c := range []Cause{InvalidSTag, BaseBounds, AccessRights, UnexpectedOp, MessageTooLong, CatastrophicLLP} {
		if c.Error() == "" {
			t.Errorf("%+v has no text", c)
		}
	}
}
