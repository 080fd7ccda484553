// Package bond makes one carrier of several, each on a network of its own: the
// network cards of a host. Which of them a datagram takes, and what to do when one
// is dead, is decided above (internal/proto/llp); the bond only keeps a dead one from
// stopping the others.
package bond

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Carrier is a [fabric.Multipath] made of several carriers, which have one arena and
// one pool of frames.
//
// Owner: engine. Batches are received one at a time: each is released before the
// next is asked for.
type Carrier struct {
	on    []one
	caps  fabric.DatagramCaps
	clock mono.Clock
	turn  int // whose turn it is to be asked by Recv
	via   int // whose batch Recv filled last
}

// one is the carrier on one network.
type one struct {
	fabric.Datagram
	batch *fabric.Batch // sorted by Send
	full  mono.Time     // since when it has had no room, or 0
	stuck bool          // for so long that nothing waits for it
}

var (
	_ fabric.Multipath   = (*Carrier)(nil)
	_ fabric.Multicaster = (*Carrier)(nil)
)

// A path has the number of its network above pathBits, and that of the carrier on it
// below, which may have the bit of package near above both.
const (
	pathBits = 27
	pathMask = (fabric.MaxPaths - 1) << pathBits
)

// stuckAfter is how long a carrier may have no room until what is sent to it is
// dropped: the device is down, and its send queue full. The slowest link that we
// meet sends a whole queue in less.
const stuckAfter = 50 * mono.Millisecond

// New joins carriers, which it owns from now on, even after an error. All have the
// same arena and give frames back to the same pool. batch is how many datagrams Send
// is given at most.
func New(carriers []fabric.Datagram, batch int, clock mono.Clock) (*Carrier, error) {
	c := &Carrier{clock: clock}
	for i, dg := range carriers {
		own := dg.Caps()
		switch {
		case i == 0:
			c.caps = own
		case own.Carrier != c.on[i-1].Caps().Carrier:
			c.caps.Carrier += " and " + own.Carrier
		}
		if i > 0 && own.Detail != "" { // which devices they are
			c.caps.Detail += " and " + own.Detail
		}
		c.caps.MaxPayload = min(c.caps.MaxPayload, own.MaxPayload)
		c.caps.MaxBufs = min(c.caps.MaxBufs, own.MaxBufs)
		c.caps.Headroom = max(c.caps.Headroom, own.Headroom)
		c.caps.RxDepth = min(c.caps.RxDepth, own.RxDepth)
		c.on = append(c.on, one{Datagram: dg, batch: fabric.NewBatch(batch, fabric.MaxBufs)})
	}
	if n := len(carriers); n < 1 || n > fabric.MaxPaths {
		return nil, errors.Join(fmt.Errorf("bond: %d carriers: want 1 to %d", n, fabric.MaxPaths), c.Close())
	}
	return c, nil
}

// Caps says what all can do.
func (c *Carrier) Caps() fabric.DatagramCaps { return c.caps }

// Arena returns the arena of all.
func (c *Carrier) Arena() *mem.Arena { return c.on[0].Arena() }

// Local returns the address and port on the first network.
func (c *Carrier) Local() netip.AddrPort { return c.on[0].Local() }

// Locals returns the addresses and ports on all networks.
func (c *Carrier) Locals() []netip.AddrPort {
	var l []netip.AddrPort
	for i := range c.on {
		l = append(l, c.on[i].Local())
	}
	return l
}

// Resolve makes a destination on the first network known.
func (c *Carrier) Resolve(to netip.AddrPort) (fabric.Path, error) { return c.ResolveOn(0, to) }

// ResolveOn makes a destination on a network known.
func (c *Carrier) ResolveOn(i int, to netip.AddrPort) (fabric.Path, error) {
	p, err := c.on[i].Resolve(to)
	if err == nil && p&pathMask != 0 {
		return 0, fmt.Errorf("bond: the way to %v is number %d: there are too many", to, p)
	}
	return p | fabric.Path(i)<<pathBits, err
}

// Back returns the path back to where a datagram of the present batch came from.
func (c *Carrier) Back(from fabric.Remote, station fabric.Station) (fabric.Path, bool) {
	p, ok := c.on[c.via].Back(from, station)
	return p | fabric.Path(c.via)<<pathBits, ok && p&pathMask == 0
}

// Drop forgets a path of Back.
func (c *Carrier) Drop(p fabric.Path) { c.of(p).Drop(p &^ pathMask) }

// Trust says that what came from station is of the peer at the end of a path.
func (c *Carrier) Trust(to fabric.Path, station fabric.Station) {
	c.of(to).Trust(to&^pathMask, station)
}

// Doubt says that nothing comes from the end of a path.
func (c *Carrier) Doubt(to fabric.Path) { c.of(to).Doubt(to &^ pathMask) }

// of returns the carrier that a path leads over.
func (c *Carrier) of(p fabric.Path) *one { return &c.on[p&pathMask>>pathBits] }

// Recv fills b from one of the carriers, in turn.
func (c *Carrier) Recv(b *fabric.Batch) int {
	for range c.on {
		c.via = c.turn
		if c.turn++; c.turn == len(c.on) {
			c.turn = 0
		}
		if n := c.on[c.via].Recv(b); n > 0 {
			return n
		}
	}
	return 0
}

// Via returns whose batch Recv filled last.
func (c *Carrier) Via() int { return c.via }

// Release gives back all buffers of the batch that Recv filled last.
func (c *Carrier) Release(b *fabric.Batch) { c.on[c.via].Release(b) }

// Frame returns a frame to build a datagram in, wherever it goes.
func (c *Carrier) Frame() (mem.Addr, bool) { return c.on[0].Frame() }

// Unframe gives back a frame that was not sent.
func (c *Carrier) Unframe(a mem.Addr) { c.on[0].Unframe(a) }

// TxRoom returns how many datagrams Send takes now, whichever way they go. One that
// goes where nothing has moved for long is taken, and dropped.
func (c *Carrier) TxRoom() int {
	least := -1
	for i := range c.on {
		o := &c.on[i]
		room := o.TxRoom()
		switch {
		case room > 0:
			o.full, o.stuck = 0, false
		case o.stuck:
			continue
		case o.full == 0:
			o.full = c.clock.Now()
		default:
			o.stuck = c.clock.Now().Sub(o.full) > stuckAfter
		}
		if least < 0 || room < least {
			least = room
		}
	}
	return max(least, 0)
}

// Send queues all datagrams of b, each on its network.
func (c *Carrier) Send(b *fabric.Batch) {
	first := b.Pkts[0].To & pathMask
	for i := range b.Pkts {
		if b.Pkts[i].To&pathMask != first {
			c.sendSorted(b)
			return
		}
	}
	for i := range b.Pkts {
		b.Pkts[i].To &^= pathMask
	}
	c.of(first).send(b)
}

func (c *Carrier) sendSorted(b *fabric.Batch) {
	for _, p := range b.Pkts {
		bufs := b.Descs[p.First:][:p.Bufs]
		to := c.of(p.To).batch
		p.To &^= pathMask
		p.First = int32(len(to.Descs))
		to.Pkts, to.Descs = append(to.Pkts, p), append(to.Descs, bufs...)
	}
	for i := range c.on {
		o := &c.on[i]
		if len(o.batch.Pkts) > 0 {
			o.send(o.batch)
			o.batch.Reset()
		}
	}
}

// send queues all of b, or as much as there is room for if the carrier is stuck.
func (o *one) send(b *fabric.Batch) {
	if o.stuck && o.TxRoom() < len(b.Pkts) {
		for _, d := range b.Descs {
			o.Unframe(d.Addr)
		}
		return
	}
	o.Send(b)
}

// Flush moves what is queued.
func (c *Carrier) Flush() {
	for i := range c.on {
		c.on[i].Flush()
	}
}

// FD returns -1: a caller waits for each of the carriers.
func (c *Carrier) FD() int { return -1 }

// Stats returns the sums of all.
func (c *Carrier) Stats() fabric.DatagramStats {
	var s fabric.DatagramStats
	for i := range c.on {
		s = s.Plus(c.on[i].Stats())
	}
	return s
}

// StatsOn returns the counts of one.
func (c *Carrier) StatsOn(i int) fabric.DatagramStats { return c.on[i].Stats() }

// Join joins a multicast group on the first network.
func (c *Carrier) Join(group netip.Addr) error { return fabric.Join(c.on[0].Datagram, group) }

// Leave undoes Join.
func (c *Carrier) Leave(group netip.Addr) error { return fabric.Leave(c.on[0].Datagram, group) }

// Close closes all.
func (c *Carrier) Close() error {
	var errs []error
	for i := range c.on {
		errs = append(errs, c.on[i].Close())
	}
	return errors.Join(errs...)
}
