package verbs

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
)

// AtOnce is how many datagrams go out with one doorbell.
const AtOnce = llp.Quota

// PostSend posts a send request (ibv_post_send(3)). It returns ErrQueueFull
// when the send or completion queue has no room, and another error when the
// request itself is wrong; then nothing was posted.
//
// The first request after a step of the engine goes out at once, on RD up to AtOnce
// datagrams of it; those that follow share frames and go out with the next step.
func (q *QP) PostSend(wr *SendWR) error {
	if q.closed {
		return ErrClosed
	}
	if err := q.typ.checkLegal(wr); err != nil {
		return err
	}
	if q.state != StateRTS {
		if err := q.mayPostSend(); err != nil {
			return err
		}
	}
	switch q.typ {
	case RC:
		return q.rc.post(wr)
	case UD:
		return q.ud.post(wr)
	}
	return q.rd.post(wr)
}

// PostSendList posts requests in the order of the list, as PostSend does each (the
// linked list of ibv_post_send(3)), and returns how many it has posted. With an
// error that is the index of the one that was not; those behind it were not looked
// at.
func (q *QP) PostSendList(wrs []SendWR) (posted int, err error) {
	for i := range wrs {
		if err := q.PostSend(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// fill copies a request into its entry and resolves its memory.
func (q *QP) fill(w *wqe, wr *SendWR, i int32) error {
	w.wrid, w.op, w.flags = wr.WRID, wr.Opcode, wr.Flags
	w.sent, w.key, w.raddr, w.inv = 0, wr.RKey, wr.RemoteAddr, 0
	w.done, w.begun, w.inside, w.built, w.bufN = false, false, false, false, 0
	if wr.Flags&Inline != 0 {
		if len(wr.InlineData) > MaxInline {
			return fmt.Errorf("%w: %d bytes inline; at most %d", ErrInvalid, len(wr.InlineData), MaxInline)
		}
		w.built = true
		w.total = uint32(copy(w.data[:], wr.InlineData))
	} else if err := q.gather(w, wr); err != nil {
		return err
	}
	w.size = w.total
	switch {
	case wr.Opcode <= OpRDMAWrite:
		if wr.Opcode == OpSendWithInv {
			w.inv = wr.InvKey
		}
	case wr.Opcode == OpRDMAWriteWithImm:
		rdmap.Imm(wr.ImmData).Put(w.imm[:])
	case w.isRead():
		q.ask(w, wr, i)
	}
	return nil
}

// gather resolves the memory of a request.
func (q *QP) gather(w *wqe, wr *SendWR) error {
	if wr.NumSGE > MaxSGE {
		return fmt.Errorf("%w: %d scatter/gather elements; at most %d", ErrInvalid, wr.NumSGE, MaxSGE)
	}
	need := Access(0)
	if w.isRead() {
		need = LocalWrite
	}
	total := uint64(0)
	for i := range int(wr.NumSGE) {
		b, err := q.ctx.resolve(q.pd, &wr.SGL[i], need)
		if err != nil {
			clear(w.bufs[:i])
			return err
		}
		w.bufs[i] = b
		total += uint64(len(b))
	}
	w.bufN = wr.NumSGE
	if total > maxMsg {
		return fmt.Errorf("%w: message of %d bytes; at most %d", ErrInvalid, total, maxMsg)
	}
	w.total = uint32(total)
	if total >= llp.DirectMin && w.bufN == 1 && (q.typ == RD || q.lasting) {
		r := q.ctx.keys.lookup(wr.SGL[0].LKey)
		w.inside, w.addr = r.inside, r.arena+mem.Addr(wr.SGL[0].Addr-r.addr)
	}
	return nil
}

// ask builds what a Read or an atomic sends. Its answer comes under a name
// that says nothing about memory here, and that only this peer may use.
func (q *QP) ask(w *wqe, wr *SendWR, i int32) {
	q.names++
	w.name = q.names<<20 | uint32(i) // maxQueue entries
	if w.name>>20 == 0 {
		q.names++
		w.name |= 1 << 20
	}
	w.ah, w.got, w.built, w.inside = wr.AH, 0, true, false
	w.answered, w.acked = false, false
	if wr.Opcode == OpRDMARead {
		r := rdmap.ReadReq{SinkSTag: iwarp.STag(w.name), Size: w.size, SrcSTag: iwarp.STag(wr.RKey), SrcTO: wr.RemoteAddr}
		r.Put(w.data[:])
		w.total = rdmap.ReadReqLen
	} else {
		r := rdmap.AtomicReq{ID: w.name, STag: iwarp.STag(wr.RKey), TO: wr.RemoteAddr}
		operands(&r, wr)
		r.Put(w.data[:])
		w.total = rdmap.AtomicReqLen
	}
}

// operands translates an atomic operation to RFC 7306, section 5.2.
func operands(r *rdmap.AtomicReq, wr *SendWR) {
	a := &wr.Atomic
	mask := allIfZero(a.Mask)
	switch wr.Opcode {
	case OpAtomicFetchAndAdd:
		// The mask of RFC 7306 marks the most significant bits of the fields
		// that are added apart; that is what Atomic.Mask says too, 0 being one
		// field of 64 bits.
		r.Op, r.Data, r.Mask = rdmap.FetchAdd, a.Add, a.Mask
	case OpAtomicSwap:
		r.Op, r.Data, r.Mask = rdmap.Swap, a.Swap, mask
	case OpAtomicCmpAndSwp:
		r.Op, r.Data, r.Mask = rdmap.CmpSwap, a.Swap, mask
		r.Compare, r.CompareMask = a.Compare, allIfZero(a.CompareMask)
	}
}

func allIfZero(mask uint64) uint64 {
	if mask == 0 {
		return ^uint64(0)
	}
	return mask
}

// setLocal makes w a request without a peer.
func (w *wqe) setLocal(wr *SendWR) {
	w.wrid, w.op, w.flags, w.bufN, w.size = wr.WRID, wr.Opcode, wr.Flags, 0, 0
}

// do does what a local request says.
func (q *QP) do(wr *SendWR) Status {
	switch {
	case q.state == StateErr:
		return WRFlushErr
	case wr.Opcode == OpLocalInv:
		if _, ok := q.invalidate(wr.InvKey, false); !ok {
			return LocProtErr
		}
	case wr.Bind.do(q) != nil:
		return MWBindErr
	}
	return Success
}

// order is how memory holds the operands of atomics: as this host does.
var order = binary.NativeEndian
