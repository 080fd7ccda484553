package shm

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// A ring is a memfd with what one sender has for one receiver:
//
//	0     head: the receiver has released everything before this position
//	64    asleep: what the receiver wants to be told (awake, wantBell, wantBit)
//	128   dropped: datagrams for which the sender found no room
//	192   wantSpace: 1 when the sender of a channel waits for room
//	256   copies by both ends: channel_joint.go
//	4096  records
//
// Positions count bytes and never wrap; the offset of a position is its low
// bits. A record begins at a multiple of 64 with a word, its header, and the
// payload follows. It never wraps around the end: what is left there is
// skipped.
//
// The header is what publishes a record, so that a small datagram is one or two
// cache lines and nothing else has to travel. That needs every header to be 0
// before its time: the sender writes the 0 behind a record before it publishes
// the record, and keeps room for it.
//
// The receiver changes nothing in a record. It stores bytes of what it has read as they are, before it releases
// that, for the sake of the sender: see [mem.Dirty].
//
// Each end keeps its own position to itself. The sender uses head only
// when it is possible; the receiver checks everything (inbound.next).
const (
	headAt      = 0
	asleepAt    = 64
	droppedAt   = 128
	wantSpaceAt = 192
	dataAt      = 4096

	granule   = 64
	headerLen = 8

	present = 1 << 63 // in a header: there is a record; its low 32 bits are the length in bytes
	skip    = 1 << 62 // the rest up to the end of the ring is empty
)

// What the receiver wants to be told about a ring, in its word asleep. A sender
// clears the word and does what it asked for.
const (
	awake    = 0 // nothing: it looks by itself
	wantBell = 1 // the bit on the bitmap and the bell: it sleeps
	wantBit  = 2 // the bit on the bitmap
)

// A ring has room for a row of long records, so that the sender of one does not wait for the receiver; short
// ones go by the dozen and more into the first part of it, which stays in the caches nearest to both cores.
const (
	shortRecords = 64 << 10 // bytes
	recordsAhead = 64       // of one length are as many as are of use
)

// recordLen returns how many bytes a record with a payload of n bytes takes.
func recordLen(n int) uint64 { return uint64(n+headerLen+granule-1) &^ (granule - 1) }

// ring is the memory of a ring, mapped.
type ring struct {
	control               []byte
	data                  []byte
	mask                  uint64
	head, asleep, dropped *atomic.Uint64
}

func newRing(control, data []byte) ring {
	return ring{
		control: control, data: data, mask: uint64(len(data) - 1),
		head: word(control, headAt), asleep: word(control, asleepAt), dropped: word(control, droppedAt),
	}
}

// atFirst returns what short records use of the data.
func (r *ring) atFirst() []byte { return r.data[:min(len(r.data), shortRecords)] }

func (r *ring) wantSpace() *atomic.Uint64 { return word(r.control, wantSpaceAt) }

func (r *ring) header(pos uint64) *atomic.Uint64 { return word(r.data, pos&r.mask) }

// What there is in a ring at a position.
type found uint8

const (
	nothing found = iota
	record
	nonsense // what no sender of ours writes
)

// read decodes what is at pos: a record with a payload of n bytes, behind
// bytes that were skipped.
func (r *ring) read(pos uint64, most int) (skipped uint64, n int, what found) {
	h := r.header(pos).Load()
	if h == 0 {
		return 0, 0, nothing
	}
	if h == present|skip {
		skipped = uint64(len(r.data)) - pos&r.mask
		if skipped == uint64(len(r.data)) {
			return 0, 0, nonsense
		}
		pos += skipped
		h = r.header(pos).Load()
	}
	size := uint64(uint32(h))
	if h != present|size || size > uint64(most) || pos&r.mask+recordLen(int(size)) > uint64(len(r.data)) {
		return 0, 0, nonsense
	}
	return skipped, int(size), record
}

// writer is the sender's end of a ring.
type writer struct {
	ring
	next   uint64     // position of the next record
	start  uint64     // where the record begins that is being written
	limit  uint64     // position that may not be passed
	clean  uint64     // there and at next the header is 0
	lied   bool       // the receiver has released what was never there
	short  uint64     // bytes of the ring that short records use; 0: all
	late   bool       // what is loaded behind commit may be older than the record: the receiver sees to that (fence.go)
	bell   event.Bell // the receiver's
	mapped []byte     // the memory that the ring lies in
}

// newWriter maps the ring that an answer brings, and owns the receiver's eventfd if
// there is no error.
func newWriter(a *answer, ring, bell int) (writer, error) {
	all, err := mapMemfd(ring, int(a.Memory))
	if err != nil {
		return writer{}, err
	}
	b := all[a.At:][:dataAt+a.Ring]
	return writer{ring: newRing(b[:dataAt:dataAt], b[dataAt:]), mapped: all, limit: uint64(a.Ring), bell: event.Bell(bell)}, nil
}

// unmap gives back what the sender's end has had.
func (w *writer) unmap() error {
	return errors.Join(w.bell.Close(), os.NewSyscallError("munmap", mem.Unmap(w.mapped)))
}

// reserve returns the place for a payload of n bytes, which commit publishes.
// false means that there is no room.
func (w *writer) reserve(n int) (dst []byte, ok bool) {
	need, start := recordLen(n), w.next
	off := start & w.mask
	if rest := uint64(len(w.data)) - off; rest < need || w.short > 0 && off >= max(w.short, recordsAhead*need) {
		start += rest
	}
	end := start + need
	if end+granule > w.limit && !w.room(end+granule) {
		return nil, false
	}
	w.start = start
	at := start&w.mask + headerLen
	return w.data[at : at+uint64(n)], true
}

// commit publishes the payload, of which n bytes were written.
func (w *writer) commit(n int) {
	need := recordLen(n)
	end := w.start + need
	if end != w.clean {
		w.wipe(end)
	}
	if w.late {
		mem.StoreRelease(w.header(w.start), present|uint64(n))
	} else {
		w.header(w.start).Store(present | uint64(n))
	}
	if w.start != w.next {
		w.header(w.next).Store(present | skip)
	}
	w.next = end
	if end+need+granule <= w.limit {
		w.wipe(end + need) // behind the next one, if that is as long: the receiver has the line, which takes time
	}
}

// wipe makes the header at pos 0.
func (w *writer) wipe(pos uint64) {
	binary.NativeEndian.PutUint64(w.data[pos&w.mask:], 0)
	w.clean = pos
}

// room reads the head anew, which costs a cache miss, and reports whether
// there is room up to the position end.
func (w *writer) room(end uint64) bool {
	head := w.head.Load()
	if w.next-head > uint64(len(w.data)) {
		w.lied = true // no receiver of ours writes that
		return false
	}
	w.limit = head + uint64(len(w.data))
	return end <= w.limit
}

// outbound is the sender's end of a ring for datagrams.
type outbound struct {
	writer
	max   int // largest payload in bytes that the receiver takes
	alive *liveness
	dirty bool // something was put since the doorbell was looked at
}

// put copies a datagram of n bytes into the ring. false means that there is no
// room.
func (o *outbound) put(arena []byte, bufs []fabric.Desc, n int) bool {
	dst, ok := o.reserve(n)
	if !ok {
		if o.lied {
			o.alive.gone.Store(true)
		}
		return false
	}
	for i := range bufs {
		d := &bufs[i]
		dst = dst[copy(dst, arena[d.Addr:d.Addr+mem.Addr(d.Len)]):]
	}
	o.commit(n)
	return true
}

// wake rings the receiver's doorbell if it sleeps.
func (o *outbound) wake() {
	o.dirty = false
	if o.asleep.Load() != awake && o.asleep.Swap(awake) != awake {
		o.bell.Ring()
	}
}

// reader is the receiver's end of a ring.
type reader struct {
	ring
	next   uint64 // position of the next record
	told   uint64 // what head says
	most   int    // longest payload in bytes
	slot   int    // number among the rings of the receiver
	broken bool   // the sender wrote nonsense: nothing is read any more
	alive  *liveness
}

// waiting reports whether there is something to read, if only nonsense.
func (r *reader) waiting() bool { return !r.broken && r.header(r.next).Load() != 0 }

// tell lets the sender have what lies before a position.
func (r *reader) tell(pos uint64) {
	r.told = pos
	r.head.Store(pos)
}

// inbound is the receiver's end of a ring for datagrams.
type inbound struct {
	reader
	base  mem.Addr // of data in the arena
	freed uint64   // everything before it was released
	from  fabric.Remote

	// lent says, by the granule that a record begins at, how many granules
	// are lent to the caller, with the bit back set once they were released.
	// Batches may be released in any order.
	lent []uint32
}

const back = 1 << 31

// take reads the next record: where its payload is and how long. Every value
// in it may be nonsense. What the caller then reads may still change under its
// eyes, as anything may that processes share, but never lies elsewhere.
func (in *inbound) take() (at mem.Addr, n uint32, ok bool) {
	if in.broken {
		return 0, 0, false
	}
	skipped, size, what := in.read(in.next, in.most)
	switch what {
	case nothing:
		return 0, 0, false
	case nonsense:
		return 0, 0, in.spoil()
	}
	if skipped > 0 {
		if !in.lend(skipped) {
			return 0, 0, in.spoil()
		}
		in.giveBack(in.next - skipped)
	}
	off := in.next & in.mask
	if !in.lend(recordLen(size)) {
		return 0, 0, in.spoil()
	}
	return in.base + mem.Addr(off+headerLen), uint32(size), true
}

// lend notes that the next n bytes are with the caller. It returns false when
// some of them are already.
func (in *inbound) lend(n uint64) bool {
	if in.next+n-in.freed > uint64(len(in.data)) {
		return false
	}
	in.lent[in.next&in.mask/granule] = uint32(n / granule)
	in.next += n
	return true
}

// spoil ends the use of a ring that has nonsense in it. It returns false.
func (in *inbound) spoil() bool {
	in.broken = true
	in.alive.close()
	return false
}

// release is giveBack of a record that was read, see [mem.Dirty].
func (in *inbound) release(pos uint64) {
	at := pos & in.mask
	mem.Dirty(in.data[at : at+uint64(in.lent[at/granule]&^back)*granule])
	in.giveBack(pos)
}

// giveBack notes that the record at a position or offset was released, and
// moves on over all that were.
func (in *inbound) giveBack(pos uint64) {
	l := &in.lent[pos&in.mask/granule]
	if *l == 0 || *l&back != 0 {
		panic("shm: Release of a buffer that Recv did not return, or twice")
	}
	*l |= back
	for in.freed != in.next {
		l = &in.lent[in.freed&in.mask/granule]
		if *l&back == 0 {
			return
		}
		in.freed += uint64(*l&^back) * granule
		*l = 0
	}
}

// publish tells the sender what was released.
func (in *inbound) publish() {
	if in.told != in.freed {
		in.tell(in.freed)
	}
}
