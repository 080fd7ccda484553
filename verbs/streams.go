package verbs

import (
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// streamUser is what a stream belongs to: a CMID while it listens or starts up,
// then a queue pair.
type streamUser interface {
	// ready is called when the stream has something new, and returns how much
	// work that was.
	ready(now mono.Time) (work int)
}

// streams is what a context knows of its streams.
type streams struct {
	users []streamUser // by fabric.StreamID; nil: nobody
	list  []fabric.StreamID
}

// use makes u the user of a stream; nil: nobody.
func (c *Context) use(id fabric.StreamID, u streamUser) {
	for len(c.streams.users) <= int(id) {
		c.streams.users = append(c.streams.users, nil)
	}
	c.streams.users[id] = u
}

// attach connects a queue pair to a stream whose start-up is over, and takes
// the stream over. rest is what has arrived behind the peer's start-up frame;
// it is not kept. The queue pair calls id.established, once, when data may
// flow: at once, or after the first message of peer-to-peer mode; and id.ended,
// once, when the connection is over.
func (q *QP) attach(id *CMID, s fabric.Stream, a *mpa.Agreed, initiator bool, rest []byte) {
	panic("stub")
}

// detach ends the connection of a queue pair: in order behind what was sent, or
// abruptly. id.ended is called when it is over.
func (q *QP) detach(abort bool) { panic("stub") }
