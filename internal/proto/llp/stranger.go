package llp

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

const (
	// maxStrangers is how many peers there may be of which nothing but a first
	// Hello was heard: 2 MB of them.
	maxStrangers = 1 << 12
	// strangerLife is how long one is remembered.
	strangerLife = 3 * mono.Second
	// amplification is how many bytes a stranger is sent at most for each that came
	// from there: whose address it is, is not known (RFC 9000, section 8).
	amplification = 3
)

// strangers are the peers that have not shown yet that they know our number of
// the association: the Hello that began it may be an old one that a forger
// sends again, or be forged. Our own Hello makes a live one known after one
// round trip. When there are too many, the oldest gives way.
//
// To forget one does no harm, for its number follows from its address (cookie): a peer that
// comes back with it has got our answer.
type strangers struct {
	oldest, newest *Peer
	n              int
}

func (s *strangers) add(p *Peer) {
	p.stranger, p.older = true, s.newest
	if s.newest != nil {
		s.newest.newer = p
	} else {
		s.oldest = p
	}
	s.newest = p
	s.n++
}

// remove takes a peer out that is known now, or gone. Others are ignored.
func (s *strangers) remove(p *Peer) {
	if !p.stranger {
		return
	}
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		s.newest = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		s.oldest = p.newer
	}
	p.stranger, p.older, p.newer = false, nil, nil
	s.n--
}

// meet makes an association with the sender of a Hello, whose number is
// remote.
func (hs *handshake) meet(from fabric.Remote, path fabric.Path, remote uint32) *Peer {
	if hs.strangers.n == maxStrangers {
		hs.forget(hs.strangers.oldest)
	}
	p := hs.add(from, path, hs.cookie(from, remote))
	hs.strangers.add(p)
	hs.open(p, remote)
	return p
}

// forget ends the association with a stranger. It is no loss.
func (hs *handshake) forget(p *Peer) {
	hs.ep.Stats.PeersDropped++
	hs.remove(p)
}

// cookie returns our number of the association with a stranger whose own is remote. As
// long as no association ends, it is the same each time; afterwards it is another one, so
// that old datagrams cannot bring back what is over.
func (hs *handshake) cookie(from fabric.Remote, remote uint32) uint32 {
	var b [len(hs.ep.cfg.Seed) + 16 + 2 + 4 + 8]byte
	at := copy(b[:], hs.ep.cfg.Seed[:])
	a := from.AddrPort()
	ip := a.Addr().As16()
	at += copy(b[at:], ip[:])
	binary.BigEndian.PutUint16(b[at:], a.Port())
	binary.BigEndian.PutUint32(b[at+2:], remote)
	binary.BigEndian.PutUint64(b[at+6:], hs.lives)
	sum := sha256.Sum256(b[:])
	return max(binary.BigEndian.Uint32(sum[:]), 1)
}

// recall returns the association with a stranger that was forgotten, and which has shown
// with a datagram of it that it knows our number; or nil. p is the peer with the address now,
// or nil.
func (hs *handshake) recall(p *Peer, from fabric.Remote, h *dgram.Header) *Peer {
	if p != nil && !p.stranger || h.DstEpoch != hs.cookie(from, h.SrcEpoch) {
		return nil
	}
	if p != nil {
		hs.forget(p)
	}
	path, ok := hs.ep.multi.pathBack(from)
	if !ok || hs.ep.multi.via() != 0 {
		return nil
	}
	p = hs.add(from, path, h.DstEpoch)
	hs.open(p, h.SrcEpoch)
	return p
}

// known notes where the peer is that has sent a datagram which no other host can have
// sent.
func (hs *handshake) known(p *Peer) {
	if p.stranger {
		hs.strangers.remove(p)
		p.askAt = min(p.askAt, hs.ep.now.Add(helloFirst)) // it may have waited for being allowed
		hs.ep.Wake(&p.Assoc, p.askAt)
	}
	if !hs.ep.bulk.lent { // there the kernel has received it, and does not say from where
		if to, ok := hs.ep.multi.pathHere(p); ok {
			p.uncertain = false
			hs.ep.dg.Trust(to, hs.station())
		}
	}
}

// station returns what the datagram came from that is looked at.
func (hs *handshake) station() fabric.Station {
	if hs.ep.bulk.lent {
		return 0
	}
	return hs.ep.rx.Pkts[hs.ep.rxPos-1].Station
}

// came counts n bytes from a stranger.
func (p *Peer) came(n int) { p.credit = min(p.credit+amplification*int32(n), 1<<20) }

// spend takes n bytes off what may be sent to p, which is limited for a stranger, and
// reports whether that was enough.
func (p *Peer) spend(n int) bool {
	if !p.stranger {
		return true
	}
	if int(p.credit) < n {
		return false
	}
	p.credit -= int32(n)
	return true
}

// doubtTries is how many time-outs or Hellos without an answer it takes in a row until
// the carrier is told of it: a single one happens.
const doubtTries = 2

// Uncertain has the next datagram that is proven to be of p show where p is. It is called
// when p sends again, perhaps because what is sent to it goes to where it is not: to an
// Ethernet address that was read from a damaged frame, whose header no CRC of ours covers.
func (p *Peer) Uncertain() { p.uncertain = true }

// doubt tells the carrier of a peer that should have answered and did not: it may be
// somewhere else by now, or its address may have been forged. What comes from it
// next shows it.
func (hs *handshake) doubt(p *Peer) {
	if !p.stranger {
		p.uncertain = true
		hs.ownSource(p)
		hs.ep.dg.Doubt(p.path)
	}
}
