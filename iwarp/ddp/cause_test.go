package ddp

import (
	"math"
	"testing"

	"github.com/xwarp/xwarp/iwarp"
)

func TestCauses_areDDPs(t *testing.T) {
	for _, c := range []iwarp.Cause{
		LocalCatastrophic, InvalidSTag, BaseBounds, NotAssociated, TOWrap, TaggedVersion,
		InvalidQN, NoBuffer, MSNRange, InvalidMO, MessageTooLong, UntaggedVersion,
	} {
		if c.Layer() != iwarp.LayerDDP || !c.Known() {
			t.Errorf("%v (%#04x) is no cause of DDP", c, uint16(c))
		}
	}
}

func TestBadHeader(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		want iwarp.Cause
	}{
		{"nothing", nil, LocalCatastrophic},
		{"tagged, cut off", []byte{0xc1, 0x40, 1, 2}, LocalCatastrophic},
		{"untagged, cut off", make([]byte, UntaggedLen-1), UntaggedVersion},
		{"untagged, version 0", make([]byte, UntaggedLen), UntaggedVersion},
		{"untagged, version 2, one byte", []byte{0x42}, UntaggedVersion},
		{"tagged, version 3", append([]byte{0x83}, make([]byte, TaggedLen)...), TaggedVersion},
	}
	for _, tt := range tests {
		var h Header
		if h.Parse(tt.b) {
			t.Errorf("%s: parsed", tt.name)
		}
		if got := BadHeader(tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestWraps(t *testing.T) {
	const top = math.MaxUint64
	tests := []struct {
		to   uint64
		n    int
		want bool
	}{
		{0, 0, false}, {0, 1, false}, {0, math.MaxInt, false},
		{top, 0, false}, {top, 1, false}, {top, 2, true},
		{top - 7, 8, false}, {top - 7, 9, true},
		{top - math.MaxInt + 1, math.MaxInt, false}, {top - math.MaxInt + 2, math.MaxInt, true},
	}
	for _, tt := range tests {
		if got := Wraps(tt.to, tt.n); got != tt.want {
			t.Errorf("Wraps(%#x, %d) = %v", tt.to, tt.n, got)
		}
	}
}
