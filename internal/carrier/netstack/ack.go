package netstack

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// ackHold is how long an acknowledgement waits for something to go with, as
// RFC 1122, section 4.2.3.2, wants it, which allows 500 ms. It is longer than
// an answer takes, and too short to be noticed.
const ackHold = 100 * mono.Microsecond

// An acknowledgement goes at once when it is of so many bytes, or the last of so many in a row. Each is a
// frame, and work at both ends; a sender of large data has more than that on its way, and one of
// short segments may have ten on their way at first.
const (
	ackEvery = 64 << 10
	ackRow   = 4
)

// heldAck is the acknowledgement that waits: gVisor sends one for everything
// that arrives, and an answer that follows would make it a waste of two
// frames. It is one for all streams: when many of them are busy, what they
// send follows each other closely anyway.
type heldAck struct {
	packet *stack.PacketBuffer // or nil
	flow   flow                // that it is of, or was the last one
	until  mono.Time
	row    int    // how many have waited, one behind the other
	said   uint32 // what the flow has acknowledged to its peer
	last   uint32 // what gVisor has acknowledged
}

// hold reports whether p waits. It makes superfluous what it follows and was held. What acknowledges nothing
// new does not wait: it says that something is missing, or that there is room again.
func (h *heldAck) hold(p *stack.PacketBuffer, now mono.Time) bool {
	if p.TransportProtocolNumber != header.TCPProtocolNumber {
		return false
	}
	flow := flowOf(p)
	known, waits := flow == h.flow, h.packet != nil
	if waits && !known {
		return false
	}
	h.drop()
	bare, ack := bareAck(p), binary.BigEndian.Uint32(p.TransportHeader().Slice()[tcpAckAt:])
	again := known && ack == h.last
	if known {
		h.last = ack
	}
	switch {
	case !bare || again || known && (ack-h.said >= ackEvery || waits && h.row == ackRow-1):
		h.said = h.last
		return false
	case !known:
		h.flow, h.said, h.last = flow, ack, ack
	}
	if h.packet = p; !waits {
		h.until, h.row = now.Add(ackHold), 0
	}
	h.row++
	return true
}

// due returns what has waited long enough.
func (h *heldAck) due(now mono.Time) *stack.PacketBuffer {
	if h.packet == nil || now < h.until {
		return nil
	}
	p := h.packet
	h.packet, h.said = nil, h.last
	return p
}

// drop forgets what is held.
func (h *heldAck) drop() {
	if h.packet != nil {
		h.packet.DecRef()
		h.packet = nil
	}
}

// flow tells streams apart: the destination, and both ports.
type flow struct {
	hi, lo uint64
	ports  uint32
}

func flowOf(p *stack.PacketBuffer) flow {
	f := flow{ports: binary.BigEndian.Uint32(p.TransportHeader().Slice())}
	ip := p.NetworkHeader().Slice()
	if ip[0]>>4 == 4 {
		f.lo = uint64(binary.BigEndian.Uint32(ip[header.IPv4MinimumSize-header.IPv4AddressSize:]))
		return f
	}
	to := ip[header.IPv6FixedHeaderSize-header.IPv6AddressSize:]
	f.hi, f.lo = binary.BigEndian.Uint64(to), binary.BigEndian.Uint64(to[8:])
	return f
}

// bareAck reports whether p says nothing but how far everything has arrived.
// SACK blocks, which need more room than timestamps, are urgent: they tell
// what is missing.
func bareAck(p *stack.PacketBuffer) bool {
	const timestamps = 12
	tcp := header.TCP(p.TransportHeader().Slice())
	return p.Data().Size() == 0 && tcp.Flags() == header.TCPFlagAck && tcp.DataOffset() <= tcpHeaderLen+timestamps
}
