package netstack

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// run is frames that have arrived one behind the other and are parts of one stream of bytes, one behind
// the other: gVisor gets them as one segment, so that most of its work is that of one, and of 64 KiB of memory
// that it clears hardly any is left empty.
type run struct {
	first  int    // buffer of Stack.rx
	frames int    // how many
	total  int    // bytes of the IP packet that they are together; 0: there are none
	head   []byte // headers of the first one; nil: nothing may follow it
	next   uint32 // sequence number of what follows
}

// begin returns a run of one frame: that of the IP packet ip, as far as that is in the first buffer, which
// is buffer number first. The frame has size bytes behind the Ethernet header.
func (f *family) begin(ip []byte, headerLen, first, size int) run {
	r := run{first: first, frames: 1, total: f.total(ip)}
	tcp := header.TCP(ip[headerLen:])
	at := headerLen + int(tcp.DataOffset())
	if headerLen == f.headerLen && tcp.DataOffset() >= tcpHeaderLen && at <= len(ip) && at < r.total && size == r.total && plain(tcp) {
		r.head, r.next = ip[:at], tcp.SequenceNumber()+uint32(r.total-at)
	}
	return r
}

// extend reports whether the frame of an IP packet follows those of the run. If so it has become one
// of them. What their headers say must be the same, but for the place in the stream.
func (r *run) extend(f *family, ip []byte, size int) bool {
	at := len(r.head)
	if at == 0 || len(ip) < at || size <= at || size != f.total(ip) || r.total+size-at > mostIP {
		return false
	}
	tcp, as := header.TCP(ip[f.headerLen:at]), r.head[f.headerLen:]
	if !f.alike(ip, r.head) || !plain(tcp) || tcp.SequenceNumber() != r.next ||
		string(tcp[:tcpSeqAt]) != string(as[:tcpSeqAt]) ||
		string(tcp[tcpAckAt:tcpFlagsAt]) != string(as[tcpAckAt:tcpFlagsAt]) ||
		string(tcp[tcpWindowAt:tcpChecksumAt]) != string(as[tcpWindowAt:tcpChecksumAt]) ||
		string(tcp[tcpHeaderLen:]) != string(as[tcpHeaderLen:]) {
		return false
	}
	r.frames++
	r.total += size - at
	r.next += uint32(size - at)
	return true
}

// mostIP is the length of the longest IP packet in bytes, for IPv6 without its header; with it, it is short enough, too.
const mostIP = 1<<16 - 1

// plain reports whether a segment is one in the middle of a stream. A push means nothing to gVisor.
func plain(tcp header.TCP) bool { return tcp.Flags()&^header.TCPFlagPsh == header.TCPFlagAck }

// alike reports whether two IP headers without options say the same, but for lengths and numbers of packets.
func (f *family) alike(a, b []byte) bool {
	if f.ether == inet.EtherIPv6 {
		return string(a[:4]) == string(b[:4]) && string(a[6:inet.IPv6Len]) == string(b[6:inet.IPv6Len])
	}
	return string(a[:2]) == string(b[:2]) && string(a[6:10]) == string(b[6:10]) && string(a[12:inet.IPv4Len]) == string(b[12:inet.IPv4Len])
}

// total returns the length of an IP packet in bytes.
func (f *family) total(ip []byte) int {
	if f.ether == inet.EtherIPv6 {
		return inet.IPv6Len + int(binary.BigEndian.Uint16(ip[4:]))
	}
	return inet.IPv4(ip).TotalLen()
}
