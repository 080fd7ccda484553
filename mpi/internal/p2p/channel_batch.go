package p2p

import (
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// To publish a message in a channel takes longer than to copy a short one: the sender
// waits until all that it wrote before is in its cache, and the line that it writes
// into next is in the receiver's. So nonblocking sends of short messages to one
// neighbour share a record as they share a Send through the network (batch.go), four of
// 8 bytes to a cache line. The first one is sent alone and at once. The others are
// committed when the batch is full, when anything else is sent through a channel, and with
// the next call that makes progress or ends a request; every request of theirs has to be
// ended.
type channelBatch struct {
	last *peer                  // that the last short nonblocking send went to; nil when something else came after
	way  *shm.Channel           // nil: no batch is open
	b    []byte                 // the channel's memory
	n    int                    // bytes
	in   [channelBatchRoom]byte // one that has come
}

const (
	channelBatchRoom  = 5*64 - 8 // bytes of a batch: five cache lines with the channel's header
	channelBatchedMax = 64       // longest message in bytes that goes into one: 14 % more of them a second; 128 bytes would lose 15 %
)

// isendNear sends a message of a nonblocking send. false means no room.
func (nb *neighbours) isend(env match.Envelope, p *peer, buf []byte) bool {
	t := &nb.batch
	if len(buf) > channelBatchedMax {
		return nb.putEager(env, p, buf)
	}
	if t.last != p {
		if !nb.putEager(env, p, buf) {
			return false
		}
		t.last = p
		return true
	}
	n := t.n + subHeaderLen + len(buf)
	if t.way == nil || n > len(t.b) {
		if !nb.openBatch(p) {
			return nb.putEager(env, p, buf)
		}
		n = headerLen + subHeaderLen + len(buf)
	}
	b := t.b[t.n:n]
	putSubHeader(b, env, len(buf))
	copy(b[subHeaderLen:], buf)
	t.n = n
	nb.ep.groups.counted(env.Context, true)
	return true
}

// openChannelBatch opens a batch, behind the one that was open. false means no room.
func (nb *neighbours) openBatch(p *peer) (ok bool) {
	t := &nb.batch
	if t.way != nil {
		t.way.Commit(t.n)
		t.way = nil
	}
	if t.b, ok = p.channel.Reserve(channelBatchRoom); !ok {
		return false
	}
	t.way, t.n = p.channel, headerLen
	h := header{kind: kindBatch, source: nb.ep.rank}
	h.put(t.b)
	return true
}

// flushChannelBatch commits the open batch, if there is one. It is small enough to be
// inlined, for most calls find none.
func (nb *neighbours) flush() {
	if nb.batch.last != nil {
		nb.commit()
	}
}

func (nb *neighbours) commit() {
	t := &nb.batch
	if t.last = nil; t.way != nil {
		t.way.Commit(t.n)
		t.way, t.b = nil, nil
	}
}
