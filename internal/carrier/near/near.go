// Package near lets an endpoint reach peers on its own host past its NIC: a
// frame to an address of the sender's own host never comes back from there. Two
// carriers become one, the one for that host and the other for all else.
package near

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Carrier is a [fabric.Datagram] made of two on one arena. It has the address
// and the frames of the far one.
//
// Owner: engine. Batches are received one at a time: each is released before
// the next is asked for.
type Carrier struct {
	far, near fabric.Datagram
	poll      event.Set // of both
	farIn     bool      // far is in it
	caps      fabric.DatagramCaps
	nearFirst bool // is to be asked first by the next Recv
	fromNear  bool // is whose batch Recv filled last
	nearIdle  int  // times in a row that near had nothing, and was not asked any more

	// What is sent, sorted, when some of it is for near.
	toFar, toNear *fabric.Batch
}

var (
	_ fabric.Datagram    = (*Carrier)(nil)
	_ fabric.Multicaster = (*Carrier)(nil)
)

// nearBit marks the paths of the near carrier. Those of the far one have the
// numbers that it gave them.
const nearBit = 1 << 30

// New joins two carriers, which it owns from now on. near takes datagrams of
// the size of far's, and has the same address and port. batch is how many
// datagrams Send is given at most. After an error they are closed.
func New(far, near fabric.Datagram, batch int) (*Carrier, error) {
	f, n := far.Caps(), near.Caps()
	c := &Carrier{far: far, near: near, caps: f}
	var err error
	if c.poll, err = event.NewSet(near.FD(), far.FD()); err != nil {
		return nil, errors.Join(fmt.Errorf("near: %w", err), c.Close())
	}
	c.farIn = true
	c.caps.Carrier += " and " + n.Carrier
	c.caps.MaxPayload = min(f.MaxPayload, n.MaxPayload)
	c.caps.MaxBufs = min(f.MaxBufs, n.MaxBufs)
	c.caps.RxDepth = min(f.RxDepth, n.RxDepth)
	c.toFar, c.toNear = fabric.NewBatch(batch, c.caps.MaxBufs), fabric.NewBatch(batch, c.caps.MaxBufs)
	return c, nil
}

// Caps says what both can do.
func (c *Carrier) Caps() fabric.DatagramCaps {
	caps, far := c.caps, c.far.Caps()
	caps.Detail, caps.Aggregates = far.Detail, far.Aggregates // it may know more by now
	return caps
}

// Arena returns the arena of both.
func (c *Carrier) Arena() *mem.Arena { return c.far.Arena() }

// Local returns the address and port of both.
func (c *Carrier) Local() netip.AddrPort { return c.far.Local() }

// Resolve makes a destination known.
func (c *Carrier) Resolve(to netip.AddrPort) (fabric.Path, error) {
	if to.Addr().Unmap() != c.Local().Addr() {
		return c.far.Resolve(to)
	}
	p, err := c.near.Resolve(to)
	return p | nearBit, err
}

// Back returns the path back to where a datagram of the last batch came from. One from
// the network that claims to be of this host is not.
func (c *Carrier) Back(from fabric.Remote, station fabric.Station) (fabric.Path, bool) {
	if !c.fromNear {
		if from.AddrPort().Addr() == c.Local().Addr() {
			return 0, false
		}
		return c.far.Back(from, station)
	}
	p, ok := c.near.Back(from, station)
	return p | nearBit, ok
}

// of returns the carrier that a path belongs to, and its number there.
func (c *Carrier) of(p fabric.Path) (fabric.Datagram, fabric.Path) {
	if p&nearBit != 0 {
		return c.near, p &^ nearBit
	}
	return c.far, p
}

// Drop forgets a path of Back.
func (c *Carrier) Drop(p fabric.Path) {
	d, p := c.of(p)
	d.Drop(p)
}

// Trust says where the peer at the end of a path is.
func (c *Carrier) Trust(to fabric.Path, station fabric.Station) {
	d, to := c.of(to)
	d.Trust(to, station)
}

// Doubt says that a peer does not answer.
func (c *Carrier) Doubt(to fabric.Path) {
	d, to := c.of(to)
	d.Doubt(to)
}

// While near has nothing it is asked with each nearEvery-th call only, after
// nearIdleMax ones: a look at each peer of this host costs what arrives on the
// NIC 60 ns. FD finds what has come in between.
const (
	nearIdleMax = 256
	nearEvery   = 8 // a power of two
)

// Recv fills b from one of the two, in turn.
func (c *Carrier) Recv(b *fabric.Batch) int {
	if c.farIn {
		c.forgetFar()
	}
	if c.nearIdle > nearIdleMax && c.nearIdle%nearEvery != 0 {
		c.nearIdle++
		c.fromNear = false
		return c.far.Recv(b)
	}
	first, second := c.far, c.near
	if c.nearFirst {
		first, second = second, first
	}
	c.fromNear = c.nearFirst
	c.nearFirst = !c.nearFirst
	n := first.Recv(b)
	if n == 0 {
		c.fromNear = !c.fromNear
		n = second.Recv(b)
	}
	switch {
	case n == 0:
		c.nearIdle++
	case c.fromNear:
		c.nearIdle = 0
	}
	return n
}

// Release gives back all buffers of the batch that Recv filled last.
func (c *Carrier) Release(b *fabric.Batch) {
	if c.fromNear {
		c.near.Release(b)
		return
	}
	c.far.Release(b)
}

// Frame returns a frame to build a datagram in, wherever it goes.
func (c *Carrier) Frame() (mem.Addr, bool) { return c.far.Frame() }

// Unframe gives back a frame that was not sent.
func (c *Carrier) Unframe(a mem.Addr) { c.far.Unframe(a) }

// TxRoom returns how many datagrams Send takes now.
func (c *Carrier) TxRoom() int { return min(c.far.TxRoom(), c.near.TxRoom()) }

// Send queues all datagrams of b, each with the carrier that reaches it.
func (c *Carrier) Send(b *fabric.Batch) {
	for i := range b.Pkts {
		if b.Pkts[i].To&nearBit != 0 {
			c.sendSorted(b)
			return
		}
	}
	c.far.Send(b)
}

func (c *Carrier) sendSorted(b *fabric.Batch) {
	c.toFar.Reset()
	c.toNear.Reset()
	for _, p := range b.Pkts {
		bufs := b.Descs[p.First:][:p.Bufs]
		to := c.toFar
		if p.To&nearBit != 0 {
			to = c.toNear
			p.To &^= nearBit
		}
		p.First = int32(len(to.Descs))
		to.Pkts, to.Descs = append(to.Pkts, p), append(to.Descs, bufs...)
	}
	c.near.Send(c.toNear)
	for _, d := range c.toNear.Descs {
		c.far.Unframe(d.Addr) // near copies, and knows its own frames only
	}
	if len(c.toFar.Pkts) > 0 {
		c.far.Send(c.toFar)
	}
}

// Flush moves what is queued.
func (c *Carrier) Flush() {
	c.near.Flush()
	c.far.Flush()
}

// FD returns a descriptor that is readable when one of theirs is.
func (c *Carrier) FD() int {
	c.nearIdle = 0 // it may be why the caller wakes
	fd := c.far.FD()
	c.near.FD()
	if !c.farIn { // it was there before, so there is room for it
		c.farIn = c.poll.Add(fd) == nil
	}
	return int(c.poll)
}

// forgetFar makes the descriptor wait for near alone: while a caller waits for a
// socket the kernel tells him of each packet, which takes 300 ns of the sender.
func (c *Carrier) forgetFar() {
	c.farIn = c.poll.Remove(c.far.FD()) != nil
}

// Stats returns the sums of both.
func (c *Carrier) Stats() fabric.DatagramStats { return c.far.Stats().Plus(c.near.Stats()) }

// Join joins a multicast group on the far carrier: what is sent to a group goes
// to other hosts.
func (c *Carrier) Join(group netip.Addr) error { return fabric.Join(c.far, group) }

// Leave undoes Join.
func (c *Carrier) Leave(group netip.Addr) error { return fabric.Leave(c.far, group) }

// Close closes both.
func (c *Carrier) Close() error {
	return errors.Join(c.poll.Close(), c.near.Close(), c.far.Close())
}
