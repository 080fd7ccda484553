package verbs

import (
	"errors"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// cmState is what a context knows of its connections.
type cmState struct {
	// deadline is never later than the earliest deadline of an identifier.
	// mono.Never when none has one.
	deadline mono.Time
	ids      []*CMID // that are not destroyed, in no order
	timed    []*CMID // those with a deadline, in no order
	channels []*CMChannel
	dropped  uint64
	frame    [frameRoom]byte // what has arrived, on its way to an identifier
}

// now returns the time for calls of the user, which may come long after a step.
func (c *Context) now() mono.Time { return c.cfg.Engine.Clock().Now() }

// expireCM does what is due at now, and returns how much work that was. The
// list is short, and looked through at most once per time limit: all but a few
// peers answer long before theirs.
func (c *Context) expireCM(now mono.Time) (work int) {
	m := &c.cm
	for i := len(m.timed) - 1; i >= 0; i-- { // the one that takes the place of a removed one comes from behind
		if i >= len(m.timed) { // a listener has made room
			continue
		}
		if id := m.timed[i]; id.deadline <= now {
			m.disarm(id)
			id.expire(now)
			work++
		}
	}
	m.deadline = mono.Never
	for _, id := range m.timed {
		m.deadline = min(m.deadline, id.deadline)
	}
	return work
}

// arm sets the deadline of an identifier.
func (m *cmState) arm(id *CMID, at mono.Time) {
	if id.deadline == mono.Never {
		id.timed = len(m.timed)
		m.timed = append(m.timed, id)
	}
	id.deadline = at
	m.deadline = min(m.deadline, at)
}

// disarm takes the deadline of an identifier away.
func (m *cmState) disarm(id *CMID) {
	if id.deadline == mono.Never {
		return
	}
	last := len(m.timed) - 1
	m.timed[id.timed] = m.timed[last]
	m.timed[id.timed].timed = id.timed
	m.timed[last] = nil
	m.timed = m.timed[:last]
	id.deadline = mono.Never
}

// newID makes an identifier of a channel.
func (ch *CMChannel) newID() *CMID {
	m := &ch.ctx.cm
	id := &CMID{ch: ch, at: len(m.ids), deadline: mono.Never}
	m.ids = append(m.ids, id)
	return id
}

// forgetID takes an identifier off the lists.
func (m *cmState) forgetID(id *CMID) {
	last := len(m.ids) - 1
	m.ids[id.at] = m.ids[last]
	m.ids[id.at].at = id.at
	m.ids[last] = nil
	m.ids = m.ids[:last]
}

// users returns how many identifiers of a channel the user knows of. Others are
// ended.
func (m *cmState) users(ch *CMChannel) (n int) {
	for i := len(m.ids) - 1; i >= 0; i-- {
		switch id := m.ids[i]; {
		case id.ch != ch:
		case id.state == IDRejecting && id.stranger: // its listener is gone
			id.destroy(true)
		default:
			n++
		}
	}
	return n
}

// closeCM ends all identifiers and channels. Connections that queue pairs have
// end with these, in order.
func (c *Context) closeCM() error {
	for len(c.cm.ids) > 0 {
		c.cm.ids[len(c.cm.ids)-1].destroy(false)
	}
	var err error
	for len(c.cm.channels) > 0 {
		err = errors.Join(err, c.cm.channels[0].Close())
	}
	return err
}

// DroppedStartups returns how many connections ended before they made a
// CMConnectRequest: their start-up frame made no sense, or did not come.
func (c *Context) DroppedStartups() uint64 { return c.cm.dropped }
