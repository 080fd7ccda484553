// Package iwarp holds the words that the iWARP protocols share. The protocols
// themselves are pure: bytes and the time in, bytes and events out, no I/O and
// no clock, so that they run unchanged in the simulator.
//
// Read RFC 5040 (RDMAP) and RFC 5041 (DDP) first; docs/PROTOCOL.md says what
// we put under them on datagrams.
package iwarp

// STag names registered memory to a peer (RFC 5041, section 4.1). The lower 8
// bits are the key, the rest is the index.
type STag uint32

// QN is the number of an untagged DDP queue (RFC 5040, section 4.2).
type QN uint32

// The untagged queues of RDMAP.
const (
	QNSend       QN = 0
	QNReadReq    QN = 1 // Read Requests and Atomic Requests
	QNTerminate  QN = 2
	QNAtomicResp QN = 3 // RFC 7306, section 5.2
)

// MSN is the number of a message on an untagged queue. The first is 1
// (RFC 5041, section 5.1).
type MSN uint32
