package verbs

import (
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

const (
	backlogDefault = 128
	// strangers is how many connections that have not said what they want one
	// listener has at a time. Each costs a stream, and is cut after
	// mpa.RequestTimeout.
	strangers = 64
	// waitingRoom is how many connections a carrier is to keep at least for
	// one listener. Those that it has to turn away try again after a second,
	// and two, and four.
	waitingRoom = 1024
)

// listening is what a listener has.
type listening struct {
	carrier   fabric.Listener
	backlog   int
	accepting int  // connections whose Request is awaited
	asked     int  // connections that the user has not decided on
	full      bool // some may wait in the carrier
}

// count notes that a connection enters or leaves a state.
func (l *listening) count(s IDState, by int) {
	switch s {
	case IDAccepting:
		l.accepting += by
	case IDAsked:
		l.asked += by
	}
}

func (l *listening) mayAccept() bool { return l.accepting < strangers && l.asked < l.backlog }

// accept takes connections from the carrier, as many as may start up.
func (id *CMID) accept(now mono.Time) (work int) {
	l := id.listens
	for ; l.mayAccept(); work++ {
		s := l.carrier.Accept()
		if s == nil {
			l.full = false
			return work
		}
		n := id.ch.newID()
		n.listener, n.local, n.peer = id, s.Local(), s.Remote()
		n.start, n.stranger = &startup{}, true
		n.own(s)
		n.arm(now.Add(mpa.RequestTimeout))
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
		id.arm(0)
	}
}

// end ends a listener, and the connections that the user has not heard of.
func (l *listening) end(id *CMID) {
	c := id.ch.ctx
	id.listens = nil
	c.use(l.carrier.ID(), nil)
	l.carrier.Close()
	unheard := map[*CMID]bool{}
	id.ch.withdraw(func(e *CMEvent) bool {
		unheard[e.ID] = e.Listener == id
		return false
	})
	for i := len(c.cm.ids) - 1; i >= 0; i-- { // whoever takes the place of one that goes comes from behind
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
