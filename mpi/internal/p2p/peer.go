package p2p

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/mpi/internal/reliable"
	"github.com/xwarp/xwarp/verbs"
)

// peer is what an endpoint knows of another rank.
type peer struct {
	qp       *verbs.QP      // that leads to it; nil for the own rank, and while there is no way
	ah       *verbs.AH      // on a queue pair of datagrams
	rel      *reliable.Peer // over UD
	self     bool           // the own rank
	channel  *shm.Channel   // where to send to it; nil: through the network
	near     *shm.Channel   // where it may send from; nil: it is on another host
	eagerMax int32          // longest message to it that goes at once; -1 while it wants none
	eagerTop int32          // smaller one of both ends' limits
	eagerFar int32          // the same through the network
	eagerCap int32          // what buffers or the channel take at most
	idle     *idleTuner     // decides about messages in pieces; or nil
	tune     *tuner         // sets eagerMax of the channel; nil: it is fixed
	buffered int32          // send buffers under way to it
	asked    int32          // sends to it that began with an RTS and have not ended
	reading  int32          // Reads of its memory under way
	held     bool           // it was told to hold back: see unexpected.go
	watched  bool           // Hybrid counts what is sent to it
	used     bool           // something was sent to it or received from it
	bursts   burstDetector  // whether nonblocking sends to it come in bursts
	answered bool           // something came from it since the last message in pieces went to it
	saidBye  mono.Time      // when its bye came, or Never
	err      error          // why it is lost, or nil
	disowned bool           // it was told so

	// Requests that wait for room, or for a way there: each peer has a line of its
	// own, so that one that is slow, or not connected yet, holds up nobody else.
	pending requestQueue
	readers requestQueue // receives that have more to read
	split   split        // message that is coming in pieces
	next    *peer        // in Endpoint.stuck
	stuck   bool         // is in there

	link            *link // nil until there is, or shall be, a connection
	messages, bytes int   // sent in datagrams while it is watched
}
