package verbs

import (
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// grant is the one place that decides whether a peer may touch memory: n bytes
// at addr of what key names, asked for through q, with the rights need. It
// returns the memory, or nil and what to tell the peer.
//
// An access of no bytes touches nothing, and is granted with any key, as the
// verbs have it for Reads and Writes (InfiniBand C9-88) and as Linux' siw
// driver does.
func (q *QP) grant(key uint32, addr uint64, n uint32, need Access) (b []byte, cause iwarp.Cause) {
	if n == 0 {
		return []byte{}, cause
	}
	if r := q.ctx.keys.lookup(key); r != nil && r.pd == q.pd && (r.qp == nil || r.qp == q) && r.access&need == need {
		if b, ok := r.slice(addr, n); ok {
			return b, cause
		}
	}
	cause = q.ctx.keys.lookup(key).refusal(q, addr, n, need)
	if need&RemoteWrite != 0 {
		cause = tagged(cause)
	}
	return nil, cause
}

// refusal says why grant refused. There may be no region.
func (r *region) refusal(q *QP, addr uint64, n uint32, need Access) iwarp.Cause {
	switch {
	case r == nil:
		return rdmap.InvalidSTag
	case r.pd != q.pd || r.qp != nil && r.qp != q:
		return rdmap.NotAssociated
	case r.access&need != need:
		return rdmap.AccessRights
	case ddp.Wraps(addr, int(n)):
		return rdmap.TOWrap
	}
	return rdmap.BaseBounds
}

// tagged returns the same cause as DDP names it, which checks tagged
// segments (RFC 5041, section 7.1). DDP knows no rights.
func tagged(c iwarp.Cause) iwarp.Cause {
	switch c {
	case rdmap.InvalidSTag:
		return ddp.InvalidSTag
	case rdmap.BaseBounds:
		return ddp.BaseBounds
	case rdmap.NotAssociated:
		return ddp.NotAssociated
	case rdmap.TOWrap:
		return ddp.TOWrap
	}
	return c
}

// invalidate ends the validity of a key: for a peer's Send with Invalidate
// when remote is set, else for OpLocalInv. A window is not bound afterwards; a
// region cannot be used any more and waits for Dereg. Peers may end windows
// that were bound through q, and regions with RemoteInvalidate (RFC 5040,
// section 5.3). When ok is false nothing has changed, and cause says why.
func (q *QP) invalidate(key uint32, remote bool) (cause iwarp.Cause, ok bool) {
	r := q.ctx.keys.lookup(key)
	switch {
	case r == nil:
		return rdmap.OperationInvalidate, false
	case r.pd != q.pd || r.qp != nil && r.qp != q:
		return rdmap.CannotInvalidate, false
	case r.mw != nil:
		r.mw.unbind()
		return cause, true
	case remote && r.access&RemoteInvalidate == 0:
		return rdmap.CannotInvalidate, false
	case r.mr.windows > 0:
		return rdmap.OperationInvalidate, false
	}
	q.ctx.keys.end(r, nil)
	return cause, true
}
