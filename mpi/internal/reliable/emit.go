package reliable

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
)

// PostSend posts a Send or an RDMA Write to a peer, inline or with one
// scatter/gather element, signaled or not. The peer is told by to; AH is not
// looked at. It returns verbs.ErrQueueFull when there is no room: Poll, then try
// again. A request completes when it is acknowledged, in the order of posting
// to one peer; when the peer was silent for too long, with RetryExcErr, and
// those behind it with WRFlushErr. The memory of the request is the endpoint's
// until then.
//
// The first request after a step of the engine goes out at once; those that
// follow share frames and go out with the next step.
func (q *QueuePair) PostSend(to *Peer, wr *verbs.SendWR) error {
	if err := q.check(wr); err != nil {
		return err
	}
	direct := wr.Opcode == verbs.OpRDMAWrite && wr.Flags&verbs.Inline == 0 && wr.SGL[0].Length >= q.room && q.qp.Direct(&wr.SGL[0])
	if !q.post(q.eng.Now(), to, wr, direct) {
		return verbs.ErrQueueFull
	}
	if q.stuck {
		q.assocs.Ready(&to.conn.Assoc)
	}
	for !q.stuck && q.nextPacket(q.eng.Now(), to, &q.pk) {
		q.stuck = !q.emit(&q.pk)
	}
	return nil
}

// check refuses what cannot be sent.
func (q *QueuePair) check(wr *verbs.SendWR) error {
	n := 0
	switch {
	case wr.Opcode != verbs.OpSend && wr.Opcode != verbs.OpRDMAWrite:
		return fmt.Errorf("%w: %v over unreliable datagrams; there are SEND and RDMA_WRITE", verbs.ErrInvalid, wr.Opcode)
	case wr.Flags&verbs.Inline != 0:
		if n = len(wr.InlineData); n > MaxInline {
			return fmt.Errorf("%w: %d bytes inline; at most %d", verbs.ErrInvalid, n, MaxInline)
		}
	case wr.NumSGE != 1:
		return fmt.Errorf("%w: %d scatter/gather elements; there must be 1", verbs.ErrInvalid, wr.NumSGE)
	default:
		n = int(wr.SGL[0].Length)
	}
	if wr.Opcode == verbs.OpSend && n > q.most {
		return fmt.Errorf("%w: message of %d bytes; at most %d", verbs.ErrInvalid, n, q.most)
	}
	return nil
}

// transmit hands packets to the queue pair as long as it takes them, and returns how
// many.
func (q *QueuePair) transmit(now mono.Time) (sent int) {
	for !q.stuck && q.next(now, &q.pk) {
		q.stuck = !q.emit(&q.pk)
		sent++
	}
	return sent
}

// retry sends the packet that found no room.
func (q *QueuePair) retry() {
	c := q.pk.peer.conn
	if q.pk.req != nil && (c.Closed() || !c.Snd.Holds(q.pk.psn)) {
		q.stuck = false // it has arrived in spite of it, and its memory may be another's
		return
	}
	q.stuck = !q.emit(&q.pk)
}

// emit posts one packet. false means no room.
func (q *QueuePair) emit(pk *packet) bool {
	var wr *verbs.SendWR
	r, flags := pk.req, pathFlags[pk.choice]
	switch {
	case pk.chunk:
		wr = q.chunkOf(pk)
		wr.Flags |= flags
	case r == nil && pk.n == 0:
		wr = &q.send
		wr.InlineData = pk.hdr[:pk.len]
		wr.Flags = verbs.Inline | flags
	case r == nil:
		wr = q.longOf(pk, verbs.SGE{Addr: q.pad.mr.Addr(), Length: pk.n, LKey: q.pad.mr.LKey()})
		wr.Flags = flags
	case r.flags&verbs.Inline != 0:
		wr = &q.send
		copy(q.small[:], pk.hdr[:HeaderLen])
		n := copy(q.small[HeaderLen:], r.inline[pk.off:pk.off+pk.n])
		wr.InlineData = q.small[:HeaderLen+n]
		wr.Flags = verbs.Inline | flags
	default:
		wr = q.longOf(pk, verbs.SGE{Addr: r.sge.Addr + uint64(pk.off), Length: pk.n, LKey: r.sge.LKey})
		wr.Flags = flags
	}
	wr.AH, wr.RemoteQPN = pk.peer.ah, pk.peer.qpn
	if err := q.qp.PostSend(wr); err != nil {
		if !errors.Is(err, verbs.ErrQueueFull) {
			panic("reliable: verbs refused a packet: " + err.Error())
		}
		return false
	}
	if q.posted++; r != nil {
		r.posted = q.posted
	}
	if wr == &q.long {
		// The queue pair holds fewer packets than there are headers, and lets
		// go of the oldest first: the next one is free.
		if q.head++; q.head > sendDepth {
			q.head = 0
		}
	}
	return true
}

// pathFlags are those of work requests, by their path.
var pathFlags = [...]verbs.SendFlags{arq.FirstPath: 0, arq.LastFirst: verbs.BulkNext, arq.SecondPath: verbs.Bulk}

// longOf makes the Send of a packet whose header is followed by what s names.
func (q *QueuePair) longOf(pk *packet, s verbs.SGE) *verbs.SendWR {
	at := q.head * HeaderLen
	copy(q.heads.bytes[at:], pk.hdr[:HeaderLen])
	q.long.SGL[0] = verbs.SGE{Addr: q.heads.mr.Addr() + uint64(at), Length: HeaderLen, LKey: q.heads.mr.LKey()}
	q.long.SGL[1] = s
	return &q.long
}

// chunkOf makes the Write-Record of a chunk.
func (q *QueuePair) chunkOf(pk *packet) *verbs.SendWR {
	wr, r := &q.write, pk.req
	wr.RecordID, wr.RKey, wr.RemoteAddr = uint32(pk.psn), r.rkey, r.raddr+uint64(pk.off)
	if r.flags&verbs.Inline != 0 {
		wr.Flags, wr.NumSGE = verbs.Numbered|verbs.Inline, 0
		wr.InlineData = r.inline[pk.off : pk.off+pk.n]
	} else {
		wr.Flags, wr.NumSGE = verbs.Numbered, 1
		wr.SGL[0] = verbs.SGE{Addr: r.sge.Addr + uint64(pk.off), Length: pk.n, LKey: r.sge.LKey}
	}
	return wr
}
