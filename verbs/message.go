package verbs

import (
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/iwarp/record"
)

// completeSend ends request w, which was meant for ah on datagrams. Its entry is still to
// be given back.
func (q *QP) completeSend(w *wqe, status Status, ah *AH) {
	q.Stats.count(w.op, status)
	if w.flags&Signaled != 0 || status != Success {
		*q.sendCQ.next() = WC{WRID: w.wrid, Status: status, Opcode: w.op, ByteLen: w.size, QPNum: q.num, Src: ah}
	} else {
		q.sendCQ.release()
	}
}

// count counts a request that has ended.
func (s *QPStats) count(op Opcode, status Status) {
	if status != Success {
		s.Flushed++
		return
	}
	switch op {
	case OpSend, OpSendWithInv:
		s.Sends++
	case OpRDMAWrite, OpRDMAWriteWithImm:
		s.Writes++
	case OpRDMARead:
		s.Reads++
	case OpRDMAWriteRecord:
		s.Records++
	case OpLocalInv, OpBindMW:
	default:
		s.Atomics++
	}
}

// completeRecv appends the completion of a receive of n bytes, from ah on RD. The caller
// fills in what else it tells.
func (q *QP) completeRecv(wrid uint64, op Opcode, n uint32, ah *AH) *WC {
	wc := q.recvCQ.next()
	wc.WRID, wc.Status, wc.Opcode, wc.Flags, wc.ByteLen, wc.QPNum = wrid, Success, op, 0, n, q.num
	wc.SrcQP, wc.InvKey, wc.SrcEpoch, wc.ImmData, wc.SrcAddr, wc.Src, wc.Record = 0, 0, 0, 0, Remote{}, ah, nil
	if ah != nil {
		wc.SrcAddr = ah.remote
	}
	return wc
}

// receive places a Send of one segment, of n bytes, in receive e, which it fits, and
// completes that.
func (q *QP) receive(e *rqe, rd *llp.Reader, n int, ah *AH) *WC {
	e.scatter(0, rd, n)
	q.Stats.Recvs++
	q.Stats.RecvBytes += uint64(n)
	return q.completeRecv(e.wrid, OpRecv, uint32(n), ah)
}

// received completes the receive of a Send that was placed, after it has ended the
// registration that the Send names. When ok is false the Send is to be refused.
func (q *QP) received(wrid uint64, n uint32, flags WCFlags, inv uint32, ah *AH) (cause iwarp.Cause, ok bool) {
	if flags&WCWithInv != 0 {
		if cause, ok = q.invalidate(inv, true); !ok {
			q.flushOne(wrid)
			return cause, false
		}
	}
	q.Stats.Recvs++
	q.Stats.RecvBytes += uint64(n)
	wc := q.completeRecv(wrid, OpRecv, n, ah)
	if wc.Flags = flags; flags&WCWithInv != 0 {
		wc.InvKey = inv
	}
	return cause, true
}

// receivedImm completes the receive that Immediate Data have taken.
func (q *QP) receivedImm(wrid uint64, imm uint64, flags WCFlags, ah *AH) {
	q.Stats.Recvs++
	wc := q.completeRecv(wrid, OpRecvRDMAWithImm, 0, ah)
	wc.Flags, wc.ImmData = flags, imm
}

// tooLong completes the receive of a message that it is too short for.
func (q *QP) tooLong(wrid uint64, n uint32, ah *AH) *WC {
	wc := q.completeRecv(wrid, OpRecv, n, ah)
	wc.Status = LocLenErr
	return wc
}

// flushRecv ends the queue pair's own receives. Those of an SRQ stay.
func (q *QP) flushRecv() {
	if q.srq != nil {
		return
	}
	for q.rq.len() > 0 {
		q.flushOne(q.rq.take().wrid)
	}
}

// flushOne completes a receive that will not be filled.
func (q *QP) flushOne(wrid uint64) {
	q.Stats.Flushed++
	q.completeRecv(wrid, OpRecv, 0, nil).Status = WRFlushErr
}

// sendFlags returns what a completion tells of a Send, or of Immediate Data, of this kind.
func sendFlags(op rdmap.Opcode) (f WCFlags) {
	if op == rdmap.Send {
		return 0
	}
	if op.Solicited() {
		f |= WCWithSolicited
	}
	if op.Invalidates() {
		f |= WCWithInv
	}
	return f
}

// parse reads the header of a ULPDU of n bytes, which begins with b, and holds it to the
// rules of DDP and RDMAP.
func parse(h *ddp.Header, b []byte, n int) (op rdmap.Opcode, cause iwarp.Cause, ok bool) {
	if !h.Parse(b) {
		return 0, ddp.BadHeader(b), false
	}
	return rdmap.Check(h, n-h.Len())
}

// placeWrite places a segment of an RDMA Write of n bytes, if it is granted.
func (q *QP) placeWrite(h *ddp.Header, rd *llp.Reader, n int) (cause iwarp.Cause, ok bool) {
	dst, cause := q.grant(uint32(h.STag), h.TO, uint32(n), RemoteWrite)
	if dst == nil {
		return cause, false
	}
	rd.Copy(dst)
	return cause, true
}

// grantChunk reads the header of a chunk of a Write-Record, of n bytes with that, and
// returns where its payload belongs, or nil and why not.
func (q *QP) grantChunk(h *ddp.Header, k *record.Chunk, rd *llp.Reader, n int) (dst []byte, cause iwarp.Cause) {
	k.Parse(rd.Peek(record.ChunkLen))
	rd.Skip(record.ChunkLen)
	n -= record.ChunkLen
	dst, cause = q.grant(uint32(h.STag), h.TO, uint32(n), RemoteWrite)
	if dst != nil && !k.Fits(h.TO, n, h.Last) {
		return nil, ddp.BaseBounds
	}
	return dst, cause
}
