package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/mpi/internal/reliable"
	"github.com/xwarp/xwarp/verbs"
)

// peer is what an endpoint knows of another rank. What each of its parts tells belongs to one
// part of the endpoint.
type peer struct {
	rank    int32
	self    bool // the own rank
	used    bool // something was sent to it or received from it
	held    bool // it was told to hold back: see unexpected.go
	path         // the sender
	limits       // the sender
	load         // messages in pieces, and rendezvous by Read
	bursts  burstDetector
	split   split // message that is coming in pieces
	loss          // failures
	traffic       // the connector
	counts        // the inviter

	// Requests that wait for room, or for a way there: each peer has a line of its
	// own, so that one that is slow, or not connected yet, holds up no other one.
	pending requestQueue
	readers requestQueue // receives that have more to read
	next    *peer        // in sender.stuck
	stuck   bool         // is in there
}

// path is how a peer is reached.
type path struct {
	channel *shm.Channel   // where to send to it; nil: through the network
	near    *shm.Channel   // where it may send from; nil: it is on another host
	lends   *shm.Channel   // by which it has memory in common with this rank: near, but in a simulation
	qp      *verbs.QP      // that leads to it; nil for the own rank, and while there is no way
	ah      *verbs.AH      // on a queue pair of datagrams
	rel     *reliable.Peer // over UD
	link    *link          // nil until there is, or shall be, a connection
	beside  bool           // there may be one beside datagrams
	lane    *lane          // eager messages over it; or nil
	listens bool           // it looks at the connection when it waits for what may come there
	untold  bool           // messages have gone there of which no datagram tells yet
}

// reachable reports whether there is a path to a peer now.
func (p *path) reachable() bool { return p.channel != nil || p.qp != nil }

// limits are the lengths up to which messages go to a peer at once.
type limits struct {
	eagerMax int32      // now; -1 while it wants none
	eagerTop int32      // smaller one of both ends' limits
	eagerFar int32      // the same through the network
	plainMax int32      // what goes without a look at whether it is alone
	eagerCap int32      // what buffers or the channel take at most
	idle     *idleTuner // decides about messages in pieces; or nil
	tune     *tuner     // sets eagerTop of the channel; nil: it is fixed
}

// setTop changes the limit.
func (l *limits) setTop(n int) {
	if l.eagerTop = int32(n); l.eagerMax >= 0 { // else it wants none now
		l.eagerMax = l.eagerTop
	}
}

// load is what is under way to a peer.
type load struct {
	buffered int32 // send buffers
	asked    int32 // sends that began with an RTS and have not ended
	reading  int32 // Reads of its memory
	answered bool  // something came from it since the last message above plainMax went to it
}

// loss is whether a peer is still there.
type loss struct {
	saidBye  mono.Time // when its bye came, or Never
	err      error     // why it is lost, or nil
	disowned bool      // it was told so
}

// counts are of messages through the network: of the program, and of collectives.
type counts struct {
	sent, got [2]tally
	invited   int32 // invitations of the peer that are held
	alone     bool  // its latest large message was not delegated: its ghost is not invited
}

// total returns how many messages there were.
func total(t *[2]tally) uint32 { return t[0].plain + t[0].asked + t[1].plain + t[1].asked }

// traffic is what of long messages was sent to a peer in datagrams.
type traffic struct{ messages, bytes int }
