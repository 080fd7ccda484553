package verbs

import "github.com/xwarp/xwarp/iwarp/rdmap"

// What a peer is told when its key does not grant what it asks for (RFC 5040,
// section 4.8): the answers to what RDMAP checks, in Reads and atomics. What
// arrives in tagged segments is checked by DDP, which has numbers of its own.
var (
	causeNotAssociated    = rdmap.Cause{Layer: rdmap.LayerRDMAP, Type: 1, Code: 3} // STag not associated with the stream
	causeTOWrap           = rdmap.Cause{Layer: rdmap.LayerRDMAP, Type: 1, Code: 4}
	causeInvalidateRights = rdmap.Cause{Layer: rdmap.LayerRDMAP, Type: 1, Code: 9} // STag cannot be invalidated: protection
	causeInvalidateState  = rdmap.Cause{Layer: rdmap.LayerRDMAP, Type: 2, Code: 9} // STag cannot be invalidated: operation

	causeTaggedSTag          = rdmap.Cause{Layer: rdmap.LayerDDP, Type: 1, Code: 0}
	causeTaggedBounds        = rdmap.Cause{Layer: rdmap.LayerDDP, Type: 1, Code: 1}
	causeTaggedNotAssociated = rdmap.Cause{Layer: rdmap.LayerDDP, Type: 1, Code: 2}
	causeTaggedTOWrap        = rdmap.Cause{Layer: rdmap.LayerDDP, Type: 1, Code: 3}
)

// grant is the one place that decides whether a peer may touch memory: n bytes
// at addr of what key names, asked for through q, with the rights need. It
// returns the memory, or nil and what to tell the peer.
//
// An access of no bytes touches nothing, and is granted with any key, as the
// verbs have it for Reads and Writes (InfiniBand C9-88) and as Linux' siw
// driver does.
func (q *QP) grant(key uint32, addr uint64, n uint32, need Access) (b []byte, cause rdmap.Cause) {
	if n == 0 {
		return []byte{}, cause
	}
	if r := q.ctx.keys.lookup(key); r != nil && r.pd == q.pd && (r.qp == nil || r.qp == q) && r.access&need == need {
		if b, ok := r.slice(addr, n); ok {
			return b, cause
		}
	}
	cause = q.refusal(key, addr, n, need)
	if need&RemoteWrite != 0 {
		cause = tagged(cause)
	}
	return nil, cause
}

// refusal says why grant refused.
func (q *QP) refusal(key uint32, addr uint64, n uint32, need Access) rdmap.Cause {
	r := q.ctx.keys.lookup(key)
	switch {
	case r == nil:
		return rdmap.InvalidSTag
	case r.pd != q.pd || r.qp != nil && r.qp != q:
		return causeNotAssociated
	case r.access&need != need:
		return rdmap.AccessRights
	case addr+uint64(n-1) < addr:
		return causeTOWrap
	}
	return rdmap.BaseBounds
}

// tagged returns the same cause as DDP numbers it for tagged segments
// (RFC 5041, section 7.2). DDP knows no rights.
func tagged(c rdmap.Cause) rdmap.Cause {
	switch c {
	case rdmap.InvalidSTag:
		return causeTaggedSTag
	case rdmap.BaseBounds:
		return causeTaggedBounds
	case causeNotAssociated:
		return causeTaggedNotAssociated
	case causeTOWrap:
		return causeTaggedTOWrap
	}
	return c
}

// invalidate ends the validity of a key: for a peer's Send with Invalidate
// when remote is set, else for OpLocalInv. A window is not bound afterwards; a
// region cannot be used any more and waits for Dereg. Peers may end windows
// that were bound through q, and regions with RemoteInvalidate (RFC 5040,
// section 5.3). When ok is false nothing has changed, and cause says why.
func (q *QP) invalidate(key uint32, remote bool) (cause rdmap.Cause, ok bool) {
	r := q.ctx.keys.lookup(key)
	switch {
	case r == nil:
		return causeInvalidateState, false
	case r.pd != q.pd || r.qp != nil && r.qp != q:
		return causeInvalidateRights, false
	case r.mw != nil:
		r.mw.unbind()
		return cause, true
	case remote && r.access&RemoteInvalidate == 0:
		return causeInvalidateRights, false
	case r.mr.windows > 0:
		return causeInvalidateState, false
	}
	q.ctx.keys.end(r, nil)
	return cause, true
}

// statusOf returns how a request ends that the peer has refused with this
// cause.
func statusOf(c rdmap.Cause) Status {
	switch {
	case c.Layer == rdmap.LayerLLP || c.Type == 0:
		return RemOpErr
	case c.Type == 1 || c == causeInvalidateState:
		return RemAccessErr
	}
	return RemInvReqErr
}
