package p2p

import (
	"github.com/xwarp/xwarp/internal/shm"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// To publish a message in a lane takes longer than to copy a short one: the sender
// waits until all that it wrote before is in its cache, and the line that it writes
// into next is in the receiver's. So nonblocking sends of short messages to one
// neighbour ride together as they do through the network (train.go), four of 8 bytes
// to a cache line. The first one goes by itself and at once. The others leave when
// the train is full, when anything else is sent through a lane, and with the next
// call that makes progress or ends a request; every request of theirs has to be ended.
type nearTrain struct {
	last *peer          // that the last short nonblocking send went to; nil when something else came after
	way  *shm.Lane      // nil: no train is open
	b    []byte         // the lane's memory
	n    int            // bytes
	in   [nearRoom]byte // one that has come
}

const (
	nearRoom  = 5*64 - 8 // bytes of a train: five cache lines with the lane's header
	nearRider = 64       // longest message in bytes that rides: 14 % more of them a second; 128 bytes would lose 15 %
)

// isendNear sends a message of a nonblocking send. false means no room.
func (ep *Endpoint) isendNear(env match.Envelope, p *peer, buf []byte) bool {
	t := &ep.nearTrain
	if len(buf) > nearRider {
		return ep.putEager(env, p, buf)
	}
	if t.last != p {
		if !ep.putEager(env, p, buf) {
			return false
		}
		t.last = p
		return true
	}
	n := t.n + coachLen + len(buf)
	if t.way == nil || n > len(t.b) {
		if !ep.coupleNear(p) {
			return ep.putEager(env, p, buf)
		}
		n = headerLen + coachLen + len(buf)
	}
	b := t.b[t.n:n]
	putCoach(b, env, len(buf))
	copy(b[coachLen:], buf)
	t.n = n
	ep.counted(env.Context, true)
	return true
}

// coupleNear opens a train, behind the one that was open. false means no room.
func (ep *Endpoint) coupleNear(p *peer) (ok bool) {
	t := &ep.nearTrain
	if t.way != nil {
		t.way.Commit(t.n)
		t.way = nil
	}
	if t.b, ok = p.lane.Reserve(nearRoom); !ok {
		return false
	}
	t.way, t.n = p.lane, headerLen
	h := header{kind: kindTrain, source: ep.rank}
	h.put(t.b)
	return true
}

// departNear lets the train leave that is open, if there is one: small enough for the
// compiler to put it where it is called, for most calls find none.
func (ep *Endpoint) departNear() {
	if ep.nearTrain.last != nil {
		ep.leaveNear()
	}
}

func (ep *Endpoint) leaveNear() {
	t := &ep.nearTrain
	if t.last = nil; t.way != nil {
		t.way.Commit(t.n)
		t.way, t.b = nil, nil
	}
}
