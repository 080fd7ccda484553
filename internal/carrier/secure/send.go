package secure

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Send encrypts all datagrams of b and queues them.
func (d *Datagram) Send(b *fabric.Batch) {
	d.tx.Reset()
	for i := range b.Pkts {
		p := &b.Pkts[i]
		d.seal(p, b.Descs[p.First:p.First+p.Bufs])
	}
	d.Datagram.Send(d.tx)
}

// seal appends a datagram to d.tx, encrypted: where it lies if that is one buffer of a frame
// with room behind it, else in frames that it is moved to.
func (d *Datagram) seal(p *fabric.Packet, descs []fabric.Desc) {
	o := d.way(p.To)
	if o.hdr.counter == o.until {
		d.rekey(o)
	}
	hdr := o.hdr
	o.hdr.counter++ // used, whatever becomes of this one
	binary.BigEndian.PutUint64(d.nonce[4:], hdr.counter)
	q := *p
	q.First, q.Sealed, q.Len = int32(len(d.tx.Descs)), true, p.Len+Overhead
	at, n := descs[0].Addr, int(descs[0].Len)
	if len(descs) == 1 && int(at%mem.FrameSize)+n+TagLen <= mem.FrameSize {
		b := d.arena.At(at-HeaderLen, HeaderLen+n+TagLen)
		hdr.put(b)
		o.aead.Seal(b[HeaderLen:HeaderLen], d.nonce[:], b[HeaderLen:HeaderLen+n], nil)
		d.tx.Descs = append(d.tx.Descs, fabric.Desc{Addr: at - HeaderLen, Len: uint32(len(b))})
	} else {
		flat := d.flat[:HeaderLen]
		hdr.put(flat)
		for i := range descs {
			flat = append(flat, d.arena.At(descs[i].Addr, int(descs[i].Len))...)
		}
		flat = o.aead.Seal(flat[:HeaderLen], d.nonce[:], flat[HeaderLen:], nil)
		if !d.spread(flat, descs) {
			d.lost++
			return
		}
		q.Bufs = int32(len(d.tx.Descs)) - q.First
	}
	d.tx.Pkts = append(d.tx.Pkts, q)
}

// rekey gives o the key of its next datagrams.
func (d *Datagram) rekey(o *outgoing) {
	generation := o.hdr.counter >> d.bits
	o.aead = d.keys.aead(&o.hdr, d.self, o.to, generation)
	o.until = (generation + 1) << d.bits
}

// spread writes a datagram to frames, the first of which is that of the first of descs, and
// gives the other buffers back, memory of users too, to which nothing is written. false: there
// are too few frames, and the first is given back as well.
func (d *Datagram) spread(flat []byte, descs []fabric.Desc) bool {
	first := len(d.tx.Descs)
	for _, desc := range descs[1:] {
		d.Datagram.Unframe(desc.Addr)
	}
	at := mem.FrameBase(descs[0].Addr) + mem.Addr(d.caps.Headroom)
	for room := mem.FrameSize - d.caps.Headroom; ; room = mem.FrameSize {
		n := min(room, len(flat))
		copy(d.arena.At(at, n), flat)
		d.tx.Descs = append(d.tx.Descs, fabric.Desc{Addr: at, Len: uint32(n), Flags: fabric.More})
		if flat = flat[n:]; len(flat) == 0 {
			d.tx.Descs[len(d.tx.Descs)-1].Flags = 0
			return true
		}
		var ok bool
		if at, ok = d.Datagram.Frame(); !ok {
			for _, desc := range d.tx.Descs[first:] {
				d.Datagram.Unframe(desc.Addr)
			}
			d.tx.Descs = d.tx.Descs[:first]
			return false
		}
	}
}
