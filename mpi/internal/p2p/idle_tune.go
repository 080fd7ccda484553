package p2p

import "github.com/xwarp/xwarp/internal/base/mono"

// Up to which length a message goes in pieces to an idle peer, and from which on it is
// asked for, depends on what a turn takes, what copying takes, and on how data go in
// frames and in bulk: at MTU 1500 a bulk of 64 KiB takes a kernel half as long as frames
// do, at MTU 9000 as long. No model of a few lines has all that. So both ways are timed,
// from the call until the peer has acknowledged all, with messages of the program and
// nothing else: one of them now and then. Messages of about the same length
// are compared, by the shortest time of each way: what the peer, or another process,
// has added says nothing about the way. A peer that is late with its receives makes
// asking take long, and for that pieces are the remedy, too.
//
// Connections tell only what their stream has taken, so there the limit is fixed.
type idleTuner struct {
	classes [len(idleTops)]choice
	began   mono.Time // of the message that is timed; 0: none is
	id      uint32    // its request
	size    int32
	chosen  option
}

// idleTops are the longest messages that are compared with one another, in bytes. What
// is longer than the last is always asked for.
var idleTops = [...]int32{24 << 10, 32 << 10, 48 << 10, 64 << 10, 96 << 10, idleMost}

const idleMost = 128 << 10

// How a message goes to an idle peer.
const (
	inPieces = firstOption
	askedFor = secondOption
)

// newIdleTuner makes one that begins with the default of Config.EagerIdle.
func newIdleTuner() *idleTuner {
	t := &idleTuner{}
	for i, top := range idleTops {
		if top > eagerIdle {
			t.classes[i].usual = askedFor
		}
	}
	return t
}

// class returns that of messages of n bytes.
func (t *idleTuner) class(n int32) *choice {
	i := 0
	for n > idleTops[i] {
		i++
	}
	return &t.classes[i]
}

// limit returns the longest message that goes in pieces as a rule.
func (t *idleTuner) limit(least int) int {
	for i := len(idleTops) - 1; i >= 0; i-- {
		if t.classes[i].usual == inPieces {
			return int(idleTops[i])
		}
	}
	return least
}

// prefers decides about the send r of n bytes to a peer that is idle.
func (pc *pieces) prefers(p *peer, r *Request, n int) bool {
	ep := pc.ep
	if !ep.cfg.tunesIdle || p.ah == nil {
		return n <= ep.cfg.EagerIdle
	}
	if p.idle == nil {
		p.idle = newIdleTuner()
	}
	t := p.idle
	c := t.class(int32(n))
	if p.buffered > 0 || r.data.typed {
		return c.usual == inPieces
	}
	o, timed := c.choose()
	if t.began = 0; timed {
		t.began, t.id, t.size, t.chosen = ep.eng.Clock().Now(), r.wireID(), int32(n), o
	}
	return o == inPieces
}

// arrived takes the time of the message that is timed, if it is the one with this id that
// has gone that way: the peer has all of it.
func (pc *pieces) arrived(t *idleTuner, o option, id uint32) {
	if t.began == 0 || t.chosen != o || t.id != id {
		return
	}
	took := pc.ep.eng.Clock().Now().Sub(t.began)
	t.class(t.size).took(t.chosen, float64(took)/float64(t.size))
	t.began = 0
}
