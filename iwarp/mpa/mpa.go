// Package mpa is Marker PDU Aligned Framing for TCP (RFC 5044) with enhanced
// connection set-up (RFC 6581): the start-up frames, what they agree on, and
// the framing of ULPDUs in a byte stream. No I/O, no clock.
package mpa

import (
	"strings"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// How long each end waits for the other's start-up frame, as Linux's siw does.
const (
	RequestTimeout = 5 * mono.Second
	ReplyTimeout   = 10 * mono.Second
)

// RTR is a set of kinds of first message in peer-to-peer mode (RFC 6581,
// section 9).
type RTR uint8

// Kinds of RTR.
const (
	RTRSend  RTR = 1 << iota // an FPDU without a ULPDU
	RTRWrite                 // zero-length RDMA Write
	RTRRead                  // zero-length RDMA Read

	rtrAll = RTRSend | RTRWrite | RTRRead
)

func (r RTR) String() string {
	var names []string
	for i, name := range [...]string{"Send", "Write", "Read"} {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "nothing"
	}
	return strings.Join(names, " or ")
}

// Config is what one end wants of a connection. Zero values mean the defaults.
type Config struct {
	// Revision of the start-up: 1 is RFC 5044, 2 is RFC 6581. Default 2. A
	// responder follows the initiator.
	Revision uint8
	// CRC asks for a CRC32C in each FPDU; it is there when either end asks.
	// Default off, as in Linux's siw.
	CRC bool
	// Markers asks the peer to put markers into what it sends. Default off.
	Markers bool
	// IRD is how many Reads and atomics of the peer may be outstanding, ORD
	// how many of ours are wanted. Default 0: none.
	IRD, ORD uint16
	// RTR is, for an initiator, the kinds of first message that it can send;
	// not empty asks for peer-to-peer mode. For a responder: those it takes;
	// default all. An initiator's default is none: no peer-to-peer mode.
	// Revision 2 only. The Read takes an ORD of 1 at least, and gets it.
	RTR RTR
}

// Agreed is what both ends of a connection hold to.
type Agreed struct {
	Revision    uint8
	CRC         bool
	SendMarkers bool
	RecvMarkers bool
	IRD, ORD    uint16 // ours: Reads of the peer that we keep, Reads of ours that may be outstanding
	// RTR is the kind of message that the initiator sends first, and that the
	// responder waits for before it sends anything; 0 in client-server mode.
	RTR     RTR
	Private []byte // the peer's private data
}
