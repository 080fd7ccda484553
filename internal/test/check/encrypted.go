package check

import (
	"encoding/binary"
	"net/netip"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/secure"
)

// encrypted puts encryption over the carriers of a life, and what looks for nonces that come
// twice below that. Keys change often, after 8 to 2048 datagrams.
func (w *world) encrypted(h *host, first, second fabric.Datagram) (fabric.Datagram, fabric.Datagram, error) {
	secret := make([]byte, secure.SecretLen)
	binary.BigEndian.PutUint64(secret, w.Seed)
	wrap := func(dg fabric.Datagram, way byte) (fabric.Datagram, error) {
		c := secure.Config{Secret: secret, Instance: secure.Instance{way, byte(h.id), byte(h.lives)}, KeyBits: uint(3 + w.Seed%9)}
		return secure.New(&wire{Datagram: dg, w: w, from: fabric.RemoteOf(dg.Local()), to: map[fabric.Path]fabric.Remote{}}, c)
	}
	first, err := wrap(first, 1)
	if err == nil && second != nil {
		second, err = wrap(second, 2)
	}
	return first, second, err
}

// nonce is what must never come twice: a key follows from the first three and from the
// counter, and the nonce is the counter.
type nonce struct {
	sender   [12]byte
	from, to fabric.Remote // to is nobody for all groups
	counter  uint64
}

// wire sees what a carrier sends, encrypted.
type wire struct {
	fabric.Datagram
	w    *world
	from fabric.Remote
	to   map[fabric.Path]fabric.Remote
}

func (x *wire) Resolve(to netip.AddrPort) (fabric.Path, error) {
	path, err := x.Datagram.Resolve(to)
	if x.to[path] = fabric.RemoteOf(to); to.Addr().IsMulticast() {
		x.to[path] = fabric.Remote{}
	}
	return path, err
}

func (x *wire) Back(from fabric.Remote, station fabric.Station) (fabric.Path, bool) {
	path, ok := x.Datagram.Back(from, station)
	if ok {
		x.to[path] = from
	}
	return path, ok
}

// Send holds each datagram against all that any life of any host has sent.
func (x *wire) Send(b *fabric.Batch) {
	for i := range b.Pkts {
		p := &b.Pkts[i]
		d := b.Descs[p.First]
		h := x.Arena().At(d.Addr, int(d.Len))
		n := nonce{from: x.from, to: x.to[p.To], counter: binary.BigEndian.Uint64(h[8:])}
		copy(n.sender[:], h[:4])
		copy(n.sender[4:], h[16:24])
		if x.w.nonces[n] {
			x.w.model.fail("the nonce %d of %v to %v comes twice", n.counter, n.from.AddrPort(), n.to.AddrPort())
		}
		x.w.nonces[n] = true
	}
	x.Datagram.Send(b)
}

// Join lets the carrier below receive what is sent to a group.
func (x *wire) Join(group netip.Addr) error { return x.Datagram.(fabric.Multicaster).Join(group) }

// Leave undoes Join.
func (x *wire) Leave(group netip.Addr) error { return x.Datagram.(fabric.Multicaster).Leave(group) }
