package p2p

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/verbs"
)

// Config describes an endpoint. Rank and Size are needed; zero values of the
// rest mean the defaults.
type Config struct {
	Rank, Size int
	Transport  Transport
	EagerMax   int // largest message in bytes that is sent without asking; default 16 KiB, -1 means 0
	Receives   int // receive buffers of EagerMax bytes; default 256
	Sends      int // send buffers of EagerMax bytes; default 64
	// Shared asks for an endpoint that several goroutines use at the same time.
	// Endpoint.Shared tells whether it is one: in the simulator it is not.
	Shared bool
	// Aborted is asked several times a second. When it returns an error,
	// everything under way fails with it. Default: never.
	Aborted func() error
}

// eagerMost is the most that Config.EagerMax can be.
const eagerMost = 1 << 20

func (c *Config) fill() error {
	switch {
	case c.EagerMax == 0:
		c.EagerMax = 16 << 10
	case c.EagerMax < 0:
		c.EagerMax = 0
	}
	if c.Receives == 0 {
		c.Receives = 256
	}
	if c.Sends == 0 {
		c.Sends = 64
	}
	if c.Size < 1 || c.Size > 1<<24 || c.Rank < 0 || c.Rank >= c.Size {
		return fmt.Errorf("p2p: rank %d of %d is not possible (at most %d ranks)", c.Rank, c.Size, 1<<24)
	}
	if c.EagerMax > eagerMost || c.Receives < 1 || c.Sends < 1 {
		return fmt.Errorf("p2p: eager limit %d, %d receive and %d send buffers: want at most 1 MiB, and at least one of each", c.EagerMax, c.Receives, c.Sends)
	}
	return nil
}

// Stats counts what an endpoint did.
type Stats struct {
	Eager, Rendezvous uint64 // messages sent
	Unexpected        uint64 // messages that came before their receive
	Queued            uint64 // times that the queue pair had no room
	Malformed         uint64 // messages that our code did not send
	Stale             uint64 // answers to requests that had failed, and messages of lost peers
}

// Endpoint is the point-to-point half of a rank.
//
// Owner: engine.
type Endpoint struct {
	Stats Stats

	cfg   Config
	rank  int32
	addr  netip.AddrPort
	eng   *progress.Engine
	pd    *verbs.PD
	qp    *verbs.QP
	cq    *verbs.CQ
	arena *mem.Arena
	peers []peer

	posted     match.Posted[Request]
	unexpected match.Unexpected[message]
	messages   messagePool
	requests   []*Request // by slot
	idle       *Request   // pool
	active     int        // requests whose result the user has not taken
	pending    requestQueue
	posts      int // work requests posted since the last step of the engine

	rx, tx   buffers
	txFree   []int32
	wcs      [progress.Budget]verbs.WC
	inline   verbs.SendWR // reused: header in head
	long     verbs.SendWR // reused: from a registered buffer
	write    verbs.SendWR // reused: a Write of rendezvous
	head     [verbs.MaxInline]byte
	receive  verbs.RecvWR // reused
	maxSeg   int          // bytes that fit one datagram
	maxWrite int

	lost    error     // the first loss of a peer: collectives cannot work any more
	closing bool      // nobody's loss matters any more
	abortAt mono.Time // when to ask Config.Aborted next
	wakeAt  mono.Time // when Drain wants to look again
	ended   bool

	gate     *gate // nil: one goroutine at a time
	follower Follower
	polling  bool // inside Poll: the step that is under way lets things go out
}

// peer is what an endpoint knows of another rank.
type peer struct {
	qp       *verbs.QP // that leads to it; nil for the own rank
	ah       *verbs.AH // on a queue pair of datagrams
	self     bool      // the own rank
	eagerMax int32     // smaller one of both ends' limits
	used     bool      // something was sent to it or received from it
	saidBye  mono.Time // when its bye came, or Never
	err      error     // why it is lost, or nil
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

// New makes an endpoint with receives posted, so that peers may send as soon
// as they know its address. It adds itself to the context's engine.
func New(ctx *verbs.Context, cfg Config) (*Endpoint, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	attr := ctx.Attr()
	ep := &Endpoint{
		cfg: cfg, rank: int32(cfg.Rank), addr: ctx.Addr(),
		eng: ctx.Engine(), arena: ctx.Arena(),
		peers:    make([]peer, cfg.Size),
		maxSeg:   attr.MaxSeg,
		maxWrite: min(attr.MaxMsg, 1<<30),
		abortAt:  mono.Never, wakeAt: mono.Never,
	}
	if cfg.Aborted != nil {
		ep.abortAt = ep.eng.Clock().Now().Add(abortInterval)
	}
	ep.inline = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline}
	ep.long = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1}
	ep.write = verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, NumSGE: 1}
	if err := ep.create(ctx); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	if cfg.Shared {
		ep.gate = newGate(ep)
	}
	ep.eng.Add(ep)
	return ep, nil
}

func (ep *Endpoint) create(ctx *verbs.Context) (err error) {
	if ep.pd, err = ctx.AllocPD(); err != nil {
		return err
	}
	depth := verbs.QPCap{MaxSendWR: 512, MaxRecvWR: ep.cfg.Receives}
	if ep.cq, err = ctx.CreateCQ(verbs.CQInit{Depth: depth.MaxSendWR + depth.MaxRecvWR}); err != nil {
		return err
	}
	if ep.qp, err = ep.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: ep.cq, RecvCQ: ep.cq, Cap: depth}); err != nil {
		return err
	}
	size := max(headerLen+ep.cfg.EagerMax, verbs.MaxInline)
	if err = ep.carve(&ep.rx, ep.cfg.Receives, size, "receive", verbs.LocalWrite); err != nil {
		return err
	}
	if err = ep.carve(&ep.tx, ep.cfg.Sends, size, "send", 0); err != nil {
		return err
	}
	for i := range int32(ep.cfg.Sends) {
		ep.txFree = append(ep.txFree, i)
	}
	ep.receive.NumSGE = 1
	ep.receive.SGL[0] = verbs.SGE{Length: uint32(ep.rx.stride), LKey: ep.rx.mr.LKey()}
	for i := range int32(ep.cfg.Receives) {
		if err = ep.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

func (ep *Endpoint) carve(b *buffers, n, size int, what string, access verbs.Access) (err error) {
	b.stride = (size + 63) &^ 63
	if b.at, err = ep.arena.Alloc(n*b.stride, mem.FrameSize); err != nil {
		return fmt.Errorf("%d eager %s buffers of %d bytes: %w", n, what, b.stride, err)
	}
	b.bytes = ep.arena.At(b.at, n*b.stride)
	b.mr, err = ep.pd.RegMR(b.bytes, access)
	return err
}

func (ep *Endpoint) postRecv(slot int32) error {
	wr := &ep.receive
	wr.WRID = wrRecv | uint64(slot)
	wr.SGL[0].Addr = ep.rx.addr(slot)
	return ep.qp.PostRecv(wr)
}

// EagerMax returns the largest message in bytes that this end sends eagerly.
func (ep *Endpoint) EagerMax() int { return ep.cfg.EagerMax }

// Engine returns the engine that moves everything.
func (ep *Endpoint) Engine() *progress.Engine { return ep.eng }

// Close takes the endpoint off the engine and frees its buffers. Call Drain
// first to make sure that everything sent has arrived.
func (ep *Endpoint) Close() error {
	ep.Enter()
	defer ep.Leave()
	ep.eng.Remove(ep)
	var errs []error
	if ep.qp != nil {
		ep.qp.Destroy()
	}
	for _, b := range []*buffers{&ep.rx, &ep.tx} {
		if b.mr != nil {
			errs = append(errs, b.mr.Dereg())
		}
		if b.bytes != nil {
			ep.arena.Free(b.at)
		}
		*b = buffers{}
	}
	return errors.Join(errs...)
}
