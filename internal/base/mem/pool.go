package mem

import "fmt"

// FrameState is where a frame is in its life.
type FrameState uint8

// The states of a frame. A frame moves free -> fill -> rx -> (lent) -> free
// and free -> tx -> free.
const (
	FrameFree FrameState = iota // in the pool
	FrameOut                    // taken from the pool by its owner: fill, rx, lent, tx or held
)

// Pool is a stack of frames that lie side by side in an arena. Get and Put do
// not allocate and take no lock: one engine owns a pool.
//
// A pool may stand in for ranges of frames that several pools share, see
// Borrow: those never come out of Get.
type Pool struct {
	base, end Addr
	free      []Addr         // stack
	warm      [warmMost]Addr // stack of frames that were sent last
	warmN     int
	state     []FrameState

	borrowed []*Borrowed
}

// Borrowed is a range of frames that a pool has borrowed.
type Borrowed struct {
	base, length Addr
	returned     []Addr
}

// NewPool takes count frames from the arena. With track set every move of a
// frame is checked and a double Put panics; tests and the simulator set it.
func NewPool(a *Arena, count int, track bool) (*Pool, error) {
	base, err := a.Alloc(count*FrameSize, FrameSize)
	if err != nil {
		return nil, fmt.Errorf("frame pool of %d frames: %w", count, err)
	}
	p := &Pool{base: base, end: base + Addr(count)*FrameSize, free: make([]Addr, count)}
	for i := range p.free { // lowest address on top: the stack stays warm in the cache
		p.free[i] = p.end - Addr(i+1)*FrameSize
	}
	if track {
		p.state = make([]FrameState, count)
	}
	return p, nil
}

// Release gives the frames back to the arena that they were taken from. The
// pool and every frame of it are invalid afterwards.
func (p *Pool) Release(a *Arena) { a.Free(p.base) }

// Get takes a frame. ok is false when there is none. The caller owns it until Put.
func (p *Pool) Get() (addr Addr, ok bool) {
	n := len(p.free)
	if n == 0 {
		return p.getWarm()
	}
	addr = p.free[n-1]
	p.free = p.free[:n-1]
	if p.state != nil {
		p.move(addr, FrameFree, FrameOut)
	}
	return addr, true
}

// Put gives back the frame that addr lies in. Addresses outside of the pool
// (payload sent straight from a registered buffer) are ignored: they belong to
// another owner.
func (p *Pool) Put(addr Addr) {
	if addr < p.base || addr >= p.end {
		for _, b := range p.borrowed {
			if addr-b.base < b.length {
				b.returned = append(b.returned, FrameBase(addr)) // never grows
				return
			}
		}
		return
	}
	addr = FrameBase(addr)
	if p.state != nil {
		p.move(addr, FrameOut, FrameFree)
	}
	p.free = append(p.free, addr) // never grows: cap is the number of frames
}

// Borrow makes Put of a frame of the count ones from base on keep it for
// Borrowed.TakeReturned. They belong to several pools, whose owners hand them round
// among themselves: an owner that was given one puts it into its own pool. A pool may
// have several such ranges, of frames that different carriers receive into.
func (p *Pool) Borrow(base Addr, count int) *Borrowed {
	b := &Borrowed{base: base, length: Addr(count) * FrameSize, returned: make([]Addr, 0, count)}
	p.borrowed = append(p.borrowed, b)
	return b
}

// Returned returns the borrowed frames that were put since TakeReturned.
func (b *Borrowed) Returned() []Addr { return b.returned }

// TakeReturned makes Returned empty: its frames have another owner now.
func (b *Borrowed) TakeReturned() { b.returned = b.returned[:0] }

// Reclaim takes a borrowed frame that was put, the last one, for an owner that hands none
// round and gives it to the kernel again. ok is false when there is none.
func (b *Borrowed) Reclaim() (addr Addr, ok bool) {
	n := len(b.returned)
	if n == 0 {
		return 0, false
	}
	addr = b.returned[n-1]
	b.returned = b.returned[:n-1]
	return addr, true
}

// warmMost is how many frames are kept apart for sending.
const warmMost = 32

// GetToSend is Get for a frame that this side will write and send: one that
// was sent before, if there is one, for its cache lines are in no other
// processor's cache. Those that were received into are.
func (p *Pool) GetToSend() (addr Addr, ok bool) {
	if p.warmN == 0 {
		return p.Get()
	}
	return p.getWarm()
}

func (p *Pool) getWarm() (addr Addr, ok bool) {
	if p.warmN == 0 {
		return 0, false
	}
	p.warmN--
	addr = p.warm[p.warmN]
	if p.state != nil {
		p.move(addr, FrameFree, FrameOut)
	}
	return addr, true
}

// PutSent is Put for a frame that was sent.
func (p *Pool) PutSent(addr Addr) {
	if p.warmN == warmMost || !p.Owns(addr) {
		p.Put(addr)
		return
	}
	addr = FrameBase(addr)
	if p.state != nil {
		p.move(addr, FrameOut, FrameFree)
	}
	p.warm[p.warmN] = addr
	p.warmN++
}

// Owns reports whether addr lies in a frame of this pool.
func (p *Pool) Owns(addr Addr) bool { return addr >= p.base && addr < p.end }

// Free returns how many frames are in the pool.
func (p *Pool) Free() int { return len(p.free) + p.warmN }

// Cap returns how many frames the pool has in all, those that it borrows
// included: more never wait anywhere.
func (p *Pool) Cap() int {
	n := p.end - p.base
	for _, b := range p.borrowed {
		n += b.length
	}
	return int(n / FrameSize)
}

func (p *Pool) move(addr Addr, from, to FrameState) {
	i := (addr - p.base) / FrameSize
	if p.state[i] != from {
		panic(fmt.Sprintf("mem: frame %#x is in state %d, not %d", addr, p.state[i], from))
	}
	p.state[i] = to
}
