package netstack

import (
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// frameBytes is what one frame of the pool holds.
const frameBytes = mem.FrameSize

// drain makes frames of the packets that wait to be sent, as many as the port
// takes. The rest stays for the next Flush.
func (s *Stack) drain() {
	if p := s.out.held.due(s.now); p != nil && !s.forward(p, new(int)) {
		p.DecRef() // no room: what comes next tells the same
	}
	for {
		if s.out.next == len(s.out.packets) {
			if !s.mail.packets.Load() {
				break
			}
			s.out.packets = s.mail.takeOut(s.out.packets)
			s.out.next = 0
			continue
		}
		p := s.out.packets[s.out.next]
		if !s.out.held.hold(p, s.now) && !s.forward(p, &s.out.cut) {
			break
		}
		s.out.cut = 0
		s.out.packets[s.out.next] = nil
		s.out.next++
	}
	s.push()
}

// forward sends a packet, from cut on, or lets it wait for its next hop, or drops it. It
// returns false when there is no room now for all of it.
func (s *Stack) forward(p *stack.PacketBuffer, cut *int) bool {
	ip := p.NetworkHeader().Slice()
	dst := s.family.dst(ip)
	to := s.hosts.get(dst)
	switch {
	case to == nil:
		s.unreachable++
	case to.known:
		s.hosts.sends(dst, to, p.Data().Size() > 0 || header.TCP(p.TransportHeader().Slice()).Flags()&header.TCPFlagSyn != 0, s.now)
		if !s.segments(p, to.mac, cut) {
			return false
		}
	case to.asked && len(to.waiting) < waitingMax:
		to.waiting = append(to.waiting, p)
		return true
	default:
		s.unreachable++
	}
	p.DecRef()
	return true
}

// segments cuts a packet into frames, as a card does to which 64 KiB are given as one
// segment: gVisor works out once what is the same for all. What does not fit now waits: cut
// says where it begins in the packet's payload.
func (s *Stack) segments(p *stack.PacketBuffer, to inet.MAC, cut *int) bool {
	size := p.Data().Size()
	most := size
	if p.GSOOptions.Type != stack.GSONone {
		most = int(p.GSOOptions.MSS)
	}
	if size > most && *cut == 0 && s.out.offload.Works() && s.whole(p, to) {
		return true
	}
	for {
		n := min(size-*cut, most)
		if !s.frame(p, to, *cut, n) {
			return false
		}
		if *cut += n; *cut >= size {
			return true
		}
	}
}

// frame copies n bytes of a packet's payload, from cut on, into frames of the pool, behind
// headers of their own, and stages them.
func (s *Stack) frame(p *stack.PacketBuffer, to inet.MAC, cut, n int) bool {
	ip, tcp := p.NetworkHeader().Slice(), p.TransportHeader().Slice()
	at := inet.EthernetLen + len(ip) + len(tcp)
	need := (s.room + at + n + frameBytes - 1) / frameBytes
	if s.out.staged+need > len(s.out.frames) {
		s.push()
	}
	if need > s.port.TxFree()-s.out.staged || need > s.pool.Free() {
		return false
	}
	addr, _ := s.pool.Get() // Free said that there is one
	addr += mem.Addr(s.room)
	b := s.bytes[addr:][:frameBytes-s.room]
	inet.PutEthernet(b, to, s.mac, s.family.ether)
	copy(b[inet.EthernetLen:], ip)
	from := inet.EthernetLen + len(ip) // what is summed up: the rest is
	segment := b[from:at]
	copy(segment, tcp)
	sum := s.number(p, b[inet.EthernetLen:from], segment, cut, n)
	views, skip := p.AsViewList()
	skip += len(ip) + len(tcp) + cut
	for v := views.Front(); n > 0; v = v.Next() {
		src := bytesFrom(v, &skip)
		src = src[:min(len(src), n)]
		n -= len(src)
		for len(src) > 0 {
			if at == len(b) {
				sum = sum.Add(b[from:])
				s.stage(addr, at, fabric.More)
				addr, _ = s.pool.Get()
				b, at, from = s.bytes[addr:][:frameBytes], 0, 0
			}
			c := copy(b[at:], src)
			src, at = src[c:], at+c
		}
	}
	if p.TransportProtocolNumber == header.TCPProtocolNumber {
		sum.Add(b[from:at]).PutChecksum(segment[tcpChecksumAt:])
	}
	s.stage(addr, at, 0)
	return true
}

// number makes headers of a packet those of its segment of n bytes from cut on, without the
// checksum of TCP, and returns the sum of the pseudo header that it covers.
func (s *Stack) number(p *stack.PacketBuffer, ip, tcp []byte, cut, n int) inet.Sum {
	if p.TransportProtocolNumber != header.TCPProtocolNumber { // gVisor also answers bad IP options, by ICMP
		return 0
	}
	if rest := p.Data().Size() - cut - n; cut > 0 || rest > 0 {
		s.family.cut(ip, len(tcp)+n, cut/int(p.GSOOptions.MSS))
		h := header.TCP(tcp)
		h.SetSequenceNumber(h.SequenceNumber() + uint32(cut))
		if rest > 0 {
			h.SetFlags(uint8(h.Flags() &^ (header.TCPFlagFin | header.TCPFlagPsh)))
		}
	}
	narrow(tcp)
	header.TCP(tcp).SetChecksum(0)
	return s.family.pseudo(ip, len(tcp)+n)
}

// bytesFrom returns the bytes of v behind the first offset ones, which it
// takes off offset.
func bytesFrom(v *buffer.View, offset *int) []byte {
	b := v.AsSlice()
	skip := min(*offset, len(b))
	*offset -= skip
	return b[skip:]
}

func (s *Stack) stage(at mem.Addr, n int, flags uint32) {
	s.out.frames[s.out.staged] = fabric.Desc{Addr: at, Len: uint32(n), Flags: flags}
	s.out.staged++
}

// push hands what is staged to the port, which has room for it.
func (s *Stack) push() {
	if s.out.staged == 0 {
		return
	}
	if took := s.port.Send(s.out.frames[:s.out.staged]); took < s.out.staged {
		fabric.PutAll(s.pool, s.out.frames[took:s.out.staged])
	}
	s.out.staged = 0
}

// await notes a stream that gVisor has something of that it may not send yet, and more is
// to be sent. As long as that is so something will arrive: acknowledgements, or answers to
// what is sent again, or to what asks for the peer's window.
func (o *output) await(st *Stream) {
	if !st.short {
		st.short = true
		o.short = append(o.short, st)
	}
}

// tell names the streams that wait when something has arrived.
func (o *output) tell() {
	for i, st := range o.short {
		st.short = false
		st.NotifyEvent(0)
		o.short[i] = nil
	}
	o.short = o.short[:0]
}
