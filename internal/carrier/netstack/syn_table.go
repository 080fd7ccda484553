package netstack

import (
	"encoding/binary"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// synTable remembers what peers announced in their SYN. gVisor does not tell
// how large the segments of a connection are, and MPA wants its FPDUs to fit.
type synTable struct {
	by map[peer]synOptions
}

// peer is a connection as seen from here.
type peer struct {
	addr        netip.Addr // of the remote end
	port, local uint16
}

// synOptions are those that the segments of a connection depend on.
type synOptions struct {
	mss       uint16
	timestamp bool
	sack      bool
}

// synTableMax bounds what strangers make us remember; the sizes of segments
// of those that are forgotten are taken from the MTU.
const synTableMax = 1 << 14

// note remembers the options of a SYN.
func (t *synTable) note(from netip.Addr, tcp []byte) {
	at := peer{from, binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint16(tcp[2:])}
	if t.by == nil || len(t.by) >= synTableMax {
		t.by = map[peer]synOptions{}
	}
	offset := int(header.TCP(tcp).DataOffset())
	if offset < tcpHeaderLen || offset > len(tcp) {
		return
	}
	o := header.ParseSynOptions(tcp[tcpHeaderLen:offset], false)
	t.by[at] = synOptions{o.MSS, o.TS, o.SACKPermitted}
}

// take returns and forgets what a peer announced.
func (t *synTable) take(at peer) (synOptions, bool) {
	said, ok := t.by[at]
	delete(t.by, at)
	return said, ok
}

// segment returns how many bytes a segment carries that is sent to a peer with these
// options, when payload bytes fit a packet behind headers without options. gVisor leaves
// room for as many SACK blocks as there may ever be.
func (g synOptions) segment(payload int) int {
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
