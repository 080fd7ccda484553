package rma

import (
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Short Puts and Accumulates wait for one another: those of one kind on one target share a
// message, and the word that closes them (flush, unlock, complete) goes with them. A frame
// costs both ends more than all that is in it, and a Put with its Flush is one frame each
// way. Nothing waits for long that a rank waits for: what is gathered is sent before
// anything else goes to the target, and before this rank waits for it.

// Limits of what is gathered.
const (
	gatherMost = 512     // the longest operation in bytes
	gatherRoom = 4 << 10 // bytes of one message
)

// gather is the message that is being gathered.
type gather struct {
	target int32
	say    int32
	f      front
	data   []byte
	spare  []byte // the next data, while data is not being sent

	sending bool // a goroutine waits for room for what was gathered before
}

// add lets the next n bytes before src go with what is gathered. false: they cannot.
func (w *flow) add(say int32, o *Op, f *front, src *dtype.Cursor, n int) (added bool, err error) {
	g := &w.gather
	room := min(gatherRoom, int(w.target(o.Target).chunk)-frontLen)
	if w.own(o.Target) || n > gatherMost || n+f.n*blockLen > room {
		return false, w.sendGathered(0, 0)
	}
	for g.f.n > 0 && !g.fits(say, o, f, n, room) { // while it is sent other goroutines gather theirs
		if err := w.sendGathered(0, 0); err != nil {
			return false, err
		}
	}
	if g.f.n == 0 {
		g.begin(o.Target, say, f.kind, f.op)
	}
	g.f.n += copy(g.f.blocks[g.f.n:], f.blocks[:f.n])
	at := len(g.data)
	g.data = g.data[:at+n]
	src.Pack(g.data[at:])
	return true, nil
}

// begin makes the message one of a kind, to a target.
func (g *gather) begin(target, say int32, kind dtype.Kind, op uint8) {
	g.target, g.say, g.f.kind, g.f.op = target, say, kind, op
	if g.data == nil {
		g.data = make([]byte, 0, gatherRoom)
	}
}

// addBytes is add of a Put of bytes in one piece, if it fits without anything being sent: the
// short way of nearly all of them.
func (g *gather) addBytes(rank int32, t *target, off uint64, src []byte) bool {
	room := min(gatherRoom, int(t.chunk)-frontLen)
	if len(src) == 0 || len(src) > gatherMost || len(g.data)+len(src)+(g.f.n+1)*blockLen > room || g.f.n == maxBlocks {
		return false
	}
	if g.f.n == 0 {
		g.begin(rank, sayPut, 0, 0)
	} else if g.target != rank || g.say != sayPut {
		return false
	}
	g.f.blocks[g.f.n] = block{off, uint32(len(src))}
	g.f.n++
	g.data = append(g.data, src...)
	return true
}

// fits reports whether n bytes of an operation can go with what is gathered, in a message with
// so much room.
func (g *gather) fits(say int32, o *Op, f *front, n, room int) bool {
	return g.target == o.Target && g.say == say && g.f.kind == f.kind && g.f.op == f.op &&
		g.f.n+f.n <= maxBlocks && len(g.data)+n+(g.f.n+f.n)*blockLen <= room
}

// sendGathered sends what is gathered, with a word behind it that has an id, and what another
// goroutine sends goes before. An error is that of the target, which is told of it at its
// next synchronization, or here if there is a word.
func (w *flow) sendGathered(behind int32, id uint32) error {
	w.awaitGather()
	g := &w.gather
	if g.f.n == 0 {
		return nil
	}
	var head [frontLen + maxBlocks*blockLen]byte
	data := g.data
	t := w.target(g.target)
	a := p2p.Active{Context: w.layers.of(t.client, w.context), What: g.say | behind<<behindShift, ID: id, Head: head[:g.f.put(head[:])], Data: data}
	a.What |= t.client << clientShift
	g.f.n, g.data, g.spare = 0, g.spare, nil // others may come in meanwhile, and gather theirs
	g.sending = true
	var err error
	for err == nil && !w.in.TryActive(t.world, &a) {
		if err = w.in.Trouble(w.context, t.world); err == nil {
			w.in.Progress()
		}
	}
	g.sending = false
	if g.data == nil {
		g.data = data[:0]
	} else {
		g.spare = data[:0]
	}
	if err != nil && behind == 0 {
		t.note(err)
		return nil
	}
	return err
}

// awaitGather waits while another goroutine sends what was gathered: nothing may pass that.
func (w *flow) awaitGather() {
	for w.gather.sending {
		w.in.Progress()
	}
}
