package netstack

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

const (
	tcpWindowAt   = 14
	tcpChecksumAt = 16
)

// narrow takes one unit off the window that a TCP segment offers.
//
// gVisor rounds what is left of the window down to whole units, of 256 bytes
// for 8 MiB, also when it judges what arrives. So the window shrinks while
// segments come in, and what the peer has sent up to the edge that it was told
// before is refused: the last bytes, and with them all acknowledgements from
// there on, until the stream is read. Linux fills windows like that; two programs
// that send before they read would wait forever. With one unit less, gVisor
// always accepts more than the peer was told.
func narrow(tcp []byte) {
	window := binary.BigEndian.Uint16(tcp[tcpWindowAt:])
	if window == 0 || header.TCPFlags(tcp[tcpFlagsAt])&header.TCPFlagSyn != 0 { // a SYN's is in bytes
		return
	}
	binary.BigEndian.PutUint16(tcp[tcpWindowAt:], window-1)
}
