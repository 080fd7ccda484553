package fault

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Datagram is a fabric.Datagram that treats badly what it sends. What it
// receives comes through unchanged: wrap both ends to hurt both directions.
//
// Bits flip only in packets that are Sealed, and before the carrier computes
// its UDP checksum: what is tested is the CRC of the layer above.
//
// Owner: engine, like the carrier's.
type Datagram struct {
	fabric.Datagram
	mill mill
}

var (
	_ fabric.Datagram    = (*Datagram)(nil)
	_ fabric.Multicaster = (*Datagram)(nil)
)

// NewDatagram wraps inner, which it owns from now on when err is nil.
func NewDatagram(inner fabric.Datagram, c Config) (*Datagram, error) {
	m, err := newMill(c, inner.Arena())
	if err != nil {
		return nil, err
	}
	m.headroom, m.take, m.give = inner.Caps().Headroom, inner.Frame, inner.Unframe
	return &Datagram{Datagram: inner, mill: m}, nil
}

// Caps returns the carrier's, with its name marked.
func (d *Datagram) Caps() fabric.DatagramCaps {
	c := d.Datagram.Caps()
	c.Carrier += "+fault"
	return c
}

// TxRoom returns how many datagrams Send takes now. Each may become two, and
// those that are held back go out with them.
func (d *Datagram) TxRoom() int { return max(0, (d.Datagram.TxRoom()-len(d.mill.held))/2) }

// Send does to the datagrams of b what the dice say, and sends the rest.
func (d *Datagram) Send(b *fabric.Batch) {
	for i := range b.Pkts {
		p := &b.Pkts[i]
		d.mill.add(*p, b.Descs[p.First:p.First+p.Bufs], p.Sealed)
	}
	d.push()
}

// Flush sends what has been held back long enough, and flushes the carrier.
func (d *Datagram) Flush() {
	if len(d.mill.held) > 0 {
		d.mill.release(d.Datagram.TxRoom())
		d.push()
	}
	d.Datagram.Flush()
}

func (d *Datagram) push() {
	if len(d.mill.out.Pkts) > 0 {
		d.Datagram.Send(d.mill.out)
		d.mill.out.Reset()
	}
}

// Join asks the carrier. Its error wraps fabric.ErrNoMulticast when that one
// has no multicast.
func (d *Datagram) Join(group netip.Addr) error { return fabric.Join(d.Datagram, group) }

// Leave asks the carrier.
func (d *Datagram) Leave(group netip.Addr) error { return fabric.Leave(d.Datagram, group) }

// Close drops what is held back and closes the carrier.
func (d *Datagram) Close() error {
	d.mill.dropHeld()
	return d.Datagram.Close()
}
