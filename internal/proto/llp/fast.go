package llp

import (
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// FastMax is the most bytes of a ULPDU, its DDP header included, that Fast
// takes: what fits one frame on every path.
const FastMax = basePayload - dgram.HeaderLen - dgram.LengthLen

// Fast begins a datagram that has one ULPDU of n bytes, at most FastMax: it returns the
// place of the ULPDU, which the caller writes. SendFast follows. nil means no room now.
func (e *Endpoint) Fast(n int) []byte {
	if e.dg.TxRoom() <= len(e.out.tx.Pkts) || e.bulk.queued && !e.bulk.room() {
		return nil
	}
	f, ok := e.dg.Frame()
	if !ok {
		return nil
	}
	const front = dgram.HeaderLen + dgram.LengthLen
	e.out.one = fabric.Desc{Addr: f + mem.Addr(e.caps.Headroom), Len: uint32(front + n)}
	return e.arena.At(e.out.one.Addr, front+n)[front:]
}

// SendFast sends what Fast began to p at once, as the ULPDU that the next Push
// is for. credit is as for Commit.
func (e *Endpoint) SendFast(now mono.Time, p *Peer, credit uint8) {
	h := dgram.Header{
		Type: dgram.TypeData, Key: e.cfg.Key, SrcEpoch: p.local, DstEpoch: p.remote, LSN: p.Snd.Next(),
		Ack: p.Rcv.Next(), Window: e.Window(), Credit: credit, Held: arq.HeldOf(p.Rcv.Held(now)),
	}
	if p.Snd.AckSoon() {
		h.Flags = dgram.FlagAckSoon
	}
	if !e.cfg.NoCRC {
		h.Flags |= dgram.FlagCRC
	}
	h.PutOne(e.arena.At(e.out.one.Addr, int(e.out.one.Len)), !e.cfg.NoCRC)
	if e.bulk.inBulk(p, h.LSN, false) {
		w := e.bulk.to(p)
		w.Sent(1)
		e.bulk.tx.Add(fabric.Packet{To: w.path}, e.out.one)
		e.bulk.queuedBulk()
	} else {
		e.out.tx.Add(fabric.Packet{To: p.path, Source: p.source, Sealed: !e.cfg.NoCRC}, e.out.one)
		e.Stats.TxDatagrams++
	}
	e.Flush()
	p.Rcv.Acked(false)
}
