package p2p

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/reliable"
	"github.com/xwarp/xwarp/verbs"
)

// Config describes an endpoint. Rank and Size are needed; zero values of the
// rest mean the defaults.
type Config struct {
	Rank, Size int
	Transport  Transport
	Shared     bool // reach ranks on the same host through shared memory
	NoPull     bool // but do without process_vm_readv, as if it were forbidden
	Host       int  // number of the host
	EagerMax   int  // largest message in bytes that is sent without asking; default 16 KiB, -1 means 0
	// EagerIdle is the longest message in bytes that is sent without asking to a
	// peer that little is under way to, in pieces of EagerMax; default 64 KiB, but
	// EagerMax where that is given; at least EagerMax.
	EagerIdle int
	// EagerNear is the longest message in bytes that is copied through the shared
	// memory of a host; what is longer its receiver copies from where it lies.
	// Default: 16 KiB, but EagerMax where that is given. -1 means 0.
	EagerNear int
	// Rendezvous is how longer messages cross the network.
	Rendezvous Rendezvous
	// Calibrate sets the limit of each channel by what copies take, unless EagerMax or
	// EagerNear is given; and up to which length messages go in pieces to an idle
	// peer, unless EagerMax or EagerIdle is given. Else both are as said there.
	Calibrate bool
	Receives  int // receive buffers of EagerMax bytes; default 256
	Sends     int // send buffers of EagerMax bytes; default 64
	// UnexpectedMax is how many bytes of eager messages may wait for their
	// receives before their senders have to wait; default 64 MiB.
	UnexpectedMax int
	// Numbers counts messages that are received: see Mark.Number.
	Numbers bool
	// Threads asks for an endpoint that several goroutines use at the same time.
	// Endpoint.Threads tells whether it is one: in the simulator it is not.
	Threads bool
	// Key is the job key, which RC and Hybrid check when peers connect.
	Key uint64
	// PromoteMessages and PromoteBytes are how much Hybrid sends to a peer in
	// datagrams before it connects, messages of our own included: whichever comes
	// first. Defaults: 1000 and 4 MiB.
	PromoteMessages, PromoteBytes int
	// Connections is to how many peers Hybrid connects at most; default 64.
	Connections int
	// Aborted is asked several times a second. When it returns an error,
	// everything under way fails with it. Default: never.
	Aborted func() error
	// Deaths is asked as often. It returns the ranks that have died while the
	// others go on, without the first known ones. Default: nobody is told.
	Deaths func(known int) []int

	tunesIdle bool // how long messages in pieces are is found out
}

// Limits of eager messages in bytes.
const (
	eagerMost = 1 << 20 // the most that each can be
	eagerMax  = config.DefaultEager
	eagerIdle = config.DefaultEagerIdle
)

func (c *Config) fill() error {
	c.fillEager()
	if c.Receives == 0 {
		c.Receives = 256
	}
	if c.Sends == 0 {
		c.Sends = 64
	}
	if c.UnexpectedMax == 0 {
		c.UnexpectedMax = config.DefaultUnexpected
	}
	if c.Size < 1 || c.Size > 1<<24 || c.Rank < 0 || c.Rank >= c.Size {
		return fmt.Errorf("p2p: rank %d of %d is not possible (at most %d ranks)", c.Rank, c.Size, 1<<24)
	}
	if err := c.fillHybrid(); err != nil {
		return err
	}
	if max(c.EagerIdle, c.EagerNear) > eagerMost || c.Receives < 1 || c.Sends < 1 {
		return fmt.Errorf("p2p: eager limit %d, %d receive and %d send buffers: want at most 1 MiB, and at least one of each", c.EagerMax, c.Receives, c.Sends)
	}
	return nil
}

// fillEager fills in the limits of eager messages.
func (c *Config) fillEager() {
	idle, near, least := eagerIdle, eagerMax, max(c.EagerMax, 0)
	c.tunesIdle = c.Calibrate && c.EagerMax == 0 && c.EagerIdle == 0
	c.Calibrate = c.Calibrate && c.EagerMax == 0 && c.EagerNear == 0
	if c.EagerMax != 0 {
		idle, near = least, least
	} else {
		c.EagerMax = eagerMax
	}
	c.EagerMax = max(c.EagerMax, 0)
	c.EagerIdle = max(cmp.Or(c.EagerIdle, idle), c.EagerMax)
	c.EagerNear = max(cmp.Or(c.EagerNear, near), 0)
}

// Stats counts what an endpoint did.
type Stats struct {
	Eager, Rendezvous uint64 // messages sent
	Reads             uint64 // large messages received that were read: see Rendezvous
	Near              uint64 // of the eager ones, those through shared memory
	Unexpected        uint64 // messages that came before their receive
	Queued            uint64 // times that the queue pair had no room
	Malformed         uint64 // messages that our code did not send
	Stale             uint64 // answers to requests that had failed, and messages of lost peers
	Connections       uint64 // that came about
	Promoted          uint64 // peers that Hybrid has gone over to a connection with
	Strangers         uint64 // connections that somebody wanted who is not of this job
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
	ctx   *verbs.Context
	pd    *verbs.PD
	qp    *verbs.QP
	cq    *verbs.CQ
	srq   *verbs.SRQ         // of all queue pairs, with connections
	conn  *connector         // nil without
	rel   *reliable.Endpoint // what makes qp reliable, over UD
	arena *mem.Arena
	peers []peer

	posted     match.Posted[Request]
	unexpected match.Unexpected[message]
	messages   messagePool
	seized     []*message // of those whose memory is lent, what the user has taken and not received
	kept       int        // bytes of eager messages among unexpected
	holding    int        // peers that were told to hold back
	requests   []*Request // by slot
	idle       *Request   // pool
	active     int        // requests whose result the user has not taken
	stuck      peerQueue  // with requests for which there was no room
	posts      int        // work requests posted since the last step of the engine

	batch        batch
	channelBatch channelBatch
	latest       *peer // that something was posted to
	rx, tx       buffers
	txFree       []int32
	wcs          [progress.Budget]verbs.WC
	inline       verbs.SendWR // reused: header in head
	long         verbs.SendWR // reused: from a registered buffer
	write        verbs.SendWR // reused: a Write of rendezvous
	read         verbs.SendWR // reused: a Read of rendezvous
	head         [verbs.MaxInline]byte
	receive      verbs.RecvWR // reused
	maxSeg       int          // bytes that fit one datagram
	inlineMax    int          // longest message that goes inline with its header
	maxWrite     int
	maxRead      int
	idleTop      int // longest message that may go in pieces

	groups   []*group // by context/2
	others   Counts   // of contexts that have none
	losses   []int32  // ranks that are lost, in the order in which we have learned of it
	deaths   int      // how many the launcher has told of
	impaired bool     // a rank is lost, a communicator revoked, or over
	over     error    // why nothing works any more

	closing bool      // nobody's loss matters any more
	abortAt mono.Time // when to ask Config.Aborted next
	wakeAt  mono.Time // when Drain wants to look again
	ended   bool

	numbers  map[match.Envelope]uint64 // of messages received; or nil
	lock     *progressLock             // nil: one goroutine at a time
	channels *shm.Channels             // or nil
	pullCost *shm.PullCost             // nil: not measured yet; zero: that has failed
	pulls    requestQueue              // receives that copy from a neighbour
	spins    int                       // see spin
	hits     int                       // see spin
	maxSpins int                       // the most that spins are

	waits   *waits
	hook    ProgressHook
	polling bool // inside Poll: the step that is under way lets things go out
}

// peer is what an endpoint knows of another rank.
type peer struct {
	qp       *verbs.QP      // that leads to it; nil for the own rank, and while there is no way
	ah       *verbs.AH      // on a queue pair of datagrams
	rel      *reliable.Peer // over UD
	self     bool           // the own rank
	channel  *shm.Channel   // where to send to it; nil: through the network
	near     *shm.Channel   // where it may send from; nil: it is on another host
	eagerMax int32          // longest message to it that goes at once; -1 while it wants none
	eagerTop int32          // smaller one of both ends' limits
	eagerFar int32          // the same through the network
	eagerCap int32          // what buffers or the channel take at most
	idle     *idleTuner     // decides about messages in pieces; or nil
	tune     *tuner         // sets eagerMax of the channel; nil: it is fixed
	buffered int32          // send buffers under way to it
	asked    int32          // sends to it that began with an RTS and have not ended
	reading  int32          // Reads of its memory under way
	held     bool           // it was told to hold back: see unexpected.go
	watched  bool           // Hybrid counts what is sent to it
	used     bool           // something was sent to it or received from it
	bursts   burstDetector  // whether nonblocking sends to it come in bursts
	answered bool           // something came from it since the last message in pieces went to it
	saidBye  mono.Time      // when its bye came, or Never
	err      error          // why it is lost, or nil
	disowned bool           // it was told so

	// Requests that wait for room, or for a way there: each peer has a line of its
	// own, so that one that is slow, or not connected yet, holds up nobody else.
	pending requestQueue
	readers requestQueue // receives that have more to read
	split   split        // message that is coming in pieces
	next    *peer        // in Endpoint.stuck
	stuck   bool         // is in there

	link            *link // nil until there is, or shall be, a connection
	messages, bytes int   // sent in datagrams while it is watched
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
		eng: ctx.Engine(), ctx: ctx, arena: ctx.Arena(),
		peers:  make([]peer, cfg.Size),
		maxSeg: attr.MaxSeg, inlineMax: verbs.MaxInline - headerLen,
		maxWrite: min(attr.MaxMsg, 1<<30), maxRead: readPiece,
		abortAt: mono.Never, wakeAt: mono.Never,
	}
	if cfg.Aborted != nil || cfg.Deaths != nil {
		ep.abortAt = ep.eng.Clock().Now().Add(abortInterval)
	}
	if ep.idleTop = cfg.EagerIdle; cfg.tunesIdle {
		ep.idleTop = idleMost
	}
	ep.waits = &waits{ep: ep}
	ep.eng.SetSleepHook(ep.waits)
	ep.inline = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline}
	ep.long = verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled, NumSGE: 1}
	ep.write = verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, NumSGE: 1}
	ep.read = verbs.SendWR{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, NumSGE: 1}
	if err := ep.create(ctx); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	if cfg.Numbers {
		ep.numbers = map[match.Envelope]uint64{}
	}
	if cfg.Threads {
		ep.lock = newProgressLock(ep)
	}
	ep.eng.Add(ep)
	if err := ep.openChannels(); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	return ep, nil
}

func (ep *Endpoint) create(ctx *verbs.Context) (err error) {
	if ep.pd, err = ctx.AllocPD(); err != nil {
		return err
	}
	if ep.cfg.Transport == UD {
		return ep.createUD(ctx)
	}
	if err = ep.createQueues(ctx); err != nil {
		return err
	}
	if err = ep.carve(&ep.rx, ep.cfg.Receives, ep.bufferSize(), "receive", verbs.LocalWrite); err != nil {
		return err
	}
	if err = ep.carveSends(); err != nil {
		return err
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

// createQueues makes the queues, and the queue pair of datagrams.
func (ep *Endpoint) createQueues(ctx *verbs.Context) (err error) {
	depth := verbs.QPCap{MaxSendWR: 512, MaxRecvWR: ep.cfg.Receives}
	completions := depth.MaxSendWR + depth.MaxRecvWR
	t := ep.cfg.Transport
	if t.connects() {
		completions += linkSends * min(len(ep.peers)-1, sharedLinks)
	}
	if ep.cq, err = ctx.CreateCQ(verbs.CQInit{Depth: completions}); err != nil {
		return err
	}
	if t.connects() {
		if ep.srq, err = ep.pd.CreateSRQ(verbs.SRQInit{MaxWR: ep.cfg.Receives}); err != nil {
			return err
		}
		if ep.conn, err = openConnector(ep, ctx); err != nil {
			return fmt.Errorf("transport %v: %w", t, err)
		}
	}
	if t == RC {
		ep.maxSeg = math.MaxInt // a stream takes a message as a whole
		return nil
	}
	ep.qp, err = ep.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: ep.cq, RecvCQ: ep.cq, SRQ: ep.srq, Cap: depth, RecvHandler: ep})
	return err
}

// bufferSize returns the length of eager buffers in bytes.
func (ep *Endpoint) bufferSize() int { return max(headerLen+ep.cfg.EagerMax, verbs.MaxInline) }

// carveSends makes the send buffers.
func (ep *Endpoint) carveSends() error {
	if err := ep.carve(&ep.tx, ep.cfg.Sends, ep.bufferSize(), "send", 0); err != nil {
		return err
	}
	for i := range int32(ep.cfg.Sends) {
		ep.txFree = append(ep.txFree, i)
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
	if ep.srq != nil {
		return ep.srq.PostRecv(wr)
	}
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
	errs := []error{ep.closeChannels()}
	if ep.conn != nil {
		errs = append(errs, ep.conn.close())
		ep.conn = nil
	}
	switch {
	case ep.rel != nil:
		errs = append(errs, ep.rel.Close())
	case ep.qp != nil:
		ep.qp.Destroy()
	}
	if ep.srq != nil {
		errs = append(errs, ep.srq.Destroy())
		ep.srq = nil
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
