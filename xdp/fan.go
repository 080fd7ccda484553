package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

// Line is a socket to receive on and one to send on, by their descriptors.
type Line struct {
	ReceiveFD int `json:"receive_fd"`
	SendFD    int `json:"send_fd"`
}

// OpenLineSeat opens a port on a seat of [Lines]. arena is that of Seat.MapArena
// and must outlive the port. It needs no privilege. With track every move of a
// frame is checked. It fails with ErrSeatTaken when some process had the seat.
//
// The port owns the other descriptors of the seat from now on, also when there is
// an error. Buffers to send must lie in the part of the arena that is the seat's
// own.
func OpenLineSeat(s Seat, arena *Arena, track bool) (FramePort, error) {
	f := &fan{seat: &s, poll: -1}
	for _, line := range s.Lines {
		f.ports = append(f.ports, &Port{sock: &socket{fd: line.ReceiveFD}, out: &socket{fd: line.SendFD}, arena: arena, caps: s.Caps})
	}
	if err := f.open(&s, arena, track); err != nil {
		_ = f.Close() // the reason is what counts
		return nil, err
	}
	if len(f.ports) == 1 {
		return f.ports[0], nil
	}
	return f, nil
}

func (f *fan) open(s *Seat, arena *Arena, track bool) error {
	if err := s.check(); err != nil {
		return err
	}
	if len(s.Lines) == 0 {
		return fmt.Errorf("xdp: seat %d has no queues of its own: use OpenSeat", s.Number)
	}
	if arena.Len() < s.Part {
		return fmt.Errorf("xdp: seat %d needs the arena of its queues, which Seat.MapArena maps", s.Number)
	}
	unix.CloseOnExec(s.ArenaFD) // the descriptors were inherited
	pool, err := mem.NewPool(arena, seatBudget(s.TxDepth).Frames(), track)
	if err != nil {
		return fmt.Errorf("xdp: seat %d of %s: %w", s.Number, s.Device, err)
	}
	frames := receiveBudget(len(s.Lines), s.RxDepth).Frames()
	pool.Borrow(0, frames)
	for n := range frames { // the lowest address is taken first
		pool.Put(mem.Addr(frames-1-n) * mem.FrameSize)
	}
	f.ports[0].ownPool = true // it is closed last
	for _, p := range f.ports {
		p.pool = pool
	}
	for _, p := range f.ports {
		if err := p.openLine(s); err != nil {
			return err
		}
	}
	if len(f.ports) == 1 {
		return nil
	}
	return f.watch()
}

// openLine maps the rings of the two sockets of p and gives the kernel chunks to
// receive into.
func (p *Port) openLine(s *Seat) (err error) {
	unix.CloseOnExec(p.sock.fd)
	unix.CloseOnExec(p.out.fd)
	part := s.sendPart()
	p.from, p.span = part.Start, mem.Addr(part.Len)
	p.rxDepth, p.want, p.apart = s.RxDepth, s.RxDepth, true
	d := depths{fill: s.RxDepth, completion: s.TxDepth, rx: s.RxDepth, tx: s.TxDepth}
	if p.sock.rings, err = mapLine(p.sock.fd, p.out.fd, d); err != nil {
		return fmt.Errorf("xdp: cannot map the rings of seat %d of %s: %w", s.Number, s.Device, err)
	}
	p.rings = p.sock.rings
	if p.rings.fill.ours != 0 {
		return fmt.Errorf("xdp: seat %d: %w", s.Number, ErrSeatTaken)
	}
	p.post()
	return nil
}

// sendPart is what of its arena a seat with lines may send from. What is in front
// of it is to receive into: see overlay.
func (s *Seat) sendPart() mem.Part {
	at := receiveLen(len(s.Lines), s.RxDepth)
	return mem.Part{Start: mem.Addr(at), Len: s.Part - at}
}

// pushBorrowed gives up to n chunks that are only to receive into to the kernel,
// and returns how many.
func (p *Port) pushBorrowed(n int) int {
	for i := range n {
		chunk, ok := p.pool.Reclaim()
		if !ok {
			return i
		}
		p.rings.fill.push(chunk)
	}
	return n
}

// fan is a port on several queues, which share a pool. It receives from all, and
// sends on the first; with queues of its own on a veth it sends each frame on the
// line that leads to the slot of its destination port.
type fan struct {
	seat  *Seat // whose lines they are, by slot of the peer; nil: it sends on the first
	ports []*Port
	next  int // to be asked first by Recv
	poll  int // epoll descriptor of all
}

// watch makes the descriptor that is readable when one of the sockets is.
func (f *fan) watch() (err error) {
	if f.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("xdp: %w", os.NewSyscallError("epoll_create1", err))
	}
	for _, p := range f.ports {
		fd := p.sock.fd
		err := unix.EpollCtl(f.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		if err != nil {
			return fmt.Errorf("xdp: %w", os.NewSyscallError("epoll_ctl", err))
		}
	}
	return nil
}

// Caps returns what the port can do.
func (f *fan) Caps() PortCaps { return f.ports[0].caps }

// Arena returns the memory that frames live in.
func (f *fan) Arena() *Arena { return f.ports[0].arena }

// Pool returns the frames of the port.
func (f *fan) Pool() *Pool { return f.ports[0].pool }

// FD returns a descriptor that is readable when frames have arrived.
func (f *fan) FD() int { return f.poll }

// Recv fills dst from one of the queues, in turn.
func (f *fan) Recv(dst []Desc) int {
	for range f.ports {
		p := f.ports[f.next]
		if f.next++; f.next == len(f.ports) {
			f.next = 0
		}
		if n := p.Recv(dst); n > 0 {
			return n
		}
	}
	return 0
}

// TxFree returns how many buffers Send takes now, wherever they go.
func (f *fan) TxFree() int {
	n := f.ports[0].TxFree()
	if f.seat == nil {
		return n
	}
	for _, p := range f.ports[1:] {
		n = min(n, p.TxFree())
	}
	return n
}

// Send queues whole frames, each on the line of its destination if it has one.
func (f *fan) Send(src []Desc) int {
	if f.seat == nil {
		return f.ports[0].Send(src)
	}
	n := wholeFrames(src, f.TxFree())
	for at := 0; at < n; {
		slot, end := f.slot(&src[at]), f.frameEnd(src, at, n)
		for end < n && f.slot(&src[end]) == slot {
			end = f.frameEnd(src, end, n)
		}
		f.ports[slot].Send(src[at:end])
		at = end
	}
	return n
}

// frameEnd returns where the frame that begins at src[at] ends, n at most.
func (f *fan) frameEnd(src []Desc, at, n int) int {
	for at < n-1 && src[at].Flags&fabric.More != 0 {
		at++
	}
	return at + 1
}

// Offsets in a frame with an Ethernet header, of the Ethernet type and behind it of an
// IPv4 header without options or an IPv6 header, and the lengths up to the end of the
// ports.
const (
	offEtherType   = 12
	offIPProtocol  = headerLen + 9
	offIP6Protocol = headerLen + 6
	portsEnd       = headerLen + 20 + 4
	portsEnd6      = headerLen + 40 + 4
	etherIPv6      = 0x86dd
)

// slot returns the slot of the peer that a frame is for; 0 if it is for none, as
// then the line makes no difference.
func (f *fan) slot(first *Desc) int {
	if first.Len < portsEnd {
		return 0
	}
	b := f.ports[0].arena.At(first.Addr, portsEnd)
	protocol := b[offIPProtocol]
	if binary.BigEndian.Uint16(b[offEtherType:]) == etherIPv6 {
		if first.Len < portsEnd6 {
			return 0
		}
		b = f.ports[0].arena.At(first.Addr, portsEnd6)
		protocol = b[offIP6Protocol]
	}
	port := int(binary.BigEndian.Uint16(b[len(b)-2:]))
	n := -1
	switch protocol {
	case unix.IPPROTO_UDP:
		n = port - (int(f.seat.Port) - f.seat.Number)
	case unix.IPPROTO_TCP:
		per := f.seat.TCPPorts
		if first := int(f.seat.TCPBase) - f.seat.Number*per; per > 0 && port >= first {
			n = (port - first) / per
		}
	}
	if n < 0 || n >= len(f.ports) {
		return 0
	}
	return n
}

// Flush moves what is queued on all queues.
func (f *fan) Flush() {
	for _, p := range f.ports {
		p.Flush()
	}
}

// Stats returns the sums over all queues.
func (f *fan) Stats() PortStats {
	var sum PortStats
	for _, p := range f.ports {
		st := p.Stats()
		sum.RxFrames += st.RxFrames
		sum.RxBytes += st.RxBytes
		sum.TxFrames += st.TxFrames
		sum.TxBytes += st.TxBytes
		sum.RxDropped += st.RxDropped
		sum.RxStray += st.RxStray
		sum.TxInvalid += st.TxInvalid
		sum.RxInvalid += st.RxInvalid
		sum.Wakeups += st.Wakeups
	}
	return sum
}

// Close closes the sockets and gives the frames back to the arena.
func (f *fan) Close() error {
	var errs []error
	if f.poll >= 0 {
		errs = append(errs, os.NewSyscallError("close", unix.Close(f.poll)))
		f.poll = -1
	}
	if len(f.ports) > 0 && f.ports[0].steering != nil {
		errs = append(errs, f.ports[0].steering.Close()) // before any queue has no socket any more
	}
	if len(f.ports) > 0 && f.ports[0].member != nil {
		f.ports[0].member.leave(f.ports[0]) // which writes the rings of all
		for _, p := range f.ports {
			p.member = nil
		}
	}
	for i := len(f.ports) - 1; i >= 0; i-- {
		errs = append(errs, f.ports[i].Close())
	}
	return errors.Join(errs...)
}
