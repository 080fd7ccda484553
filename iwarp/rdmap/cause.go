package rdmap

import "github.com/xwarp/xwarp/iwarp"

// Causes that RDMAP finds (RFC 5040, sections 4.8 and 7; numbers in RFC 6580).
//
// A Write or Read Response that misses its region is DDP's to refuse
// (ddp.InvalidSTag, ddp.BaseBounds, ...), except for a right that the region
// does not grant: DDP has no code for that, so it is AccessRights.
const (
	LocalCatastrophic iwarp.Cause = 0x0000

	// Remote Protection Errors: a Read or atomic names memory that was not
	// granted, or a Send with Invalidate an STag that it may not revoke.

	InvalidSTag           iwarp.Cause = 0x0100
	BaseBounds            iwarp.Cause = 0x0101
	AccessRights          iwarp.Cause = 0x0102
	NotAssociated         iwarp.Cause = 0x0103 // the STag is of another protection domain
	TOWrap                iwarp.Cause = 0x0104
	CannotInvalidate      iwarp.Cause = 0x0109
	ProtectionUnspecified iwarp.Cause = 0x01ff

	// Remote Operation Errors: the message makes no sense.

	InvalidVersion       iwarp.Cause = 0x0205
	UnexpectedOpcode     iwarp.Cause = 0x0206
	StreamCatastrophic   iwarp.Cause = 0x0207 // among others: more Reads than the IRD, a misaligned atomic
	GlobalCatastrophic   iwarp.Cause = 0x0208
	OperationInvalidate  iwarp.Cause = 0x0209
	OperationUnspecified iwarp.Cause = 0x02ff
)
