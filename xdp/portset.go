package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// QueuePair is a socket to receive on and one to send on, by their descriptors.
type QueuePair struct {
	ReceiveFD int `json:"receive_fd"`
	SendFD    int `json:"send_fd"`
}

// OpenPairSlot opens a port on a slot of [QueueSet]. arena is that of Slot.MapArena
// and must outlive the port; pool is as for OpenSlot. It needs no privilege. With track
// every move of a frame is checked. It fails with ErrSlotTaken when some process had the slot.
//
// The port owns the other descriptors of the slot from now on, also when there is
// an error. Buffers to send must lie in the part of the arena that is the slot's
// own.
func OpenPairSlot(s Slot, arena *Arena, pool *Pool, track bool) (FramePort, error) {
	f := &portSet{slot: &s, poll: -1}
	for _, pair := range s.Pairs {
		f.ports = append(f.ports, &Port{sock: &socket{fd: pair.ReceiveFD}, out: &socket{fd: pair.SendFD}, arena: arena, caps: s.Caps})
	}
	if err := f.open(&s, arena, pool, track); err != nil {
		_ = f.Close() // the reason is what counts
		return nil, err
	}
	if len(f.ports) == 1 {
		return f.ports[0], nil
	}
	return f, nil
}

func (f *portSet) open(s *Slot, arena *Arena, pool *Pool, track bool) error {
	if err := s.check(); err != nil {
		return err
	}
	if len(s.Pairs) == 0 {
		return fmt.Errorf("xdp: slot %d has no queues of its own: use OpenSlot", s.Number)
	}
	if arena.Len() < s.Part {
		return fmt.Errorf("xdp: slot %d needs the arena of its queues, which Slot.MapArena maps", s.Number)
	}
	unix.CloseOnExec(s.ArenaFD) // the descriptors were inherited
	first := f.ports[0]         // it is closed last
	if err := first.takePool(s, pool, track); err != nil {
		return err
	}
	frames := receiveBudget(len(s.Pairs), s.RxDepth).Frames()
	borrowed := first.pool.Borrow(mem.Addr(s.Base), frames)
	for n := range frames { // the lowest address is taken first
		first.pool.Put(mem.Addr(s.Base) + mem.Addr(frames-1-n)*mem.FrameSize)
	}
	for _, p := range f.ports {
		p.pool, p.borrowed = first.pool, borrowed
	}
	for _, p := range f.ports {
		if err := p.openPair(s); err != nil {
			return err
		}
	}
	f.startBusyPoll(s)
	if len(f.ports) == 1 {
		return nil
	}
	return f.watch()
}

// startBusyPoll starts it on the sockets of a slot, which the one that made them has
// asked for it if it is to be.
func (f *portSet) startBusyPoll(s *Slot) {
	if !s.BusyPoll {
		return
	}
	for _, p := range f.ports {
		p.startBusyPoll()
	}
}

// openPair maps the rings of the two sockets of p and gives the kernel chunks to
// receive into.
func (p *Port) openPair(s *Slot) (err error) {
	unix.CloseOnExec(p.sock.fd)
	unix.CloseOnExec(p.out.fd)
	part := s.sendPart()
	p.from, p.span = part.Start, mem.Addr(part.Len)
	p.rxDepth, p.apart = s.RxDepth, true
	p.begin(s.Caps.ZeroCopy)
	d := depths{fill: s.RxDepth, completion: s.TxDepth, rx: s.RxDepth, tx: s.TxDepth}
	if p.sock.rings, err = mapLine(p.sock.fd, p.out.fd, d); err != nil {
		return fmt.Errorf("xdp: cannot map the rings of slot %d of %s: %w", s.Number, s.Device, err)
	}
	p.rings = p.sock.rings
	if p.rings.fill.ours != 0 {
		return fmt.Errorf("xdp: slot %d: %w", s.Number, ErrSlotTaken)
	}
	p.post()
	return nil
}

// sendPart is what of its arena a slot with queue pairs may send from. What is in front
// of it is to receive into: see overlay.
func (s *Slot) sendPart() mem.Part {
	return mem.Part{Start: mem.Addr(s.Parts), Len: s.Part - s.Parts}
}

// pushBorrowed gives up to n chunks that are only to receive into to the kernel,
// and returns how many.
func (p *Port) pushBorrowed(n int) int {
	for i := range n {
		chunk, ok := p.borrowed.Reclaim()
		if !ok {
			return i
		}
		p.rings.fill.push(chunk)
	}
	return n
}

// portSet is a port on several queues, which share a pool. It receives from all, and
// sends on the first; with queues of its own on a veth it sends each frame on the
// pair that leads to the slot of its destination port.
type portSet struct {
	slot  *Slot // whose pairs they are, by slot of the peer; nil: it sends on the first
	ports []*Port
	first int       // queue of the first port
	home  int       // PortCaps.Home
	next  int       // to be asked first by Recv
	drive int       // to be driven next by Recv
	poll  event.Set // of all
}

// watch makes the descriptor that is readable when one of the sockets is.
func (f *portSet) watch() (err error) {
	var fds []int
	for _, p := range f.ports {
		fds = append(fds, p.sock.fd)
	}
	if f.poll, err = event.NewSet(fds...); err != nil {
		return fmt.Errorf("xdp: %w", err)
	}
	return nil
}

// Caps returns what the port can do.
func (f *portSet) Caps() PortCaps {
	c := f.ports[0].Caps()
	c.Home = f.home
	for _, p := range f.ports[1:] {
		if p.findNAPI() { // frames may have arrived there only
			c.BusyPoll = p.busy.String()
		}
	}
	return c
}

// Arena returns the memory that frames live in.
func (f *portSet) Arena() *Arena { return f.ports[0].arena }

// Pool returns the frames of the port.
func (f *portSet) Pool() *Pool { return f.ports[0].pool }

// FD returns a descriptor that is readable when frames have arrived.
func (f *portSet) FD() int { return int(f.poll) }

// Recv fills dst from one of the queues, in turn. When nothing is there it polls the
// device for one queue, the next one with each call: a system call, as for one queue.
func (f *portSet) Recv(dst []Desc) int {
	for range f.ports {
		queue := f.next
		if f.next++; f.next == len(f.ports) {
			f.next = 0
		}
		if n := f.ports[queue].take(dst); n > 0 {
			return f.tell(dst[:n], queue)
		}
	}
	queue := f.drive
	p := f.ports[queue]
	if p.busy == busyOff {
		return 0
	}
	if f.drive++; f.drive == len(f.ports) {
		f.drive = 0
	}
	if !p.drive() {
		return 0
	}
	return f.tell(dst[:p.take(dst)], queue)
}

// tell notes on which queue buffers have come in, where that matters, and returns how many
// they are.
func (f *portSet) tell(bufs []Desc, queue int) int {
	if f.home != 0 {
		for i := range bufs {
			bufs[i].Flags |= fabric.OnQueue(f.first + queue)
		}
	}
	return len(bufs)
}

// TxFree returns how many buffers Send takes now, wherever they go.
func (f *portSet) TxFree() int {
	n := f.ports[0].TxFree()
	if f.slot == nil {
		return n
	}
	for _, p := range f.ports[1:] {
		n = min(n, p.TxFree())
	}
	return n
}

// Send queues whole frames, each on the pair of its destination if it has one.
func (f *portSet) Send(src []Desc) int {
	if f.slot == nil {
		return f.ports[0].Send(src)
	}
	n := wholeFrames(src, f.TxFree())
	for at := 0; at < n; {
		to, end := f.to(&src[at]), f.frameEnd(src, at, n)
		for end < n && f.to(&src[end]) == to {
			end = f.frameEnd(src, end, n)
		}
		f.ports[to].Send(src[at:end])
		at = end
	}
	return n
}

// frameEnd returns where the frame that begins at src[at] ends, n at most.
func (f *portSet) frameEnd(src []Desc, at, n int) int {
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

// to returns the slot of the peer that a frame is for; 0 if it is for none, as
// then the pair makes no difference.
func (f *portSet) to(first *Desc) int {
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
		n = port - (int(f.slot.Port) - f.slot.Number)
	case unix.IPPROTO_TCP:
		per := f.slot.TCPPorts
		if first := int(f.slot.TCPBase) - f.slot.Number*per; per > 0 && port >= first {
			n = (port - first) / per
		}
	}
	if n < 0 || n >= len(f.ports) {
		return 0
	}
	return n
}

// Flush moves what is queued on all queues.
func (f *portSet) Flush() {
	for _, p := range f.ports {
		p.Flush()
	}
}

// Stats returns the sums over all queues.
func (f *portSet) Stats() PortStats {
	var sum PortStats
	for i, p := range f.ports {
		st := p.Stats()
		if f.slot == nil { // a port is a queue
			sum.RxQueues[min(f.first+i, len(sum.RxQueues)-1)] += st.RxFrames
		}
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
func (f *portSet) Close() error {
	errs := []error{f.poll.Close()}
	if len(f.ports) > 0 && f.ports[0].steering != nil {
		errs = append(errs, f.ports[0].steering.Close()) // before any queue has no socket any more
	}
	if len(f.ports) > 0 && f.ports[0].participant != nil {
		f.ports[0].participant.leave(f.ports[0]) // which writes the rings of all
		for _, p := range f.ports {
			p.participant = nil
		}
	}
	for i := len(f.ports) - 1; i >= 0; i-- {
		errs = append(errs, f.ports[i].Close())
	}
	return errors.Join(errs...)
}
