package verbs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Errors of control calls and of posting. They are wrapped with what to do.
var (
	ErrQueueFull = errors.New("verbs: queue is full: poll the completion queue, then try again")
	ErrClosed    = errors.New("verbs: object is closed")
	ErrInvalid   = errors.New("verbs: invalid argument")
)

// Config describes a context. Engine is required, and a carrier of at least
// one kind. Programs do not fill it in: device.Open does.
type Config struct {
	Datagram Datagram     // carries RD and UD; default: there are none. The context owns and closes it
	Bulk     Datagram     // a second path for large data: see llp.Config. RD takes it by itself, UD with flag Bulk. Default: none
	Streams  Streams      // carries RC; default: there is none. The context owns and closes it
	Engine   *Engine      // what moves it
	Key      uint64       // job key; peers with another one are not heard
	Epoch    uint32       // random life number of this endpoint, not 0
	NoCRC    bool         // both ends must agree; default: CRC32C over every datagram
	Dgram    dgram.Config // default: see dgram.Config
	// ZeroBased makes the addresses of memory regions count from 0
	// (IBV_ACCESS_ZERO_BASED), so that what is on the wire does not depend on
	// where memory lies: the simulator needs that to repeat itself. So it
	// makes the keys of memory follow from Key and Epoch. Default: virtual
	// addresses, and keys that cannot be foreseen.
	ZeroBased bool
	Closers   []io.Closer // closed after the carrier, in order: what it stands on
	Link      Link        // watches the network device; default: it is not watched
}

// Context is an open device: one UDP endpoint, or a carrier of streams, or
// both; and one engine (ibv_open_device(3)), which polls it: all its
// queue pairs move when the engine steps.
type Context struct {
	cfg      Config
	keys     keyTable
	events   asyncEvents
	channels []*CompChannel
	closed   bool
	until    mono.Time // when the user wants to be woken: see wait
	datagrams
	streams streams
	cm      cmState
	failing atomic.Pointer[failure]
	fatal   error // why nothing goes through the device any more; see Context.Fail
}

// New opens a context on a carrier. Programs call device.Open. It owns the carrier from now
// on when err is nil; the caller closes the context. Its errors wrap ErrInvalid, or are
// those of the carrier.
func New(c Config) (*Context, error) {
	if c.Datagram == nil && c.Streams == nil {
		return nil, fmt.Errorf("%w: a context needs a carrier of datagrams or of streams", ErrInvalid)
	}
	ctx := &Context{cfg: c, until: mono.Never}
	ctx.datagrams = datagrams{ctx: ctx}
	if c.Datagram != nil {
		lc := llp.Config{Key: c.Key, Epoch: c.Epoch, NoCRC: c.NoCRC, Dgram: c.Dgram, Bulk: c.Bulk}
		if !c.ZeroBased {
			_, _ = rand.Read(lc.Seed[:]) // never fails; not the seed of the keys, for these lc are on the wire
		}
		ep, err := llp.New(c.Datagram, lc, c.Engine.Clock().Now())
		if err != nil {
			return nil, err
		}
		ctx.ep = ep
	}
	ctx.keys.init(c.keySeed())
	ctx.streams.deadline, ctx.cm.deadline = mono.Never, mono.Never
	c.Engine.Add(ctx)
	return ctx, nil
}

// Engine returns the engine that everything of this context moves in.
func (c *Context) Engine() *Engine { return c.cfg.Engine }

// Arena returns the arena of the carrier. Memory from it can be sent without
// being registered page by page.
func (c *Context) Arena() *Arena {
	if c.cfg.Datagram == nil {
		return c.cfg.Streams.Arena()
	}
	return c.cfg.Datagram.Arena()
}

// Addr returns the address that peers create address handles for. Without a
// carrier of datagrams it is the one that peers connect to, with port 0.
func (c *Context) Addr() netip.AddrPort {
	if c.ep == nil {
		return netip.AddrPortFrom(c.cfg.Streams.Addr(), 0)
	}
	return c.cfg.Datagram.Local()
}

// Epoch returns Config.Epoch.
func (c *Context) Epoch() uint32 { return c.cfg.Epoch }

// Dgram returns how reliable datagrams were configured.
func (c *Context) Dgram() dgram.Config { return c.cfg.Dgram }

// Limits of a context.
const (
	maxMsg   = 1 << 31
	maxUD    = 64 // unreliable queue pairs
	maxRC    = 1 << 16
	maxReads = 16 // Reads and atomics outstanding to one peer
)

// Attr says what the context can do (ibv_query_device(3)).
func (c *Context) Attr() DeviceAttr {
	a := DeviceAttr{
		Addr:         c.Addr().String(),
		MaxSGE:       MaxSGE,
		MaxInline:    MaxInline,
		MaxMsg:       maxMsg,
		MaxQPWR:      maxQueue,
		MaxCQE:       maxQueue,
		MaxMR:        keyMax,
		MaxMW:        keyMax,
		MaxSRQWR:     maxQueue,
		MaxQPRdAtom:  maxReads,
		AtomicAtomic: true,
	}
	if c.ep != nil {
		caps := c.cfg.Datagram.Caps()
		a.Carrier, a.CarrierDetail, a.MTU, a.MaxSeg = caps.Carrier, caps.Detail, c.ep.MaxPayload(), c.maxSeg()
		a.MaxQP, a.MaxMcastGrp = 1+maxUD, maxGroups
		a.Bulk, a.Aggregates = c.ep.HasBulk(), caps.Aggregates
	}
	if s := c.cfg.Streams; s != nil {
		a.MaxQP += maxRC
		if a.StreamCarrier = s.Caps().Carrier; a.Carrier == "" {
			a.Carrier = a.StreamCarrier
		}
	}
	return a
}

// BestSeg is how long a message should be that fits one datagram and is copied, in
// bytes, for the best bandwidth: DeviceAttr.MaxSeg, or a little less.
func (c *Context) BestSeg() int {
	return c.maxSeg() - (c.ep.MaxPayload() - c.ep.Whole(c.ep.MaxPayload()))
}

// Stats returns what the endpoint of datagrams did and dropped, and its carriers.
func (c *Context) Stats() (EndpointStats, DatagramStats) {
	if c.ep == nil {
		return EndpointStats{}, DatagramStats{}
	}
	carried := c.cfg.Datagram.Stats()
	if c.cfg.Bulk != nil {
		carried = carried.Plus(c.cfg.Bulk.Stats())
	}
	return c.ep.Stats, carried
}

// NetworkStats returns the counts of the carriers on each network, if there are several.
func (c *Context) NetworkStats() (on []DatagramStats) {
	multi, ok := c.cfg.Datagram.(fabric.Multipath)
	if !ok {
		return nil
	}
	for i := range multi.Locals() {
		on = append(on, multi.StatsOn(i))
	}
	return on
}

// Losses returns what the carriers of datagrams have lost, and how many connections were
// refused because they are not encrypted with the secret of the job.
func (c *Context) Losses() Losses {
	_, carried := c.Stats()
	l := carried.Losses()
	l.Forged += c.StreamStats().RxForged
	return l
}

// StreamStats returns what the carrier of streams did.
func (c *Context) StreamStats() StreamStats {
	if c.cfg.Streams == nil {
		return StreamStats{}
	}
	return c.cfg.Streams.Stats()
}

// Close flushes and ends the queue pairs, tells the peers, and closes the carrier.
func (c *Context) Close() error {
	if c.closed {
		return nil
	}
	cmErr := c.closeCM()
	if c.rd != nil {
		c.rd.Destroy()
	}
	for _, q := range c.uds {
		if q != nil {
			q.Destroy()
		}
	}
	c.closeStreams()
	c.streams.freeIn(c.Arena())
	c.closed = true
	c.cfg.Engine.Remove(c)
	err := errors.Join(cmErr, c.closeDescriptors())
	if c.ep != nil {
		c.in.drop(c.ep)
		err = errors.Join(c.ep.Close(), err)
	}
	if c.cfg.Streams != nil {
		err = errors.Join(c.cfg.Streams.Close(), err)
	}
	for _, x := range c.cfg.Closers {
		err = errors.Join(err, x.Close())
	}
	return err
}

// PD is a protection domain: regions, queue pairs and address handles of one
// domain work together, those of different ones do not.
type PD struct{ ctx *Context }

// AllocPD makes a protection domain (ibv_alloc_pd(3)). It fails with ErrClosed.
func (c *Context) AllocPD() (*PD, error) {
	if c.closed {
		return nil, ErrClosed
	}
	return &PD{ctx: c}, nil
}

// AH is an address handle: a peer as seen by queue pairs (ibv_create_ah(3)).
// There is one per address as long as the peer lives; when it is lost, or
// restarts, the handle is dead and CreateAH makes a new one.
type AH struct {
	UserData uint64 // the user's: verbs does not look at it

	pd        *PD
	remote    fabric.Remote
	path      fabric.Path
	bulk      fabric.Path // of the second carrier, if bulkKnown
	epoch     uint32      // of the endpoint there, 0: not known
	bulkKnown bool
	peer      *llp.Peer // nil without a reliable queue pair of its domain
	conn      conn
}

// Remote returns the address of the peer.
func (a *AH) Remote() netip.AddrPort { return a.remote.AddrPort() }

// Lost reports whether the peer is considered lost.
func (a *AH) Lost() bool { return a.peer != nil && a.peer.Closed() }

// Doubt tells the carrier that nothing comes back from a peer that should have answered: its
// Ethernet address may be another one, and is asked for again. For users of UD; reliable
// queue pairs find out by themselves. It may be called as often as each time-out.
func (a *AH) Doubt() {
	if a.peer == nil && !a.pd.ctx.closed {
		a.pd.ctx.ep.Doubt(a.path)
	}
}

// CreateAH returns the handle of the peer at remote, which may be a multicast
// group for UD. It may ask the kernel for the way there and wait; asking again
// is cheap and returns the same handle. Its errors wrap ErrClosed, ErrInvalid (the carrier
// has no datagrams), or say why there is no way.
func (p *PD) CreateAH(remote netip.AddrPort) (*AH, error) {
	c := p.ctx
	switch {
	case c.closed:
		return nil, ErrClosed
	case c.ep == nil:
		return nil, fmt.Errorf("%w: %s carries no datagrams: connect queue pairs of type RC through a CMID", ErrInvalid, c.Attr().Carrier)
	}
	to, path, err := c.ep.Resolve(remote)
	if err != nil {
		return nil, fmt.Errorf("verbs: no way to %v: %w", remote, err)
	}
	if c.rd != nil && c.rd.pd == p && !remote.Addr().IsMulticast() {
		return c.handle(p, c.ep.Associate(to, path)), nil
	}
	for _, ah := range c.loose {
		if ah.remote == to && ah.pd == p {
			return ah, nil
		}
	}
	ah := &AH{pd: p, remote: to, path: path}
	ah.conn.init()
	c.loose = append(c.loose, ah)
	return ah, nil
}

// CreateAHFromWC returns the handle of the sender of what a receive completion
// tells of (ibv_create_ah_from_wc(3)). Its errors are those of CreateAH, or ErrInvalid: it
// is not of a receive.
func (p *PD) CreateAHFromWC(wc *WC) (*AH, error) {
	if wc.SrcAddr == (Remote{}) {
		return nil, fmt.Errorf("%w: the completion is not of a receive", ErrInvalid)
	}
	return p.CreateAH(wc.SrcAddr.AddrPort())
}

// Destroy ends the use of a handle (ibv_destroy_ah(3)): what is outstanding is
// flushed, and the peer is told that the association is over. It never fails.
func (a *AH) Destroy() error {
	c := a.pd.ctx
	c.loose = slices.DeleteFunc(c.loose, func(ah *AH) bool { return ah == a })
	if a.peer != nil && !a.Lost() {
		c.rd.fail(a, WRFlushErr)
		c.ep.Flush()
	}
	return nil
}

// SetEpoch tells the Config.Epoch of the endpoint that the handle leads to. UD
// datagrams then name it, so that no other endpoint takes them, and go out without a
// UDP checksum, as those of RD do: the CRC shows that they are whole, and where they are
// for. Whose they are the target has to see by WC.SrcEpoch.
func (a *AH) SetEpoch(epoch uint32) { a.epoch = epoch }
