package netstack

import (
	"encoding/binary"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// greetings remembers what peers announced in their SYN. gVisor does not tell
// how large the segments of a connection are, and MPA wants its FPDUs to fit.
type greetings struct {
	by map[peer]greeting
}

// peer is a connection as seen from here.
type peer struct {
	addr        netip.Addr // of the remote end
	port, local uint16
}

type greeting struct {
	mss       uint16
	timestamp bool
	sack      bool
}

// greetingsMax bounds what strangers make us remember; the sizes of segments
// of those that are forgotten are taken from the MTU.
const greetingsMax = 1 << 14

// note remembers the options of a SYN.
func (g *greetings) note(from netip.Addr, tcp []byte) {
	at := peer{from, binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint16(tcp[2:])}
	if g.by == nil || len(g.by) >= greetingsMax {
		g.by = map[peer]greeting{}
	}
	offset := int(header.TCP(tcp).DataOffset())
	if offset < tcpHeaderLen || offset > len(tcp) {
		return
	}
	o := header.ParseSynOptions(tcp[tcpHeaderLen:offset], false)
	g.by[at] = greeting{o.MSS, o.TS, o.SACKPermitted}
}

// take returns and forgets what a peer announced.
func (g *greetings) take(at peer) (greeting, bool) {
	said, ok := g.by[at]
	delete(g.by, at)
	return said, ok
}

// segment returns how many bytes a segment carries that is sent to a peer who
// said g, when payload bytes fit a packet behind headers without options. gVisor leaves room for as many SACK
// blocks as there may ever be.
func (g greeting) segment(payload int) int {
	const (
		timestamp = 12 // bytes with padding
		sack      = 4  // and 8 for each block
	)
	n := min(int(g.mss), payload)
	switch {
	case g.timestamp && g.sack:
		return n - header.TCPOptionsMaximumSize
	case g.sack:
		return n - sack - 8*header.TCPMaxSACKBlocks
	case g.timestamp:
		return n - timestamp
	}
	return n
}
