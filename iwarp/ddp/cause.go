package ddp

import (
	"math"

	"github.com/xwarp/xwarp/iwarp"
)

// Causes that DDP finds (RFC 5041, section 7; numbers in RFC 6580).
const (
	LocalCatastrophic iwarp.Cause = 0x1000

	// Of tagged segments.

	InvalidSTag   iwarp.Cause = 0x1100
	BaseBounds    iwarp.Cause = 0x1101
	NotAssociated iwarp.Cause = 0x1102 // the STag is of another protection domain
	TOWrap        iwarp.Cause = 0x1103
	TaggedVersion iwarp.Cause = 0x1104

	// Of untagged segments.

	InvalidQN       iwarp.Cause = 0x1201
	NoBuffer        iwarp.Cause = 0x1202
	MSNRange        iwarp.Cause = 0x1203
	InvalidMO       iwarp.Cause = 0x1204
	MessageTooLong  iwarp.Cause = 0x1205
	UntaggedVersion iwarp.Cause = 0x1206
)

// BadHeader says why Parse refused b: what a Terminate answers with. RFC 5041
// has no code for a segment that is cut off, because no LLP delivers one; that
// is a catastrophe.
func BadHeader(b []byte) iwarp.Cause {
	switch {
	case len(b) == 0 || b[0]&maskVer == Version:
		return LocalCatastrophic
	case b[0]&bitTagged != 0:
		return TaggedVersion
	}
	return UntaggedVersion
}

// Wraps tells whether n bytes from tagged offset to on reach past the last
// one, 2^64 - 1 (RFC 5041, section 7.1: cause TOWrap). n >= 0.
func Wraps(to uint64, n int) bool {
	return n > 0 && to > math.MaxUint64-uint64(n-1)
}
