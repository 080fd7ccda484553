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
	if p := s.out.held.due(s.now); p != nil && !s.forward(p) {
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
		if !s.out.held.hold(p, s.now) && !s.forward(p) {
			break
		}
		s.out.packets[s.out.next] = nil
		s.out.next++
	}
	s.push()
}

// forward sends a packet, or lets it wait for its next hop, or drops it. It
// returns false when there is no room now.
func (s *Stack) forward(p *stack.PacketBuffer) bool {
	ip := p.NetworkHeader().Slice()
	dst := s.family.dst(ip)
	to := s.hosts.get(dst)
	switch {
	case to == nil:
		s.unreachable++
	case to.known:
		s.hosts.sends(dst, to, p.Data().Size() > 0 || header.TCP(p.TransportHeader().Slice()).Flags()&header.TCPFlagSyn != 0, s.now)
		if !s.frame(p, to.mac) {
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

// frame copies a packet into frames of the pool and stages them.
func (s *Stack) frame(p *stack.PacketBuffer, to inet.MAC) bool {
	size := s.room + inet.EthernetLen + p.Size()
	need := (size + frameBytes - 1) / frameBytes
	if s.out.staged+need > len(s.out.frames) {
		s.push()
	}
	if need > s.port.TxFree()-s.out.staged || need > s.pool.Free() {
		return false
	}
	narrow(p.TransportHeader().Slice())
	at, _ := s.pool.Get() // Free said that there is one
	at += mem.Addr(s.room)
	b := s.bytes[at:][:frameBytes-s.room]
	inet.PutEthernet(b, to, s.mac, s.family.ether)
	n := inet.EthernetLen
	views, offset := p.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		src := bytesFrom(v, &offset)
		for len(src) > 0 {
			if n == len(b) {
				s.stage(at, n, fabric.More)
				at, _ = s.pool.Get()
				b, n = s.bytes[at:][:frameBytes], 0
			}
			c := copy(b[n:], src)
			src, n = src[c:], n+c
		}
	}
	s.stage(at, n, 0)
	return true
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
