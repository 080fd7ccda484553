package llp

import "github.com/xwarp/xwarp/internal/fabric"

// remoteTable finds a peer by its address: open addressing over powers of two,
// never more than half full.
type remoteTable struct {
	slots []*Peer
	n     int
}

func (t *remoteTable) home(r fabric.Remote) int {
	return int(r.Hash() >> 32 & uint64(len(t.slots)-1))
}

// find returns the peer with an address, or nil.
func (t *remoteTable) find(r fabric.Remote) *Peer {
	if t.n == 0 {
		return nil
	}
	for i := t.home(r); t.slots[i] != nil; i = (i + 1) & (len(t.slots) - 1) {
		if p := t.slots[i]; p.Remote == r {
			return p
		}
	}
	return nil
}

// add enters a peer whose address no other has.
func (t *remoteTable) add(p *Peer) {
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

func (t *remoteTable) put(p *Peer) {
	i := t.home(p.Remote)
	for t.slots[i] != nil {
		i = (i + 1) & (len(t.slots) - 1)
	}
	t.slots[i] = p
}

// remove takes a peer out and moves those behind it up, so that no search ends
// at the gap.
func (t *remoteTable) remove(r fabric.Remote) {
	if t.find(r) == nil {
		return
	}
	mask := len(t.slots) - 1
	gap := t.home(r)
	for t.slots[gap].Remote != r {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.slots[i] != nil; i = (i + 1) & mask {
		if (i-t.home(t.slots[i].Remote))&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = nil
	t.n--
}
