package p2p

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/xwarp/xwarp/verbs"
)

// A ghost sends from memory that it has mapped, and receives into it. It maps that of windows when it serves them
// (package rma). Other memory a rank shares with it: a segment, for as long as the program has it.
//
//	rank                              ghost
//	  | -- share: segment ------------> |
//	  | <- shared: key and address ---- |   0: it has not mapped it
//	  |                                 |
//	  | -- unshare: key --------------> |   it unmaps it, behind what it sends from there
//
// The rank waits for the key, so that it can do without where the ghost has no room or is lost. It
// does not wait for the end: the ghost has a mapping of its own.

// sharedMost is how many segments a rank may share with its ghost at a time: both look through
// them for each long message.
const sharedMost = 256

// What is behind the header: of a share number and bytes of the segment, of the answer key and address.
const (
	shareLen  = 16
	sharedLen = 12
)

// sharing is a segment that waits for the answer of a ghost.
type sharing struct {
	ghost    int32
	number   uint32
	answered bool
	key      uint32
	addr     uint64
}

// sharedArea is what a ghost has of a segment that was shared with it; without one, the memory is a window's.
type sharedArea struct {
	segment *Segment
	mr      *verbs.MR // for processes that write there; its key is that of the memory
}

// Share lets a ghost of this host send from b and others write there through it, which a segment of this rank begins with, until
// Unshare. It waits for the ghost, and others come inside meanwhile. A key of 0: the ghost does
// not, or is lost.
func (d Delegations) Share(segment *Segment, b []byte, ghost int32) (key uint32) {
	ep, dr := d.ep, &d.ep.delegator
	dr.shares++
	s := &sharing{ghost: ghost, number: dr.shares}
	dr.sharings = append(dr.sharings, s)
	body := binary.BigEndian.AppendUint64(make([]byte, 0, shareLen), segment.ID())
	ep.out.tell(int(ghost), header{kind: kindShare, id: s.number}, binary.BigEndian.AppendUint64(body, uint64(len(b))))
	for !s.answered && ep.peers[ghost].err == nil {
		ep.progress(nil)
	}
	dr.sharings = slices.DeleteFunc(dr.sharings, func(other *sharing) bool { return other == s })
	segment.Withdraw()
	if s.key == 0 || ep.peers[ghost].err != nil {
		return 0
	}
	d.Lend(b, ghost, s.key, s.addr)
	return s.key
}

// Unshare ends what Share has begun. The memory may go at once.
func (d Delegations) Unshare(ghost int32, key uint32) {
	d.TakeBack(ghost, key)
	if d.ep.peers[ghost].err != nil {
		return
	}
	d.ep.out.notify(int(ghost), kindUnshare, 0, key)
	d.ep.out.flush()
}

// arrived takes in a message about a segment.
func (d Delegations) arrived(h *header, b []byte) {
	ok := false
	switch ghost := int(d.ep.rank) >= d.ep.cfg.ranks(); {
	case h.kind == kindShared:
		ok = d.ep.delegator.arrivedShared(h, b)
	case !ghost || int(h.source) >= d.ep.cfg.ranks():
	case h.kind == kindShare:
		ok = true
		key, addr := d.mapShared(h.source, binary.BigEndian.Uint64(b[headerLen:]), binary.BigEndian.Uint64(b[headerLen+8:]))
		body := binary.BigEndian.AppendUint32(make([]byte, 0, sharedLen), key)
		d.ep.out.tell(int(h.source), header{kind: kindShared, id: h.id}, binary.BigEndian.AppendUint64(body, addr))
	case d.ep.delegatee != nil:
		ok = d.ep.delegatee.unshare(h.source, h.id)
	}
	if !ok {
		d.ep.Stats.Malformed++
	}
}

// arrivedShared takes in the answer of a ghost.
func (d *delegator) arrivedShared(h *header, b []byte) bool {
	for _, s := range d.sharings {
		if s.ghost == h.source && s.number == h.id && !s.answered {
			s.key, s.addr, s.answered = binary.BigEndian.Uint32(b[headerLen:]), binary.BigEndian.Uint64(b[headerLen+4:]), true
			return true
		}
	}
	return false
}

// mapShared maps a segment of a rank, and returns the key by which the rank is to know it, or 0, and the address
// for processes that write there.
func (d Delegations) mapShared(owner int32, id, size uint64) (key uint32, addr uint64) {
	if !Segments(d).With(owner) || size == 0 || size > math.MaxInt || d.ep.delegatee.shared(owner) >= sharedMost {
		return 0, 0
	}
	segment, err := Segments(d).Open(owner, id, int(size))
	if err != nil {
		return 0, 0
	}
	b := segment.Bytes()[:size:size]
	mr, err := d.ep.net.pd.RegMR(b, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		_ = segment.Close() // it was mapped by us
		return 0, 0
	}
	d.Map(owner, mr.RKey(), b)
	all := d.ep.delegatee.areas
	all[len(all)-1].shared = sharedArea{segment, mr}
	return mr.RKey(), mr.Addr()
}

// shared returns how many segments a rank shares with this ghost.
func (de *delegatee) shared(owner int32) (n int) {
	if de == nil {
		return 0
	}
	for _, a := range de.areas {
		if a.owner == owner && a.shared.segment != nil {
			n++
		}
	}
	return n
}

// unshare ends the use of a segment. false: the rank shares none of that key.
func (de *delegatee) unshare(owner int32, key uint32) bool {
	for _, a := range de.areas {
		if a.owner == owner && a.key == key && a.closing == nil && a.shared.segment != nil {
			_ = a.shared.mr.Dereg() // no memory window is bound to it
			Delegations{de.ep}.Unmap(owner, key, a.shared.segment)
			return true
		}
	}
	return false
}
