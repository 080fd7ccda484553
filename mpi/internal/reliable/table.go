package reliable

import "github.com/xwarp/xwarp/verbs"

// table finds peers by their address: a hash table with linear probing, less
// than half full.
type table struct {
	slots []*Peer // power of two
	n     int
}

func (t *table) add(p *Peer) {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]*Peer, max(16, 2*len(old)))
		for _, p := range old {
			if p != nil {
				t.put(p)
			}
		}
	}
	t.put(p)
	t.n++
}

func (t *table) put(p *Peer) {
	i := t.home(p.remote)
	for t.slots[i] != nil {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = p
}

func (t *table) home(r verbs.Remote) int {
	return int(r.Hash()>>32) & (len(t.slots) - 1)
}

// find returns the peer with an address and a queue pair, or nil.
func (t *table) find(r verbs.Remote, qpn uint32) *Peer {
	if t.n == 0 {
		return nil
	}
	for i := t.home(r); t.slots[i] != nil; i = (i + 1) & (len(t.slots) - 1) {
		if p := t.slots[i]; p.remote == r && p.qpn == qpn {
			return p
		}
	}
	return nil
}
