package p2p

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/reliable"
	"github.com/xwarp/xwarp/verbs"
)

// network is what reaches the ranks of other hosts: queue pairs, and what they send from and
// receive into.
type network struct {
	ep    *Endpoint
	ctx   *verbs.Context
	pd    *verbs.PD
	qp    *verbs.QP
	cq    *verbs.CQ
	srq   *verbs.SRQ         // of all queue pairs, with connections
	conn  *connector         // nil without
	rel   *reliable.Endpoint // what makes qp reliable, over UD
	arena *mem.Arena
	addr  netip.AddrPort

	posts     int   // work requests posted since the last step of the engine
	latest    *peer // that something was posted to
	batch     batch
	tx        buffers
	txFree    []int32
	inline    verbs.SendWR // reused: header in head
	long      verbs.SendWR // reused: from a registered buffer
	head      [verbs.MaxInline]byte
	maxSeg    int // bytes that fit one datagram
	inlineMax int // longest message that goes inline with its header
	rx        buffers
	receive   verbs.RecvWR // reused
}

// buffers is an array of equal registered buffers in the arena.
type buffers struct {
	mr     *verbs.MR
	at     mem.Addr
	bytes  []byte
	stride int
}

func (b *buffers) get(i int32, n int) []byte {
	at := int(i) * b.stride
	return b.bytes[at : at+n : at+b.stride]
}

func (b *buffers) addr(i int32) uint64 { return b.mr.Addr() + uint64(int(i)*b.stride) }

func (nw *network) create(ctx *verbs.Context) (err error) {
	ep := nw.ep
	nw.ctx, nw.arena, nw.addr = ctx, ctx.Arena(), ctx.Addr()
	nw.maxSeg, nw.inlineMax = ctx.Attr().MaxSeg, verbs.MaxInline-headerLen
	nw.inline = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline}
	nw.long = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1}
	if nw.pd, err = ctx.AllocPD(); err != nil {
		return err
	}
	if ep.cfg.Transport == UD {
		return nw.createUD(ctx)
	}
	if err = nw.createQueues(ctx); err != nil {
		return err
	}
	if err = nw.carve(&nw.rx, ep.cfg.Receives, nw.bufferSize(), "receive", verbs.LocalWrite); err != nil {
		return err
	}
	if err = nw.carveSends(); err != nil {
		return err
	}
	nw.receive.NumSGE = 1
	nw.receive.SGL[0] = verbs.SGE{Length: uint32(nw.rx.stride), LKey: nw.rx.mr.LKey()}
	for i := range int32(ep.cfg.Receives) {
		if err = nw.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

// createQueues makes the queues, and the queue pair of datagrams.
func (nw *network) createQueues(ctx *verbs.Context) (err error) {
	ep := nw.ep
	depth := verbs.QPCap{MaxSendWR: 512, MaxRecvWR: ep.cfg.Receives}
	completions := depth.MaxSendWR + depth.MaxRecvWR
	t := ep.cfg.Transport
	if t.connects() {
		completions += linkSends * min(len(ep.peers)-1, sharedLinks)
	}
	if nw.cq, err = ctx.CreateCQ(verbs.CQInit{Depth: completions}); err != nil {
		return err
	}
	if t.connects() {
		if nw.srq, err = nw.pd.CreateSRQ(verbs.SRQInit{MaxWR: ep.cfg.Receives}); err != nil {
			return err
		}
		if nw.conn, err = openConnector(ep, ctx); err != nil {
			return fmt.Errorf("transport %v: %w", t, err)
		}
	}
	if t == RC {
		nw.maxSeg = math.MaxInt // a stream takes a message as a whole
		return nil
	}
	nw.qp, err = nw.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: nw.cq, RecvCQ: nw.cq, SRQ: nw.srq, Cap: depth, RecvHandler: &ep.match})
	return err
}

// bufferSize returns the length of eager buffers in bytes.
func (nw *network) bufferSize() int { return max(headerLen+nw.ep.cfg.EagerMax, verbs.MaxInline) }

// carveSends makes the send buffers.
func (nw *network) carveSends() error {
	if err := nw.carve(&nw.tx, nw.ep.cfg.Sends, nw.bufferSize(), "send", 0); err != nil {
		return err
	}
	for i := range int32(nw.ep.cfg.Sends) {
		nw.txFree = append(nw.txFree, i)
	}
	return nil
}

func (nw *network) carve(b *buffers, n, size int, what string, access verbs.Access) (err error) {
	b.stride = (size + 63) &^ 63
	if b.at, err = nw.arena.Alloc(n*b.stride, mem.FrameSize); err != nil {
		return fmt.Errorf("%d eager %s buffers of %d bytes: %w", n, what, b.stride, err)
	}
	b.bytes = nw.arena.At(b.at, n*b.stride)
	b.mr, err = nw.pd.RegMR(b.bytes, access)
	return err
}

func (nw *network) postRecv(slot int32) error {
	wr := &nw.receive
	wr.WRID = wrRecv | uint64(slot)
	wr.SGL[0].Addr = nw.rx.addr(slot)
	if nw.srq != nil {
		return nw.srq.PostRecv(wr)
	}
	return nw.qp.PostRecv(wr)
}
