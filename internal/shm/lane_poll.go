package shm

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// What the receiver wants to be told about a ring, in its word asleep. Whoever
// sends takes the wish and fulfils it.
const (
	awake    = 0 // nothing: it looks by itself
	wantBell = 1 // the bit on the board and the bell: it sleeps
	wantBit  = 2 // the bit on the board
)

const (
	hotMax   = 8  // rings looked at in every step: their headers are 8 cache lines
	rowMax   = 16 // messages of one neighbour in a row
	scanRate = 64 // a cold ring is looked at once in so many steps, whatever the board says
)

// board is a page on which senders set the bit of their slot. The receiver
// reads a word for 64 of them. What is written there by a neighbour gone mad
// delays messages at worst: each ring is looked at now and then.
type board struct {
	fd    int // of its owner
	page  []byte
	words []*atomic.Uint64 // up to the last slot that somebody has
}

const (
	boardLen   = 4096
	boardWords = 64
)

// open makes a board.
func (b *board) open() (err error) {
	if b.fd, err = newMemfd(boardLen); err != nil {
		return err
	}
	page, err := unix.Mmap(b.fd, 0, boardLen, readWrite, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("shm: %w", os.NewSyscallError("mmap", err))
	}
	b.page = page
	return nil
}

// cover makes room for a slot.
func (b *board) cover(slot int) {
	for len(b.words) <= slot>>6 {
		b.words = append(b.words, word(b.page, uint64(len(b.words)*8)))
	}
}

func (b *board) close() error {
	if b.fd > 0 {
		unix.Close(b.fd)
	}
	if b.page == nil {
		return nil
	}
	err := unix.Munmap(b.page)
	*b = board{}
	return os.NewSyscallError("munmap", err)
}

func (b *board) set(slot int) { b.words[slot>>6].Or(1 << (slot & 63)) }

// laneIn is the receiver's end of a ring.
type laneIn struct {
	ring
	mapped []byte
	next   uint64 // position of the next record
	told   uint64 // what head says
	taken  uint64 // bytes of the record that the caller has
	most   int
	broken bool // the sender wrote nonsense: nothing is read any more
	hot    bool
	lane   *Lane
	rank   int
	slot   int
	bell   int // the sender's eventfd
	pid    int // the sender's process, whose memory can be read, or 0
	line   *lifeline
}

// unmap gives back what a lane in has had.
func (in *laneIn) unmap() error {
	unix.Close(in.bell)
	return os.NewSyscallError("munmap", unix.Munmap(in.mapped))
}

// waiting reports whether there is something to read, if only nonsense.
func (in *laneIn) waiting() bool { return !in.broken && in.header(in.next).Load() != 0 }

// take returns the oldest message of a ring that has something, or nil when that
// is nonsense. What it holds may be nonsense, and
// change while it is read.
func (in *laneIn) take() []byte {
	skipped, n, what := in.read(in.next, in.most)
	if what != record {
		if what == nonsense {
			in.broken = true
		}
		return nil
	}
	in.next += skipped
	in.taken = recordLen(n)
	at := in.next&in.mask + headerLen
	return in.data[at : at+uint64(n) : at+uint64(n)]
}

// release frees the message that was taken. The sender learns of it late, for
// each time costs both a cache miss, but early enough: see laneMost.
func (in *laneIn) release() {
	in.next += in.taken
	in.taken = 0
	if in.next-in.told >= uint64(len(in.data)/4) {
		in.told = in.next
		in.head.Store(in.next)
		if in.hungry().Load() != 0 && in.hungry().Swap(0) != 0 {
			ringBell(in.bell)
		}
	}
}

// Next returns the oldest message of one of the neighbours, and which it is, or
// nil when there is none. The bytes are the caller's until Release, which comes
// before the next call. They are in memory that the neighbour can write: read
// each of them once.
func (l *Lanes) Next() (from *Lane, message []byte) {
	if l.sleeping {
		l.wakeUp()
	}
	if l.changed.Load() != l.seen {
		l.meetAll()
	}
	for i, w := range l.board.words {
		if w.Load() != 0 {
			l.heatAll(i, w.Swap(0))
		}
	}
	for range len(l.hot) {
		if l.left == 0 || l.turn >= len(l.hot) {
			l.left = rowMax
			if l.turn++; l.turn >= len(l.hot) {
				l.turn = 0
			}
		}
		in := l.hot[l.turn]
		if in.header(in.next).Load() == 0 {
			l.left = 0
			continue
		}
		if b := in.take(); b != nil {
			l.left--
			l.reading = in
			return in.lane, b
		}
		l.spoil(in)
		break
	}
	if l.tick++; l.tick%scanRate == 0 {
		l.scan()
	}
	return nil, nil
}

// Release frees the message that Next has returned.
func (l *Lanes) Release() {
	l.reading.release()
	l.reading = nil
}

// wakeUp tells neighbours that the engine looks by itself again.
func (l *Lanes) wakeUp() {
	l.sleeping = false
	for _, in := range l.slots {
		switch {
		case in == nil:
		case in.hot:
			in.asleep.Store(awake)
		default:
			in.asleep.CompareAndSwap(wantBell, wantBit) // else its bit is set
		}
	}
}

// heatAll makes the rings hot whose bits are set in a word of the board.
func (l *Lanes) heatAll(word int, set uint64) {
	for ; set != 0; set &= set - 1 {
		if slot := word<<6 + bits.TrailingZeros64(set); slot < len(l.slots) {
			if in := l.slots[slot]; in != nil {
				l.heat(in)
			}
		}
	}
}

// heat makes a ring one of those that are looked at in every step.
func (l *Lanes) heat(in *laneIn) {
	in.asleep.Store(awake)
	if in.hot || in.broken {
		return
	}
	in.hot = true
	if len(l.hot) < hotMax {
		l.hot = append(l.hot, in)
		return
	}
	if l.victim++; l.victim >= hotMax {
		l.victim = 0
	}
	old := l.hot[l.victim]
	l.hot[l.victim] = in
	old.hot = false
	old.asleep.Store(wantBit)
	if old.waiting() { // it came before the wish
		l.board.set(old.slot)
	}
}

// scan looks at one cold ring.
func (l *Lanes) scan() {
	if slot := int(l.tick/scanRate) % max(len(l.slots), 1); slot < len(l.slots) {
		if in := l.slots[slot]; in != nil && !in.hot && in.waiting() {
			l.heat(in)
		}
	}
}

var (
	errNonsense = errors.New("the neighbour wrote nonsense into its lane")
	errLied     = errors.New("the neighbour has released messages that it never had")
)

// spoil ends the use of a ring that has nonsense in it. The sender notices.
func (l *Lanes) spoil(in *laneIn) {
	l.cool(in)
	in.line.close()
	in.lane.lose(errNonsense)
}

// cool takes a ring out of the hot ones for good.
func (l *Lanes) cool(in *laneIn) {
	for i, have := range l.hot {
		if have == in {
			l.hot = append(l.hot[:i], l.hot[i+1:]...)
			in.hot = false
		}
	}
	l.turn, l.left, l.victim = 0, 0, 0
}

// Lost returns a neighbour that is gone, and nil when there is none of which it
// has not told. Everything that the neighbour had sent before was returned by
// Next.
func (l *Lanes) Lost() *Lane {
	if l.leaving == 0 {
		return nil
	}
	return l.lost()
}

func (l *Lanes) lost() *Lane {
	for _, n := range l.lanes {
		if n.loss == leaving && (n.in == nil || !n.in.waiting()) {
			n.loss = reported
			l.leaving--
			if n.in != nil {
				l.cool(n.in)
			}
			return n
		}
	}
	return nil
}
