package shm

import (
	"errors"
	"sync/atomic"
)

// Channel is the way to one neighbour and back.
//
// Owner: engine.
type Channel struct {
	channels *Channels
	rank     int
	name     string
	out      *channelOut // nil until the neighbour has answered
	in       *channelIn  // nil until it sends
	alive    *liveness   // on which the answer comes, and which ends when the neighbour does
	asked    asked
	err      error // why there is no way out
	loss     loss

	answer *handshake // that has come; under Channels.mu

	unheard atomic.Uint32 // calls for segments that its listener had no room for
}

// asked is how far a channel is on its way out.
type asked uint8

const (
	silent asked = iota // it was not asked for
	busy                // it was, but the neighbour has too many handshakes to read
	called              // a goroutine waits for the answer
)

// loss is what the caller knows about the end of a neighbour.
type loss uint8

const (
	here    loss = iota
	leaving      // it is gone: once everything of it is read, that is reported
	reported
)

// ErrGone says that a neighbour has died or closed its channels.
var ErrGone = errors.New("the neighbour is gone")

// channelOut is the sender's end of a ring.
type channelOut struct {
	writer
	bitmap bitmap
	slot   int
	pulls  bool // the receiver can read the memory of this process
	fences bool // the receiver has this process execute a fence before it sleeps for long
	full   bool // the last message found no room
	stays  bool // nothing can be written to the receiver's memory
}

// unmap gives back what a channel out has had.
func (o *channelOut) unmap() error {
	return errors.Join(o.bitmap.close(), o.writer.unmap())
}

// Rank returns the number of the neighbour.
func (n *Channel) Rank() int { return n.rank }

// FirstLine is how many bytes of a message lie in the cache line that publishes it. A neighbour that has nothing else
// to do looks at that line all the time: what is written there before the rest goes to the neighbour and back once more.
const FirstLine = granule - headerLen

// Put copies a message, head and data, to the neighbour. false means that there
// is no room now, or that the neighbour has not answered yet, or that there is
// no way to it (Err): offer it again later. Messages arrive in order.
func (n *Channel) Put(head, data []byte) bool {
	dst, ok := n.Reserve(len(head) + len(data))
	if !ok {
		return false
	}
	copy(dst[copy(dst, head):], data)
	n.Commit(len(head) + len(data))
	return true
}

// Reserve returns the place in the neighbour's memory for a message of n bytes,
// at most Channels.MaxMessage, to be written there and published with Commit. When
// ok is false, it is as with Put. Memory that was reserved may be forgotten.
func (n *Channel) Reserve(size int) (dst []byte, ok bool) {
	o := n.out
	if o == nil || n.err != nil {
		n.call()
		return nil, false
	}
	if dst, ok = o.reserve(size); !ok {
		o.full = true
		if o.lied {
			n.lose(errLied)
		}
	}
	return dst, ok
}

// Commit publishes the first n bytes of what Reserve has returned.
func (n *Channel) Commit(size int) {
	o := n.out
	o.full = false
	o.commit(size)
	if o.asleep.Load() != awake {
		o.signal()
	}
}

// signal tells a receiver that does not look at this ring to do so.
func (o *channelOut) signal() {
	want := o.asleep.Swap(awake)
	if want == awake {
		return
	}
	o.bitmap.set(o.slot)
	if want == wantBell {
		o.bell.Ring()
	}
}

// askForSpace asks the receiver to ring when it makes room. It returns true when
// there is some already.
func (o *channelOut) askForSpace() bool {
	o.wantSpace().Store(1)
	return o.head.Load()+uint64(len(o.data)) != o.limit
}

// Err returns why nothing can be sent to the neighbour, for ever, or nil.
// ErrGone is among the reasons; others have to do with this process, and
// the neighbour may well be reached in another way.
func (n *Channel) Err() error { return n.err }

// Open reports whether the neighbour is joined with this process in one direction
// at least, and not lost: when it is, Channels.Lost will tell.
func (n *Channel) Open() bool { return n.loss != reported && (n.in != nil || n.out != nil) }

// Pulls reports whether the neighbour can read the memory of this process. It
// is known when the first message was put.
func (n *Channel) Pulls() bool { return n.out != nil && n.out.pulls }

// lose notes that the neighbour is gone.
func (n *Channel) lose(why error) {
	if n.err == nil {
		n.err = why
	}
	if n.loss == here {
		n.loss = leaving
		n.channels.leaving++
	}
}
