package reliable

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/addrtable"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
)

// Config describes an endpoint. MaxMessage is needed; zero values of the rest
// mean the defaults.
type Config struct {
	MaxMessage int        // longest message in bytes that is sent or received
	MaxSendWR  int        // work requests under way; default 512
	Buffer     int        // bytes of receive buffers; default 4 MiB
	ARQ        arq.Config // windows and times; default as for reliable datagrams
}

// Bounds of what follows from Config.Buffer.
const (
	slotsLeast = 64
	slotsMost  = 1024
)

func (c *Config) fill() error {
	c.MaxSendWR = cmp.Or(c.MaxSendWR, 512)
	c.Buffer = cmp.Or(c.Buffer, 4<<20)
	if c.MaxMessage < 1 || c.MaxMessage > 1<<30 || c.MaxSendWR < 1 || c.MaxSendWR > 1<<16 || c.Buffer < 0 {
		return fmt.Errorf("reliable: messages of %d bytes, %d work requests, receive buffers of %d bytes: want up to 1 GiB, and up to 65536", c.MaxMessage, c.MaxSendWR, c.Buffer)
	}
	return nil
}

// QueuePair is a UD queue pair that loses nothing. Its memory is in the arena of
// the context.
//
// Owner: engine.
type QueuePair struct {
	protocol

	arena *mem.Arena
	eng   *progress.Engine
	qp    *verbs.QP
	cq    *verbs.CQ
	rx    region // receive buffers
	heads region // headers in front of what lies in the user's memory
	pad   region // what a Hello has behind its header
	head  int    // next of them

	peers  addrtable.Table[Peer]
	posted uint64 // packets that the queue pair was given
	stuck  bool   // pk could not be sent yet
	pk     packet // reused
	small  [verbs.MaxInline]byte
	send   verbs.SendWR // reused: a packet from small
	long   verbs.SendWR // reused: a packet with the user's memory
	write  verbs.SendWR // reused: a chunk
	recv   verbs.RecvWR // reused
	wcs    [progress.Budget]verbs.WC
}

// region is registered memory in the arena.
type region struct {
	mr    *verbs.MR
	at    mem.Addr
	bytes []byte
}

// sendDepth is how many packets may wait in the queue pair for the carrier.
const sendDepth = 512

// New makes an endpoint with receives posted. Its queue pair completes to a
// queue of its own.
func New(ctx *verbs.Context, pd *verbs.PD, cfg Config) (*QueuePair, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	seg := ctx.Attr().MaxSeg
	if seg < 2*ackLen {
		return nil, fmt.Errorf("reliable: datagrams of %d bytes are too short", seg)
	}
	q := &QueuePair{arena: ctx.Arena(), eng: ctx.Engine()}
	q.part = uint32(min(seg-HeaderLen, cfg.MaxMessage))
	q.room, q.chunk = uint32(seg-recordLen), uint32(ctx.BestSeg()-recordLen)
	if q.second = ctx.Attr().Bulk; q.second {
		q.hello = uint32(seg - HeaderLen)
	}
	q.stride = (HeaderLen + max(int(q.part), int(q.hello), ackLen) + 63) &^ 63
	slots := min(max(cfg.Buffer/q.stride, slotsLeast), slotsMost)
	q.protocol.init(&cfg, slots, q.eng.Clock().Now())
	q.send = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline}
	q.long = verbs.SendWR{Opcode: verbs.OpSend, NumSGE: 2}
	q.write = verbs.SendWR{Opcode: verbs.OpRDMAWriteRecord}
	if err := q.create(ctx, pd, slots); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// recordLen is how much longer the headers of a chunk are than those of a Send.
const recordLen = 8

func (q *QueuePair) create(ctx *verbs.Context, pd *verbs.PD, slots int) (err error) {
	// Records that are placed need room beside the receives, and none waits
	// for longer than a step.
	if q.cq, err = ctx.CreateCQ(verbs.CQInit{Depth: sendDepth + 2*slots + arq.WindowMax}); err != nil {
		return err
	}
	q.qp, err = pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: q.cq, RecvCQ: q.cq, Lasting: true, Cap: verbs.QPCap{MaxSendWR: sendDepth, MaxRecvWR: slots}})
	if err != nil {
		return err
	}
	if err = q.carve(pd, &q.rx, slots*q.stride, "receive buffers", verbs.LocalWrite); err != nil {
		return err
	}
	if err = q.carve(pd, &q.heads, (sendDepth+1)*HeaderLen, "headers", 0); err != nil {
		return err
	}
	if q.second {
		if err = q.carve(pd, &q.pad, int(q.hello), "padding", 0); err != nil {
			return err
		}
		clear(q.pad.bytes)
	}
	q.protocol.rx = q.rx.bytes
	q.recv.NumSGE = 1
	q.recv.SGL[0] = verbs.SGE{Length: uint32(q.stride), LKey: q.rx.mr.LKey()}
	for i := range int32(slots) {
		q.postRecv(i)
	}
	q.spare = slots
	return nil
}

func (q *QueuePair) carve(pd *verbs.PD, r *region, n int, what string, access verbs.Access) (err error) {
	if r.at, err = q.arena.Alloc(n, mem.FrameSize); err != nil {
		return fmt.Errorf("%d bytes of %s: %w", n, what, err)
	}
	r.bytes = q.arena.At(r.at, n)
	r.mr, err = pd.RegMR(r.bytes, access)
	return err
}

// QP returns the queue pair.
func (q *QueuePair) QP() *verbs.QP { return q.qp }

// Num returns the number of the queue pair, which peers must know.
func (q *QueuePair) Num() uint32 { return q.qp.Num() }

// Segment returns how many bytes of a Write a datagram carries at most, which peers
// must know: it is the same for all.
func (q *QueuePair) Segment() int { return int(q.room) }

// Peer makes known the endpoint that ah leads to, once: the number of its queue
// pair, its Segment, and the Epoch of its context.
func (q *QueuePair) Peer(ah *verbs.AH, qpn uint32, segment int, epoch uint32) (*Peer, error) {
	if segment != q.Segment() {
		return nil, fmt.Errorf("reliable: datagrams there carry %d bytes and here %d: over unreliable datagrams, which find out nothing about the path, all ends need the same MTU", segment, q.Segment())
	}
	ah.SetEpoch(epoch)
	p := &Peer{ah: ah, qpn: qpn, epoch: epoch, remote: verbs.RemoteOf(ah.Remote())}
	q.peers.Add(p.remote.Hash(), p)
	return p, nil
}

// Deadline returns when Poll must be called though nothing arrives.
func (q *QueuePair) Deadline() mono.Time {
	if q.stuck || len(q.free) > 0 {
		return 0
	}
	return q.assocs.Deadline()
}

// Close ends the queue pair. Nothing that is under way completes.
func (q *QueuePair) Close() error {
	var errs []error
	if q.qp != nil {
		q.qp.Destroy()
	}
	if q.cq != nil {
		errs = append(errs, q.cq.Destroy())
	}
	for _, r := range []*region{&q.rx, &q.heads, &q.pad} {
		if r.mr != nil {
			errs = append(errs, r.mr.Dereg())
		}
		if r.bytes != nil {
			q.arena.Free(r.at)
		}
		*r = region{}
	}
	return errors.Join(errs...)
}
