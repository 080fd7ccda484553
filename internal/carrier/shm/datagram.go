package shm

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Datagram is a [fabric.Datagram] for this host.
//
// Owner: engine.
type Datagram struct {
	listener
	arena *mem.Arena
	bytes []byte    // of the arena
	pool  *mem.Pool // frames to send
	local netip.AddrPort
	hosts map[netip.Addr]bool // addresses of this host
	caps  fabric.DatagramCaps
	stats fabric.DatagramStats

	// Receiving. Rings lie side by side in the arena, in slots of 1<<shift bytes.
	base    mem.Addr
	span    int // bytes of all rings
	shift   int
	slots   []*inbound // by slot: the peer that has or had it
	in      []*inbound // those to poll
	turn    int        // which to begin with
	seen    uint32     // listener.changed when in was made
	leaving bool       // some of in are gone
	armed   bool       // peers were told to ring the bell

	// Sending.
	paths  []*path
	byAddr map[netip.AddrPort]fabric.Path
	dirty  []*outbound // whose doorbells Flush looks at

	// What the goroutine of the listener shares with the engine.
	mu      sync.Mutex
	senders []*inbound // in the order in which they came
	free    []int      // slots
	dropped uint64     // by senders that have left
	closed  bool
}

var _ fabric.Datagram = (*Datagram)(nil)

// Open opens an endpoint in the network namespace of the calling thread, where
// it stays for all users. The caller closes it.
func Open(c Config) (*Datagram, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Datagram{arena: c.Arena, bytes: c.Arena.Bytes(), local: c.Local, byAddr: map[netip.AddrPort]fabric.Path{}}
	if e.hosts, err = hostAddrs(); err != nil {
		return nil, err
	}
	if !e.here(c.Local.Addr()) {
		return nil, fmt.Errorf("shm: %s: %w; ip addr shows those there are", c.Local.Addr(), ErrNotLocal)
	}
	if err := e.open(&c); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// here reports whether an address is of this host.
func (e *Datagram) here(a netip.Addr) bool { return a.IsLoopback() || e.hosts[a] }

func (e *Datagram) open(c *Config) error {
	var err error
	if err = e.openBell(); err != nil {
		return err
	}
	if e.pool, err = mem.NewPool(c.Arena, c.Frames, c.Track); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	payload := c.payload()
	e.caps = fabric.DatagramCaps{
		Carrier: "shm", MaxPayload: payload, MaxBufs: fabric.MaxBufs, RxDepth: depth(c.Ring, payload),
	}
	sock, err := e.bind()
	if err != nil {
		return err
	}
	if err := e.openRings(c, sock); err != nil {
		unix.Close(sock)
		return err
	}
	return nil
}

// bind takes the endpoint's name, and chooses one if need be.
func (e *Datagram) bind() (int, error) {
	if e.local.Port() != 0 {
		sock, err := rendezvous(name(e.local))
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("shm: %w: %s belongs to another endpoint (grep xwarp-shm /proc/net/unix shows it); choose another port: %w", ErrPortInUse, e.local, err)
		}
		return sock, err
	}
	for range 1000 {
		// From the range that is for this (RFC 6335, section 6), and even, as
		// the kernel's choices for sockets that others send to.
		to := netip.AddrPortFrom(e.local.Addr(), uint16(49152+2*rand.IntN(8192)))
		sock, err := rendezvous(name(to))
		if !errors.Is(err, unix.EADDRINUSE) {
			e.local = to
			return sock, err
		}
	}
	return -1, fmt.Errorf("shm: %w: none from 49152 on is free", ErrPortInUse)
}

// openRings takes the part of the arena for rings, and begins to let senders
// in. The listener owns sock when the error is nil.
func (e *Datagram) openRings(c *Config, sock int) error {
	align := c.Ring
	if c.Arena.HugePages() {
		align = max(align, 2<<20) // no smaller piece of a huge page can be replaced
	}
	size := (c.Peers*c.Ring + align - 1) / align * align
	base, err := c.Arena.Reserve(size, align)
	if err != nil {
		return fmt.Errorf("shm: %d rings of %d bytes: %w", c.Peers, c.Ring, err)
	}
	if err := mapOver(c.Arena.At(base, size), -1, 0); err != nil {
		c.Arena.Free(base)
		return err
	}
	e.base, e.span, e.shift, e.slots = base, size, bits.TrailingZeros(uint(c.Ring)), make([]*inbound, c.Peers)
	e.in = make([]*inbound, 0, c.Peers)
	for slot := c.Peers - 1; slot >= 0; slot-- {
		e.free = append(e.free, slot)
	}
	e.listener.open(sock, e.admit)
	return nil
}

// Caps says what the endpoint can do.
func (e *Datagram) Caps() fabric.DatagramCaps { return e.caps }

// Arena returns the arena that the endpoint was given.
func (e *Datagram) Arena() *mem.Arena { return e.arena }

// Local returns the address and port that peers send to.
func (e *Datagram) Local() netip.AddrPort { return e.local }

// Frame takes a frame to build a datagram in, from its start on.
func (e *Datagram) Frame() (mem.Addr, bool) { return e.pool.Get() }

// Unframe gives back a frame that was not sent.
func (e *Datagram) Unframe(a mem.Addr) { e.pool.Put(a) }

// Stats counts what the endpoint did, what peers could not put into their
// rings for want of room (RxDropped), and nonsense from neighbours
// (RxMalformed).
func (e *Datagram) Stats() fabric.DatagramStats {
	st := e.stats
	st.RxMalformed += e.refused.Load()
	e.mu.Lock()
	defer e.mu.Unlock()
	st.RxDropped += e.dropped
	for _, in := range e.senders {
		st.RxDropped += in.dropped.Load()
	}
	return st
}

// Close closes the endpoint. Peers notice. What was received and not read is
// lost, and buffers that were received are invalid from now on.
func (e *Datagram) Close() error {
	var errs []error
	for _, p := range e.paths {
		if p.out != nil {
			errs = append(errs, e.part(p))
		}
		if p.asked >= 0 {
			unix.Close(p.asked)
			p.asked = -1
		}
	}
	e.paths, e.dirty = nil, nil
	if e.file != nil {
		errs = append(errs, e.disconnect(), e.restore())
		e.file, e.in = nil, nil
	}
	if e.pool != nil {
		e.pool.Release(e.arena)
		e.pool = nil
	}
	return errors.Join(append(errs, e.bell.Close())...)
}
