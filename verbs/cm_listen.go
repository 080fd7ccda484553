package verbs

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

const (
	backlogDefault = 128
	// strangers is how many connections that have not said what they want one
	// listener has at a time. Each costs a stream, and is cut after
	// mpa.RequestTimeout, or when it has to make room: see oldest.
	strangers = 64
	// strangersOfOne is how many of them one address may have when room is
	// short.
	strangersOfOne = 16
	// silence is how long a connection may take to say what it wants before it
	// has to make room for others: many times what a host takes that opens
	// hundreds at once.
	silence = 250 * mono.Millisecond
	// waitingRoom is how many connections a carrier is to keep at least for
	// one listener. Those that it has to turn away try again after a second,
	// and two, and four.
	waitingRoom = 1024
)

// listening is what a listener has.
type listening struct {
	carrier   fabric.Listener
	backlog   int
	accepting []*CMID // connections whose Request is awaited, oldest first
	asked     int     // connections that the user has not decided on
	full      bool    // some may wait in the carrier
}

// enter notes that a connection enters a state, leave that it leaves one.
func (l *listening) enter(id *CMID, s IDState) {
	switch s {
	case IDAccepting:
		l.accepting = append(l.accepting, id)
	case IDAsked:
		l.asked++
	}
}

func (l *listening) leave(id *CMID, s IDState) {
	switch s {
	case IDAccepting:
		i := slices.Index(l.accepting, id)
		l.accepting = slices.Delete(l.accepting, i, i+1)
	case IDAsked:
		l.asked--
	}
}

func (l *listening) mayAccept() bool { return len(l.accepting) < strangers && l.asked < l.backlog }

// oldest returns the connection that is to make room for others: the oldest of an
// address that has more than its share, or else the oldest of all.
func (l *listening) oldest() *CMID {
	for i, id := range l.accepting {
		n := 1
		for _, other := range l.accepting[i+1:] {
			if other.peer.Addr() == id.peer.Addr() {
				n++
			}
		}
		if n > strangersOfOne {
			return id
		}
	}
	return l.accepting[0]
}

// evict ends it.
func (l *listening) evict() {
	id := l.oldest()
	id.ch.ctx.cm.dropped++
	id.closeStream(true) // in order it would keep its room in the carrier until its peer goes
	id.destroy(true)
}

// accept takes connections from the carrier, as many as may start up. When those
// that have said nothing yet take up the room, the oldest of them go.
func (id *CMID) accept(now mono.Time) (work int) {
	l := id.listens
	for ; l.asked < l.backlog; work++ {
		short := len(l.accepting) == strangers
		if short {
			if at := l.oldest().deadline.Add(silence - mpa.RequestTimeout); at > now {
				id.ch.ctx.cm.arm(id, at)
				break
			}
		}
		if work == strangers { // others have their turn
			id.ch.ctx.cm.arm(id, 0)
			break
		}
		s := l.carrier.Accept()
		if s == nil {
			l.full = false
			return work
		}
		if short {
			l.evict()
		}
		n := id.ch.newID()
		n.listener, n.local, n.peer = id, s.Local(), s.Remote()
		n.start, n.stranger = &startup{}, true
		n.own(s)
		n.ch.ctx.cm.arm(n, now.Add(mpa.RequestTimeout))
		n.setState(IDAccepting)
		n.ready(now) // what has come already will not be named
	}
	l.full = true // the carrier names each once
	return work
}

// resume sees to it that connections are taken again, in the next step, when
// there was no room for some.
func (id *CMID) resume() {
	if l := id.listens; l.full && l.mayAccept() {
		l.full = false
		id.ch.ctx.cm.arm(id, 0)
	}
}

// end ends a listener, and the connections that the user has not heard of.
func (l *listening) end(id *CMID) {
	c := id.ch.ctx
	id.listens = nil
	c.streams.use(l.carrier.ID(), nil)
	l.carrier.Close()
	unheard := map[*CMID]bool{}
	id.ch.withdraw(func(e CMEvent) bool {
		unheard[e.ID] = e.Listener == id
		return false
	})
	for i := len(c.cm.ids) - 1; i >= 0; i-- { // the one that takes the place of a removed one comes from behind
		x := c.cm.ids[i]
		if x.listener != id {
			continue
		}
		x.listener = nil
		if x.stranger || unheard[x] {
			x.destroy(true)
		}
	}
}
