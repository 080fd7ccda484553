package p2p

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// maxMessage is the longest message in bytes: what a status can tell.
const maxMessage = 1<<63 - 1

// postRTS asks the receiver of r for a place to write to.
func (ep *Endpoint) postRTS(r *Request, p *peer) bool {
	h := header{kind: kindRTS, context: r.entry.Context, source: ep.rank, tag: r.entry.Tag, id: r.wireID()}
	h.put(ep.head[:])
	binary.BigEndian.PutUint64(ep.head[headerLen:], r.total)
	if !ep.postInline(p, r.peer, rtsLen) {
		return false
	}
	ep.Stats.Rendezvous++
	r.state = waitCTS
	return true
}

// arrivedRTS takes in the announcement of a large message.
func (ep *Endpoint) arrivedRTS(h *header, b []byte) {
	env, size := h.envelope(), binary.BigEndian.Uint64(b[headerLen:])
	if size > maxMessage {
		ep.Stats.Malformed++
		return
	}
	if e := ep.posted.Match(env); e != nil {
		ep.clear(e.Owner, env, h.id, size)
		return
	}
	ep.Stats.Unexpected++
	m := ep.messages.get(0)
	m.entry.Envelope = env
	m.kind, m.id, m.size = kindRTS, h.id, size
	ep.unexpected.Add(&m.entry)
}

// clear answers the RTS that r has met. What does not fit into the buffer of r
// is not asked for, so that nothing can be overrun.
func (ep *Endpoint) clear(r *Request, env match.Envelope, id uint32, size uint64) {
	p := &ep.peers[env.Source]
	room := min(uint64(len(r.buf)), size)
	r.peer = env.Source
	r.st = Status{Source: env.Source, Tag: env.Tag, Bytes: int(room)}
	r.total = size
	if p.err != nil {
		r.fail(p.err)
		return
	}
	if size > room {
		r.err = truncated(env.Source, size, len(r.buf))
	}
	r.grant = grant{request: r.wireID(), size: room}
	if room > 0 {
		mr, err := ep.pd.RegMR(r.buf[:room], verbs.LocalWrite|verbs.RemoteWrite)
		if err != nil {
			// The sender is told that there is no room, so that it ends too.
			r.err = &Error{Code: NoMemory, Peer: int(env.Source), Detail: "cannot register the receive buffer", Err: err}
			r.grant.size, r.st.Bytes = 0, 0
		} else {
			r.mr = mr
			r.grant.addr, r.grant.rkey = mr.Addr(), mr.RKey()
		}
	}
	r.remote = id
	r.state = sendCTS
	ep.advanceOrQueue(r)
}

func (ep *Endpoint) postCTS(r *Request, p *peer) bool {
	h := header{kind: kindCTS, source: ep.rank, id: r.remote}
	h.put(ep.head[:])
	r.grant.put(ep.head[:])
	if !ep.postInline(p, r.peer, ctsLen) {
		return false
	}
	r.state = waitFIN
	return true
}

// arrivedCTS starts to write the data.
func (ep *Endpoint) arrivedCTS(h *header, b []byte) {
	r := ep.lookup(h.id)
	if r == nil || r.state != waitCTS || r.peer != h.source {
		ep.Stats.Stale++
		var g grant
		g.get(b)
		ep.notify(int(h.source), kindFIN, finFailed, g.request) // or it waits for ever
		return
	}
	r.grant.get(b)
	r.buf = r.buf[:min(uint64(len(r.buf)), r.grant.size)]
	if len(r.buf) > 0 {
		mr, err := ep.pd.RegMR(r.buf, 0)
		if err != nil {
			// Nothing is written; the FIN tells the receiver so.
			r.err = &Error{Code: NoMemory, Peer: int(h.source), Detail: "cannot register the send buffer", Err: err}
			r.buf = nil
		} else {
			r.mr = mr
		}
	}
	r.state = sendData
	ep.advanceOrQueue(r)
}

// postData posts the Writes and then the FIN, as far as there is room. The
// memory is the sender's again when all Writes have come back; the FIN is a
// copy, so that nobody waits for its acknowledgement.
func (ep *Endpoint) postData(r *Request, p *peer) bool {
	for len(r.buf) > 0 {
		n := min(len(r.buf), ep.maxWrite)
		wr := &ep.write
		wr.WRID = wrRequest | uint64(r.peer)<<wrPeerShift | uint64(r.wireID())
		wr.AH = p.ah
		wr.RemoteAddr, wr.RKey = r.grant.addr+r.written, r.grant.rkey
		wr.SGL[0] = verbs.SGE{Addr: r.mr.Addr() + r.written, Length: uint32(n), LKey: r.mr.LKey()}
		if err := ep.qp.PostSend(wr); err != nil {
			return ep.refused(err)
		}
		ep.posts++
		r.inFlight++
		r.written += uint64(n)
		r.buf = r.buf[n:]
	}
	h := header{kind: kindFIN, source: ep.rank, id: r.grant.request}
	if r.err != nil {
		h.tag = finFailed
	}
	h.put(ep.head[:])
	if !ep.postInline(p, r.peer, headerLen) {
		return false
	}
	if r.state = waitAck; r.inFlight == 0 {
		r.complete() // nothing was to be written
	}
	return true
}

// arrivedFIN ends a large receive: the Writes before it are placed.
func (ep *Endpoint) arrivedFIN(h *header) {
	r := ep.lookup(h.id)
	if r == nil || r.state != waitFIN || r.peer != h.source {
		ep.Stats.Stale++
		return
	}
	if h.tag == finFailed {
		r.fail(&Error{Code: PeerLost, Peer: int(h.source), Detail: fmt.Sprintf("rank %d gave up sending the message, because of an error there", h.source)})
		return
	}
	r.complete()
}
