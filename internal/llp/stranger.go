package llp

import "github.com/xwarp/xwarp/internal/fabric"

// maxStrangers is how many peers there may be of which nothing but a first
// Hello was heard: 30 MB of them.
const maxStrangers = 1 << 16

// strangers are the peers that have not shown yet that they know our number of
// the association: the Hello that began it may be an old one that somebody
// sends again, or be forged. Our own Hello makes a live one known after one
// round trip. When there are too many, the oldest gives way.
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

// meet makes an association with somebody who said Hello, and whose number is
// remote.
func (e *Endpoint) meet(from fabric.Remote, path fabric.Path, remote uint32) *Peer {
	if e.strangers.n == maxStrangers {
		e.Stats.PeersDropped++
		e.end(e.strangers.oldest, PeerLost)
	}
	p := e.add(from, path, e.number())
	e.strangers.add(p)
	e.open(p, remote)
	return p
}
