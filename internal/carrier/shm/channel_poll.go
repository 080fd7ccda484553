package shm

import (
	"errors"
	"math/bits"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
)

const (
	hotMax   = 8  // rings looked at in every step: their headers are 8 cache lines
	rowMax   = 16 // messages of one neighbour in a row
	scanRate = 64 // a cold ring is looked at once in so many steps, whatever the bitmap says
)

// bitmap is a page on which senders set the bit of their slot. The receiver
// reads a word for 64 of them. What is written there by a neighbour gone mad
// delays messages at worst: each ring is looked at now and then.
type bitmap struct {
	fd    int // of its owner
	page  []byte
	words []*atomic.Uint64 // up to the last slot in use
}

const (
	bitmapLen   = 4096
	bitmapWords = 64
)

// open makes a bitmap.
func (b *bitmap) open() (err error) {
	b.fd, b.page, err = newMemory(memfdName, bitmapLen)
	return err
}

// cover makes room for a slot.
func (b *bitmap) cover(slot int) {
	for len(b.words) <= slot>>6 {
		b.words = append(b.words, word(b.page, uint64(len(b.words)*8)))
	}
}

func (b *bitmap) close() error {
	if b.fd > 0 {
		unix.Close(b.fd)
	}
	if b.page == nil {
		return nil
	}
	err := mem.Unmap(b.page)
	*b = bitmap{}
	return os.NewSyscallError("munmap", err)
}

func (b *bitmap) set(slot int) { b.words[slot>>6].Or(1 << (slot & 63)) }

// channelIn is the receiver's end of a ring.
type channelIn struct {
	reader
	taken   uint64 // bytes of the record that the caller has
	dirtied uint64 // the lines of everything before it are this core's alone
	hot     bool
	channel *Channel
	rank    int
	bell    event.Bell // the sender's
	pid     int        // the sender's process, whose memory can be read, or 0
	memory  *ringMemory
}

// take returns the oldest message of a ring that has something, or nil when that
// is nonsense. What it holds may be nonsense, and
// change while it is read.
func (in *channelIn) take() []byte {
	skipped, n, what := in.read(in.next, in.most)
	if what != record {
		if what == nonsense {
			in.broken = true
		}
		return nil
	}
	if skipped > 0 {
		in.dirty()
		in.next += skipped
		in.dirtied = in.next
	}
	in.taken = recordLen(n)
	at := in.next&in.mask + headerLen
	return in.data[at : at+uint64(n) : at+uint64(n)]
}

// release frees the message that was taken. The sender learns of it late, for
// each time costs both a cache miss, but early enough: see channelMost.
func (in *channelIn) release() {
	in.next += in.taken
	in.taken = 0
	if in.next-in.told >= uint64(min(len(in.data), shortRecords)/4) {
		in.dirty()
		in.tell(in.next)
		if in.wantSpace().Load() != 0 && in.wantSpace().Swap(0) != 0 {
			in.bell.Ring()
		}
	}
}

// dirty makes the cache lines dirty of the records that were read: see [mem.Dirty]. That is done before the sender may write there,
// or when there is nothing to read: an answer to what was read has left by then.
func (in *channelIn) dirty() {
	from, n := in.dirtied&in.mask, in.next-in.dirtied
	in.dirtied = in.next
	if rest := uint64(len(in.data)) - from; n > rest { // the last one ended with the ring
		mem.Dirty(in.data[from:])
		from, n = 0, n-rest
	}
	mem.Dirty(in.data[from : from+n])
}

// lookAgain is dirty, and reports whether there is something to read behind that.
func (in *channelIn) lookAgain() bool {
	in.dirty()
	return in.header(in.next).Load() != 0
}

// Next returns the oldest message of one of the neighbours, and which it is, or
// nil when there is none. The bytes are the caller's until Release, which comes
// before the next call. They are in memory that the neighbour can write: read
// each of them once.
func (l *Channels) Next() (from *Channel, message []byte) {
	if l.sleeping {
		l.wakeUp()
	}
	if l.changed.Load() != l.seen {
		l.meetAll()
	}
	for i, w := range l.bitmap.words {
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
		if in.header(in.next).Load() == 0 && (in.dirtied == in.next || !in.lookAgain()) {
			l.left = 0
			continue
		}
		if b := in.take(); b != nil {
			l.left--
			l.reading = in
			return in.channel, b
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
func (l *Channels) Release() {
	l.reading.release()
	l.reading = nil
}

// wakeUp tells neighbours that the engine looks by itself again.
func (l *Channels) wakeUp() {
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

// heatAll makes the rings hot whose bits are set in a word of the bitmap.
func (l *Channels) heatAll(word int, set uint64) {
	for ; set != 0; set &= set - 1 {
		if slot := word<<6 + bits.TrailingZeros64(set); slot < len(l.slots) {
			if in := l.slots[slot]; in != nil {
				l.heat(in)
			}
		}
	}
}

// heat makes a ring one of those that are looked at in every step.
func (l *Channels) heat(in *channelIn) {
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
		l.bitmap.set(old.slot)
	}
}

// scan looks at one cold ring.
func (l *Channels) scan() {
	if slot := int(l.tick/scanRate) % max(len(l.slots), 1); slot < len(l.slots) {
		if in := l.slots[slot]; in != nil && !in.hot && in.waiting() {
			l.heat(in)
		}
	}
}

var (
	errNonsense = errors.New("the neighbour wrote nonsense into its channel")
	errLied     = errors.New("the neighbour has released messages that it never had")
)

// spoil ends the use of a ring that has nonsense in it. The sender notices.
func (l *Channels) spoil(in *channelIn) {
	l.cool(in)
	in.alive.close()
	in.channel.lose(errNonsense)
}

// cool takes a ring out of the hot ones for good.
func (l *Channels) cool(in *channelIn) {
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
func (l *Channels) Lost() *Channel {
	if l.leaving == 0 {
		return nil
	}
	return l.lost()
}

func (l *Channels) lost() *Channel {
	for _, n := range l.channels {
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
