package ring

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"
)

// SPSC memory: four cache lines of header, then records. Positions count
// bytes and never wrap; the offset of a position is its low bits.
//
//	0    size of the data in bytes, a power of two; 0 before Format
//	64   tail: where the producer writes next
//	128  head: where the consumer reads next
//	192  1 while the consumer sleeps or is about to
//	256  data
//
// A record is a word, its length in the low half, then its bytes, padded to a
// multiple of 8. It never wraps around the end: what is left there is skipped,
// as a record whose length is the mark skip.
const (
	sizeAt  = 0
	tailAt  = 64
	headAt  = 128
	sleepAt = 192
	dataAt  = 256

	recordHeader = 8
	skip         = 1<<32 - 1
	sizeMin      = 64
)

// SPSC is one end of a ring of records in memory that two processes map:
// [Producer] or [Consumer].
type SPSC struct {
	data              []byte
	mask              uint64
	tail, head, sleep *atomic.Uint64
}

// Format makes mem, which must start at a multiple of 64, an empty ring. As
// much of it is used as makes the size of the data a power of two. It must be
// done before either end is opened.
func Format(mem []byte) error {
	if !aligned(mem, 64) {
		return fmt.Errorf("ring: memory does not start at a multiple of 64")
	}
	if len(mem) < dataAt+sizeMin {
		return fmt.Errorf("ring: %d bytes are too few: want at least %d", len(mem), dataAt+sizeMin)
	}
	clear(mem[:dataAt])
	size := uint64(1) << (bits.Len(uint(len(mem)-dataAt)) - 1)
	word(mem, sizeAt).Store(min(size, 1<<31))
	return nil
}

func open(mem []byte) (SPSC, error) {
	if len(mem) < dataAt || !aligned(mem, 64) {
		return SPSC{}, fmt.Errorf("ring: %d bytes of memory are no ring", len(mem))
	}
	size := word(mem, sizeAt).Load()
	if size < sizeMin || size&(size-1) != 0 || size > uint64(len(mem)-dataAt) {
		return SPSC{}, fmt.Errorf("ring: memory of %d bytes holds no ring, or not all of it (size %d): Format comes first", len(mem), size)
	}
	return SPSC{
		data: mem[dataAt : dataAt+size], mask: size - 1,
		tail: word(mem, tailAt), head: word(mem, headAt), sleep: word(mem, sleepAt),
	}, nil
}

// MaxRecord returns the size in bytes of the largest record. An empty ring has
// room for it wherever its ends are.
func (r *SPSC) MaxRecord() int { return len(r.data)/2 - recordHeader }

// Producer writes records.
type Producer struct {
	SPSC
	next  uint64 // position behind what was committed; tail follows in Flush
	limit uint64 // position that may not be passed; the head when it was last read, plus the size
	at    uint64 // position of the reserved record
	room  int    // its size; -1 when there is none
}

// NewProducer opens the producer's end of a ring.
func NewProducer(mem []byte) (*Producer, error) {
	r, err := open(mem)
	if err != nil {
		return nil, err
	}
	return &Producer{SPSC: r, next: r.tail.Load(), limit: r.head.Load() + uint64(len(r.data)), room: -1}, nil
}

// Reserve returns n bytes to write a record into, or nil when there is no room
// now. The caller may write into them until Commit; another Reserve drops
// them. It panics when n exceeds MaxRecord.
func (p *Producer) Reserve(n int) []byte {
	if n < 0 || n > p.MaxRecord() {
		panic(fmt.Sprintf("ring: record of %d bytes, the largest has %d", n, p.MaxRecord()))
	}
	p.room = -1
	need := recordLen(n)
	at := p.next
	if rest := uint64(len(p.data)) - at&p.mask; rest < need {
		at += rest
	}
	if at+need > p.limit {
		// Reading the head costs a cache miss: only when it seems necessary.
		p.limit = p.head.Load() + uint64(len(p.data))
		if at+need > p.limit {
			return nil
		}
	}
	if at != p.next {
		binary.NativeEndian.PutUint64(p.data[p.next&p.mask:], skip)
	}
	p.at, p.room = at, n
	start := at&p.mask + recordHeader
	return p.data[start : start+uint64(n) : start+uint64(n)]
}

// Commit makes the first n reserved bytes a record. The consumer sees it after
// the next Flush.
func (p *Producer) Commit(n int) {
	if n < 0 || n > p.room {
		panic(fmt.Sprintf("ring: Commit of %d bytes, %d are reserved", n, p.room))
	}
	binary.NativeEndian.PutUint64(p.data[p.at&p.mask:], uint64(n))
	p.next = p.at + recordLen(n)
	p.room = -1
}

// Flush shows the consumer everything committed. It returns true when the
// consumer sleeps, once: then the caller rings its doorbell.
func (p *Producer) Flush() (wake bool) {
	if p.tail.Load() != p.next {
		p.tail.Store(p.next)
	}
	return p.sleep.Load() != 0 && p.sleep.Swap(0) != 0
}

// Consumer reads records.
type Consumer struct {
	SPSC
	next uint64 // position of the next record; head follows in Release
	end  uint64 // the tail when it was last read
}

// NewConsumer opens the consumer's end of a ring.
func NewConsumer(mem []byte) (*Consumer, error) {
	r, err := open(mem)
	if err != nil {
		return nil, err
	}
	head := r.head.Load()
	return &Consumer{SPSC: r, next: head, end: head}, nil
}

// Next returns the next record, and false when there is none. The bytes are
// the caller's to read until Release.
func (c *Consumer) Next() ([]byte, bool) {
	for {
		if c.next == c.end {
			if c.end = c.tail.Load(); c.next == c.end {
				return nil, false
			}
		}
		at := c.next & c.mask
		n := binary.NativeEndian.Uint64(c.data[at:])
		if n == skip {
			c.next += uint64(len(c.data)) - at
			continue
		}
		if n > uint64(c.MaxRecord()) || recordLen(int(n)) > c.end-c.next || at+recordHeader+n > uint64(len(c.data)) {
			panic(fmt.Sprintf("ring: record of %d bytes at %d of %d: somebody wrote over the ring", n, at, len(c.data)))
		}
		c.next += recordLen(int(n))
		at += recordHeader
		return c.data[at : at+n : at+n], true
	}
}

// Release gives the memory of all records read so far back to the producer.
func (c *Consumer) Release() {
	if c.head.Load() != c.next {
		c.head.Store(c.next)
	}
}

// Sleep says that the consumer is going to wait for its doorbell. It returns
// false, and does not sleep, when there is a record after all.
func (c *Consumer) Sleep() bool {
	c.sleep.Store(1)
	if c.tail.Load() == c.next {
		return true
	}
	c.sleep.Store(0)
	return false
}

// Awake takes Sleep back, after whatever woke the consumer.
func (c *Consumer) Awake() { c.sleep.Store(0) }

// recordLen returns how many bytes a record of n bytes takes.
func recordLen(n int) uint64 { return uint64(n+recordHeader+7) &^ 7 }
