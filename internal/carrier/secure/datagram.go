package secure

import (
	"cmp"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/addrtable"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Config describes the encryption of a carrier.
type Config struct {
	// Secret is what all endpoints that can talk to each other share, and no others
	// knows: 32 random bytes, drawn anew for each job. It never leaves the process. There
	// is no default.
	Secret []byte
	// Instance must differ from that of any other carrier that has the same secret, ever.
	// Default random; a simulation sets it, to repeat itself.
	Instance Instance
	// KeyBits is the logarithm of how many datagrams are sent with a key before the next
	// one takes over. All must agree. Default 28: as many blocks of AES as TLS 1.3 allows
	// (RFC 8446, section 5.5), where datagrams have the size of Ethernet's frames.
	KeyBits uint
	// Linger is how long Streams.Close lets closed streams send what they still have.
	// Default 1 s.
	Linger mono.Duration
}

const defaultKeyBits = 28

// strangersTried is for how many datagrams of one batch from senders that are not known yet a
// key is derived in vain: a few microseconds each, which any host can cause.
const strangersTried = 4

// nearBit is the bit of a path that may be set though there are few paths: see package near.
const nearBit = 30

// Datagram is a carrier of datagrams that are encrypted and authenticated over one that
// is not.
//
// Each destination has a counter of its own, which lives as long as the carrier, so no
// nonce comes twice under a key; so have all multicast groups together.
//
// Owner: engine, like the carrier's.
type Datagram struct {
	fabric.Datagram
	arena *mem.Arena
	caps  fabric.DatagramCaps // of the carrier below
	keys  schedule
	bits  uint
	self  fabric.Remote
	own   header // of what is sent, but for the counter

	ways   [2][]*outgoing // by fabric.Path: its bit nearBit, and the rest
	byAddr map[fabric.Remote]*outgoing
	tx     *fabric.Batch
	lost   uint64 // datagrams that found no frame for their last bytes

	senders addrtable.Table[incoming] // by address
	last    *incoming                 // that a datagram came from last
	tried   int                       // in the present batch: see strangersTried
	stats   fabric.DatagramStats      // RxForged, RxReplayed

	nonce [nonceLen]byte // the first four bytes stay 0
	flat  []byte         // a datagram in one piece
}

// outgoing is what one destination is sent with.
type outgoing struct {
	hdr   header // with the next counter
	to    fabric.Remote
	until uint64 // first counter that aead is not for
	aead  cipher.AEAD
}

// incoming is one sender, in one life, as far as it sends to us alone or to a group.
type incoming struct {
	hdr        header // but for the counter
	from       fabric.Remote
	generation uint64      // of the newest key that was used
	newest     cipher.AEAD // of generation
	before     cipher.AEAD // of the one before, or nil
	next       cipher.AEAD // of the one that follows, or nil as long as it was not claimed
	window     window
}

var (
	_ fabric.Datagram    = (*Datagram)(nil)
	_ fabric.Multicaster = (*Datagram)(nil)
)

// New wraps inner, which it owns from now on when err is nil.
func New(inner fabric.Datagram, c Config) (*Datagram, error) {
	keys, err := newSchedule(c.Secret)
	if err != nil {
		return nil, err
	}
	if c.Instance == (Instance{}) {
		_, _ = rand.Read(c.Instance[:]) // never fails
	}
	c.KeyBits = cmp.Or(c.KeyBits, defaultKeyBits)
	caps := inner.Caps()
	return &Datagram{
		Datagram: inner, arena: inner.Arena(), caps: caps, keys: keys, bits: c.KeyBits,
		self:   fabric.RemoteOf(inner.Local()),
		own:    header{who: binary.BigEndian.Uint32(c.Instance[:]), instead: binary.BigEndian.Uint64(c.Instance[4:])},
		byAddr: map[fabric.Remote]*outgoing{},
		tx:     fabric.NewBatch(64, fabric.MaxBufs),
		flat:   make([]byte, caps.MaxPayload),
	}, nil
}

// Caps returns those of the carrier below, less what encryption takes. The headroom has
// room for the tag as well as for the header, so that a datagram that fills its frames can
// move up.
func (d *Datagram) Caps() fabric.DatagramCaps {
	c := d.caps
	c.Carrier += "+aes-gcm"
	below := d.Datagram.Caps()
	c.Detail, c.Aggregates = below.Detail, below.Aggregates // which may change
	c.MaxPayload -= Overhead
	c.Headroom += Overhead
	c.Overhead += Overhead
	if c.MaxBufs > 1 {
		c.MaxBufs-- // the tag may need one
	}
	return c
}

// Stats returns those of the carrier below, with what was refused here.
func (d *Datagram) Stats() fabric.DatagramStats {
	s := d.Datagram.Stats()
	s.TxErrors += d.lost
	s.RxForged += d.stats.RxForged
	s.RxReplayed += d.stats.RxReplayed
	return s
}

// Resolve makes a destination known.
func (d *Datagram) Resolve(to netip.AddrPort) (fabric.Path, error) {
	path, err := d.Datagram.Resolve(to)
	if err == nil {
		d.leads(path, fabric.RemoteOf(to), to.Addr().IsMulticast())
	}
	return path, err
}

// Back returns the path back to where a datagram came from.
func (d *Datagram) Back(from fabric.Remote, station fabric.Station) (fabric.Path, bool) {
	path, ok := d.Datagram.Back(from, station)
	if ok {
		d.leads(path, from, false)
	}
	return path, ok
}

// leads notes where a path leads. What was sent there before, by whatever path, counts on.
// The peer that is answered has sent something authentic, so this is no place for strangers to
// fill memory.
func (d *Datagram) leads(path fabric.Path, to fabric.Remote, group bool) {
	ways := &d.ways[path>>nearBit]
	path &^= 1 << nearBit
	for int(path) >= len(*ways) {
		*ways = append(*ways, nil)
	}
	own := d.own
	if group {
		own.flags, to = flagGroup, fabric.Remote{}
	}
	o := d.byAddr[to]
	if o == nil {
		o = &outgoing{hdr: own, to: to}
		d.byAddr[to] = o
	}
	(*ways)[path] = o
}

// way returns where a path leads.
func (d *Datagram) way(path fabric.Path) *outgoing {
	return d.ways[path>>nearBit][path&^(1<<nearBit)]
}

// Join asks the carrier below.
func (d *Datagram) Join(group netip.Addr) error {
	m, ok := d.Datagram.(fabric.Multicaster)
	if !ok {
		return fmt.Errorf("secure: %s: %w", d.caps.Carrier, fabric.ErrNoMulticast)
	}
	return m.Join(group)
}

// Leave asks the carrier below.
func (d *Datagram) Leave(group netip.Addr) error {
	m, ok := d.Datagram.(fabric.Multicaster)
	if !ok {
		return fmt.Errorf("secure: %s: %w", d.caps.Carrier, fabric.ErrNoMulticast)
	}
	return m.Leave(group)
}
