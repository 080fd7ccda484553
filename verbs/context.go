package verbs

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/llp"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// Errors of control calls and of posting. They are wrapped with what to do.
var (
	ErrQueueFull = errors.New("verbs: queue is full: poll the completion queue, then try again")
	ErrClosed    = errors.New("verbs: object is closed")
	ErrInvalid   = errors.New("verbs: invalid argument")
)

// Config describes a context. Datagram and Engine are required.
type Config struct {
	Datagram fabric.Datagram  // the carrier; the context owns and closes it
	Engine   *progress.Engine // what moves it
	Key      uint64           // job key; peers with another one are not heard
	Epoch    uint32           // random life number of this endpoint, not 0
	NoCRC    bool             // both ends must agree; default: CRC32C over every datagram
	Dgram    dgram.Config     // default: see dgram.Config
	// ZeroBased makes the addresses of memory regions count from 0
	// (IBV_ACCESS_ZERO_BASED), so that what is on the wire does not depend on
	// where memory lies: the simulator needs that to repeat itself. So it
	// makes the keys of memory follow from Key and Epoch. Default: virtual
	// addresses, and keys that nobody can foresee.
	ZeroBased bool
	Closers   []io.Closer // closed after the carrier, in order: what it stands on
}

// Context is an open device: one UDP endpoint, one engine
// (ibv_open_device(3)).
type Context struct {
	cfg      Config
	rd       *llp.RD
	keys     keyTable
	events   asyncEvents
	channels []*CompChannel
	qp       *QP // the reliable datagram queue pair, if any
	closed   bool
	ahs      []*AH // by llp.Peer.Index
}

// New opens a context on a carrier.
func New(c Config) (*Context, error) {
	rd, err := llp.NewRD(c.Datagram, llp.Config{Key: c.Key, Epoch: c.Epoch, NoCRC: c.NoCRC, Dgram: c.Dgram})
	if err != nil {
		return nil, err
	}
	ctx := &Context{cfg: c, rd: rd}
	ctx.keys.init(c.keySeed())
	return ctx, nil
}

// Engine returns the engine that everything of this context moves in.
func (c *Context) Engine() *progress.Engine { return c.cfg.Engine }

// Arena returns the arena of the carrier. Memory from it can be sent without
// being registered page by page.
func (c *Context) Arena() *mem.Arena { return c.cfg.Datagram.Arena() }

// Addr returns the address that peers create address handles for.
func (c *Context) Addr() netip.AddrPort { return c.cfg.Datagram.Local() }

// Attr says what the context can do.
func (c *Context) Attr() DeviceAttr {
	return DeviceAttr{
		Carrier:   c.cfg.Datagram.Caps().Carrier,
		Addr:      c.Addr().String(),
		MaxSeg:    c.rd.MaxULPDU() - ddp.UntaggedLen,
		MaxSGE:    MaxSGE,
		MaxInline: MaxInline,
		MaxMsg:    maxMsg,
	}
}

// Stats returns what the endpoint did and dropped.
func (c *Context) Stats() (llp.Stats, fabric.DatagramStats) {
	return c.rd.Stats, c.cfg.Datagram.Stats()
}

// Close closes the queue pair and the carrier.
func (c *Context) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	if c.qp != nil {
		c.qp.Destroy()
	}
	err := errors.Join(c.rd.Close(), c.closeDescriptors())
	for _, x := range c.cfg.Closers {
		err = errors.Join(err, x.Close())
	}
	return err
}

// PD is a protection domain: regions, queue pairs and address handles of one
// domain work together, those of different ones do not.
type PD struct{ ctx *Context }

// AllocPD makes a protection domain.
func (c *Context) AllocPD() (*PD, error) {
	if c.closed {
		return nil, ErrClosed
	}
	return &PD{ctx: c}, nil
}

// AH is an address handle: a peer as seen by a queue pair. There is one per
// remote address.
type AH struct {
	UserData uint64 // the user's: verbs does not look at it

	pd   *PD
	peer *llp.Peer
	conn conn
}

// Remote returns the address of the peer.
func (a *AH) Remote() netip.AddrPort { return a.peer.Remote.AddrPort() }

// Lost reports whether the peer is considered lost.
func (a *AH) Lost() bool { return a.conn.dead }

// CreateAH returns the handle of the peer at remote. It may ask the kernel for
// the way there and wait; asking again is cheap and returns the same handle.
func (p *PD) CreateAH(remote netip.AddrPort) (*AH, error) {
	if p.ctx.closed {
		return nil, ErrClosed
	}
	peer, err := p.ctx.rd.Connect(remote)
	if err != nil {
		return nil, fmt.Errorf("verbs: no way to %v: %w", remote, err)
	}
	return p.ctx.handle(p, peer), nil
}

// handle returns the address handle of a peer, which is made when the peer is
// first met, be it by us or by its first datagram.
func (c *Context) handle(pd *PD, peer *llp.Peer) *AH {
	for len(c.ahs) <= peer.Index {
		c.ahs = append(c.ahs, nil)
	}
	if c.ahs[peer.Index] == nil {
		ah := &AH{pd: pd, peer: peer}
		ah.conn.init(c.rd.Config().Dgram.Window)
		c.ahs[peer.Index] = ah
	}
	return c.ahs[peer.Index]
}
