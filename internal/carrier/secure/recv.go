package secure

import (
	"crypto/cipher"
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Recv fills b with what was received, and is authentic and new.
func (d *Datagram) Recv(b *fabric.Batch) int {
	n := d.Datagram.Recv(b)
	if n == 0 {
		return 0
	}
	d.tried = 0
	kept := 0
	for i := range b.Pkts {
		p := &b.Pkts[i]
		if !d.open(p, b.Descs[p.First:p.First+p.Bufs]) {
			continue
		}
		if kept != i {
			b.Pkts[kept] = *p
		}
		kept++
	}
	b.Pkts = b.Pkts[:kept]
	if kept == 0 {
		d.Datagram.Release(b)
	}
	return kept
}

// Release gives back all buffers of a batch that Recv filled, those too of what was refused.
func (d *Datagram) Release(b *fabric.Batch) {
	for i := range b.Pkts {
		b.Descs[b.Pkts[i].First].Addr -= HeaderLen // some carriers know a buffer by where it began
	}
	d.Datagram.Release(b)
}

// open decrypts a datagram where it lies, and cuts header and tag off. false: it was
// refused, and counted.
func (d *Datagram) open(p *fabric.Packet, descs []fabric.Desc) bool {
	var h header
	first := d.arena.At(descs[0].Addr, int(descs[0].Len))
	if len(first) < HeaderLen || p.Len < Overhead || int(p.Len) > len(d.flat) || !h.parse(first) {
		d.stats.RxForged++
		return false
	}
	s := d.sender(p.From, &h)
	generation := h.counter >> d.bits
	if s != nil && (!s.window.fresh(h.counter) || generation+1 < s.generation) {
		d.stats.RxReplayed++
		return false
	}
	key := d.key(s, generation)
	strange := key == nil
	if strange {
		if d.tried == strangersTried {
			d.stats.RxForged++
			return false
		}
		d.tried++
		key = d.keys.aead(&h, p.From, d.self, generation)
	}
	binary.BigEndian.PutUint64(d.nonce[4:], h.counter)
	if !d.decrypt(key, first, descs, int(p.Len)) {
		d.stats.RxForged++
		return false
	}
	if strange {
		d.tried--
	}
	if s == nil {
		s = &incoming{hdr: h, from: p.From, generation: generation}
		d.senders.Add(p.From.Hash(), s)
	}
	s.proven(generation, key)
	s.window.mark(h.counter)
	d.last = s
	trim(p, descs)
	return true
}

// sender returns the peer with the address that h names, or nil.
func (d *Datagram) sender(from fabric.Remote, h *header) *incoming {
	if s := d.last; s != nil && s.is(from, h) {
		return s
	}
	hash := from.Hash()
	for s, at := d.senders.First(hash); s != nil; s, at = d.senders.Next(hash, at) {
		if s.is(from, h) {
			return s
		}
	}
	return nil
}

func (s *incoming) is(from fabric.Remote, h *header) bool {
	return s.hdr.instead == h.instead && s.from == from && s.hdr.who == h.who && s.hdr.flags == h.flags
}

// key returns what a datagram of s is decrypted with, or nil if that is not known. The key
// of the next generation is made when it is first claimed, authentic or not, and kept.
func (d *Datagram) key(s *incoming, generation uint64) cipher.AEAD {
	switch {
	case s == nil:
		return nil
	case generation == s.generation:
		return s.newest
	case generation+1 == s.generation:
		return s.before
	case generation != s.generation+1:
		return nil
	case s.next == nil:
		s.next = d.keys.aead(&s.hdr, s.from, d.self, generation)
	}
	return s.next
}

// proven notes that the key of a generation has decrypted something.
func (s *incoming) proven(generation uint64, key cipher.AEAD) {
	switch {
	case generation+1 == s.generation:
		s.before = key
		return
	case generation == s.generation+1:
		s.before, s.next = s.newest, nil
	case generation != s.generation:
		s.before, s.next = nil, nil
	}
	s.generation, s.newest = generation, key
}

// decrypt decrypts a datagram of n bytes, the first of which are first, where it lies. The
// nonce is set. After false nothing of it is plaintext.
func (d *Datagram) decrypt(key cipher.AEAD, first []byte, descs []fabric.Desc, n int) bool {
	if len(descs) == 1 {
		_, err := key.Open(first[HeaderLen:HeaderLen], d.nonce[:], first[HeaderLen:], nil)
		return err == nil
	}
	flat := d.flat[:0]
	for i := range descs {
		flat = append(flat, d.arena.At(descs[i].Addr, int(descs[i].Len))...)
	}
	plain, err := key.Open(flat[HeaderLen:HeaderLen], d.nonce[:], flat[HeaderLen:n], nil)
	if err != nil {
		return false
	}
	plain = plain[copy(first[HeaderLen:], plain):]
	for i := 1; len(plain) > 0; i++ {
		plain = plain[copy(d.arena.At(descs[i].Addr, int(descs[i].Len)), plain):]
	}
	return true
}

// trim cuts header and tag off.
func trim(p *fabric.Packet, descs []fabric.Desc) {
	p.Len -= Overhead
	descs[0].Addr += HeaderLen
	descs[0].Len -= HeaderLen
	for left := uint32(TagLen); left > 0; {
		last := &descs[p.Bufs-1]
		n := min(left, last.Len)
		last.Len -= n
		if left -= n; last.Len == 0 && p.Bufs > 1 {
			p.Bufs--
		}
	}
	descs[p.Bufs-1].Flags = 0
}
