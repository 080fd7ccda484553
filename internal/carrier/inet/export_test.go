package inet

import "github.com/xwarp/xwarp/internal/carrier/gso"

// SetSocket has e send aggregates by s, which e owns then.
func (e *Datagram) SetSocket(s *gso.Socket) { e.joined.socket = s }

// SetLocal says whether frames to e may not have left the machine.
func (e *Datagram) SetLocal(local bool) { e.joined.local = local }

// What the tests know of aggregates.
const (
	AggregateLeast = aggregateLeast
	FirstPiece     = firstPiece
)
