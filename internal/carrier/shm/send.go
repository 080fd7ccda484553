package shm

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// txRoom is how many datagrams Send takes at a time. Nothing is queued in
// between, so there is always room for them here, if not at the receiver: one
// that does not read must not stop what goes to others.
const txRoom = 64

// Resolve makes a destination known. A missing listener is no error, as
// with UDP: once there is one, datagrams arrive. Errors wrap [ErrNotLocal],
// [ErrPeers] or [ErrMTU].
func (e *Datagram) Resolve(to netip.AddrPort) (fabric.Path, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if n, ok := e.byAddr[to]; ok {
		e.connect(e.paths[n]) // it may have begun to listen, or begun anew
		return n, nil
	}
	if !to.IsValid() || to.Addr().IsUnspecified() || to.Port() == 0 {
		return 0, fmt.Errorf("shm: destination %s: want the address of an endpoint, with its port", to)
	}
	if !e.here(to.Addr()) {
		return 0, fmt.Errorf("shm: destination %s: %w: shared memory reaches no other", to, ErrNotLocal)
	}
	p := &path{to: to, asked: -1}
	e.connect(p)
	if errors.Is(p.problem, ErrPeers) || errors.Is(p.problem, ErrMTU) {
		return 0, p.problem
	}
	n := fabric.Path(len(e.paths))
	e.paths = append(e.paths, p)
	e.byAddr[to] = n
	e.dirty = append(e.dirty, nil)[:len(e.dirty)] // room for all
	return n, nil
}

// Back returns the path back to a process of this host, which has let us in before it
// sent anything: it need not be waited for.
func (e *Datagram) Back(from fabric.Remote, _ fabric.Station) (fabric.Path, bool) {
	p, err := e.Resolve(from.AddrPort())
	return p, err == nil
}

// Drop does nothing: there are few processes on a host.
func (e *Datagram) Drop(fabric.Path) {}

// Trust does nothing: the kernel has named the peer.
func (e *Datagram) Trust(fabric.Path, fabric.Station) {}

// Doubt does nothing: there is one way.
func (e *Datagram) Doubt(fabric.Path) {}

// connect is reach that waits for the answer, once.
func (e *Datagram) connect(p *path) {
	if e.reach(p) || p.asked < 0 || p.waited {
		return
	}
	p.waited = true
	fds := []unix.PollFd{{Fd: int32(p.asked), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, resolveTimeout); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	e.reach(p)
}

// TxRoom returns how many datagrams of MaxBufs buffers Send takes now.
func (e *Datagram) TxRoom() int { return txRoom }

// Send copies the datagrams of b into the rings of their receivers, where they
// can be read at once. What finds no room is lost, and the receiver counts it.
func (e *Datagram) Send(b *fabric.Batch) {
	for i := range b.Pkts {
		p := &b.Pkts[i]
		bufs := b.Descs[p.First : p.First+p.Bufs]
		e.sendOne(e.paths[p.To], p, bufs)
		for j := range bufs {
			e.pool.Put(bufs[j].Addr)
		}
	}
}

func (e *Datagram) sendOne(to *path, p *fabric.Packet, bufs []fabric.Desc) {
	o := to.out
	if o == nil || o.alive.gone.Load() {
		if !e.reach(to) {
			e.stats.TxUnreachable++
			return
		}
		o = to.out
	}
	if int(p.Len) > e.caps.MaxPayload || int(p.Len) > o.max {
		e.stats.TxErrors++
		return
	}
	e.stats.TxPackets++
	e.stats.TxBytes += uint64(p.Len)
	if !o.put(e.bytes, bufs, int(p.Len)) {
		o.dropped.Add(1)
	}
	if !o.dirty { // after a full ring, too: a receiver that sleeps must read it
		o.dirty = true
		e.dirty = append(e.dirty, o)
	}
}

// Flush rings the doorbells of receivers that sleep.
func (e *Datagram) Flush() {
	if len(e.dirty) == 0 {
		return
	}
	for _, o := range e.dirty {
		o.wake()
	}
	e.dirty = e.dirty[:0]
}
