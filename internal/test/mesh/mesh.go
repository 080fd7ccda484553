// Package mesh joins any number of datagram carriers in memory, for tests: a
// carrier takes a few hundred bytes, so that ten thousand of them fit one
// process, and the test decides what becomes of each datagram.
//
// A datagram arrives when its sender flushes, unless [Net.Wire] decides
// otherwise. A mesh is for one goroutine; it knows no time.
package mesh

import (
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Config describes a mesh. Its zero value carries datagrams of 8972 bytes.
type Config struct {
	MaxPayload int // of a datagram in bytes; default 8972, which is MTU 9000
	Frames     int // in the pool that all carriers share; default 1024
	Depth      int // datagrams that may wait at one carrier; default 256
	Arena      int // bytes of the arena beside the pool, for users; default 1 MiB
}

// Headroom is what a carrier leaves free in front of a datagram, as one over
// Ethernet does.
const Headroom = 64

// Net is a mesh. All carriers share its arena and its pool of frames.
type Net struct {
	// Wire, when not nil, is called with each datagram that is sent and
	// decides what becomes of it: it calls Deliver now, later, twice, or never.
	// The payload is the mesh's again when Wire returns.
	Wire func(from, to fabric.Remote, payload []byte)
	// Queue, when not nil, is the queue of the receiver's network card that a datagram comes in on,
	// plus 1, and Home the one that receivers like best: see fabric.Packet.
	Queue func(from, to fabric.Remote, source uint8) uint8
	Home  int
	// Lost counts datagrams that found nobody, no room or no frame.
	Lost int

	config Config
	arena  *mem.Arena
	pool   *mem.Pool
	ends   map[fabric.Remote]*End
	flat   []byte // the datagram on the wire
	source uint8  // of it
}

// New makes a mesh without carriers.
func New(c Config) (*Net, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.MaxPayload, 8972)
	def(&c.Frames, 1024)
	def(&c.Depth, 256)
	def(&c.Arena, 1<<20)
	arena := mem.Over(make([]byte, (c.Frames+1)*mem.FrameSize+c.Arena))
	pool, err := mem.NewPool(arena, c.Frames, true)
	if err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	return &Net{config: c, arena: arena, pool: pool, ends: map[fabric.Remote]*End{}}, nil
}

// End is one carrier.
type End struct {
	Doubts int // calls of Doubt

	net     *Net
	local   netip.AddrPort
	self    fabric.Remote
	most    int             // payload in bytes
	paths   []fabric.Remote // by fabric.Path
	byAddr  map[fabric.Remote]fabric.Path
	strange map[fabric.Path]bool // paths of Back that may be dropped
	rx      fabric.Batch         // has arrived
	rxPkt   int                  // and was not handed out
	tx      fabric.Batch
	stats   fabric.DatagramStats
}

var _ fabric.Datagram = (*End)(nil)

// Open adds a carrier. most is the largest payload in bytes that it sends;
// 0 means the mesh's. It takes larger ones all the same.
func (n *Net) Open(local netip.AddrPort, most int) *End {
	if most == 0 {
		most = n.config.MaxPayload
	}
	e := &End{net: n, local: local, self: fabric.RemoteOf(local), most: most, byAddr: map[fabric.Remote]fabric.Path{}, strange: map[fabric.Path]bool{}}
	n.ends[e.self] = e
	return e
}

// Deliver makes a datagram arrive, whoever sent it.
func (n *Net) Deliver(from, to fabric.Remote, payload []byte) {
	e := n.ends[to]
	if e == nil || len(e.rx.Pkts)-e.rxPkt >= n.config.Depth {
		n.Lost++
		return
	}
	first := len(e.rx.Descs)
	for rest := payload; ; {
		f, ok := n.pool.Get()
		if !ok {
			for _, d := range e.rx.Descs[first:] {
				n.pool.Put(d.Addr)
			}
			e.rx.Descs = e.rx.Descs[:first]
			n.Lost++
			return
		}
		got := copy(n.arena.At(f, mem.FrameSize), rest)
		rest = rest[got:]
		d := fabric.Desc{Addr: f, Len: uint32(got)}
		if len(rest) > 0 {
			d.Flags = fabric.More
		}
		e.rx.Descs = append(e.rx.Descs, d)
		if len(rest) == 0 {
			break
		}
	}
	queue := uint8(0)
	if n.Queue != nil {
		queue = n.Queue(from, to, n.source)
	}
	e.rx.Pkts = append(e.rx.Pkts, fabric.Packet{
		First: int32(first), Bufs: int32(len(e.rx.Descs) - first), Len: int32(len(payload)), From: from, Queue: queue,
	})
}

// Free returns how many frames nobody has.
func (n *Net) Free() int { return n.pool.Free() }

// Waiting returns how many datagrams have arrived and were not received.
func (e *End) Waiting() int { return len(e.rx.Pkts) - e.rxPkt }

// Caps implements fabric.Datagram.
func (e *End) Caps() fabric.DatagramCaps {
	return fabric.DatagramCaps{
		Carrier: "mesh", MaxPayload: e.most, MaxBufs: fabric.MaxBufs, Headroom: Headroom, RxDepth: e.net.config.Depth, Home: e.net.Home,
	}
}

// Arena implements fabric.Datagram.
func (e *End) Arena() *mem.Arena { return e.net.arena }

// Local implements fabric.Datagram.
func (e *End) Local() netip.AddrPort { return e.local }

// Resolve implements fabric.Datagram. Every address has a path, be somebody
// there or not.
func (e *End) Resolve(to netip.AddrPort) (fabric.Path, error) {
	r := fabric.RemoteOf(to)
	p, ok := e.byAddr[r]
	if !ok {
		p = fabric.Path(len(e.paths))
		e.paths = append(e.paths, r)
		e.byAddr[r] = p
	}
	delete(e.strange, p)
	return p, nil
}

// Back implements fabric.Datagram.
func (e *End) Back(from fabric.Remote, _ fabric.Station) (fabric.Path, bool) {
	if p, ok := e.byAddr[from]; ok {
		return p, true
	}
	p, _ := e.Resolve(from.AddrPort())
	e.strange[p] = true
	return p, true
}

// Drop implements fabric.Datagram. The number is not used again, for what was sent may
// not be flushed yet.
func (e *End) Drop(p fabric.Path) {
	if e.strange[p] {
		delete(e.strange, p)
		delete(e.byAddr, e.paths[p])
	}
}

// Paths returns how many destinations are known, and how many of them are strangers'.
func (e *End) Paths() (all, strange int) { return len(e.byAddr), len(e.strange) }

// Trust implements fabric.Datagram.
func (e *End) Trust(p fabric.Path, _ fabric.Station) { delete(e.strange, p) }

// Doubt implements fabric.Datagram: there is one way.
func (e *End) Doubt(fabric.Path) { e.Doubts++ }

// Recv implements fabric.Datagram.
func (e *End) Recv(b *fabric.Batch) int {
	b.Reset()
	for ; e.rxPkt < len(e.rx.Pkts) && len(b.Pkts) < cap(b.Pkts); e.rxPkt++ {
		p := e.rx.Pkts[e.rxPkt]
		if len(b.Descs)+int(p.Bufs) > cap(b.Descs) {
			break
		}
		descs := e.rx.Descs[p.First:][:p.Bufs]
		p.First = int32(len(b.Descs))
		b.Descs = append(b.Descs, descs...)
		b.Pkts = append(b.Pkts, p)
	}
	if e.rxPkt == len(e.rx.Pkts) {
		e.rx.Reset()
		e.rxPkt = 0
	}
	e.stats.RxPackets += uint64(len(b.Pkts))
	return len(b.Pkts)
}

// Release implements fabric.Datagram.
func (e *End) Release(b *fabric.Batch) {
	for _, d := range b.Descs {
		e.net.pool.Put(d.Addr)
	}
	b.Reset()
}

// Frame implements fabric.Datagram.
func (e *End) Frame() (mem.Addr, bool) { return e.net.pool.Get() }

// Unframe implements fabric.Datagram.
func (e *End) Unframe(a mem.Addr) { e.net.pool.Put(a) }

// TxRoom implements fabric.Datagram.
func (e *End) TxRoom() int { return e.net.config.Depth - len(e.tx.Pkts) }

// Send implements fabric.Datagram.
func (e *End) Send(b *fabric.Batch) {
	for _, p := range b.Pkts {
		if int(p.Len) > e.most {
			panic(fmt.Sprintf("mesh: datagram of %d bytes; at most %d", p.Len, e.most))
		}
		descs := b.Descs[p.First:][:p.Bufs]
		p.First = int32(len(e.tx.Descs))
		e.tx.Descs = append(e.tx.Descs, descs...)
		e.tx.Pkts = append(e.tx.Pkts, p)
	}
}

// Flush implements fabric.Datagram.
func (e *End) Flush() {
	for _, p := range e.tx.Pkts {
		flat := e.net.flat[:0]
		for _, d := range e.tx.Descs[p.First:][:p.Bufs] {
			flat = append(flat, e.net.arena.At(d.Addr, int(d.Len))...)
			e.net.pool.Put(d.Addr)
		}
		e.net.flat, e.net.source = flat, p.Source
		if len(flat) != int(p.Len) {
			panic(fmt.Sprintf("mesh: datagram of %d bytes in buffers of %d", p.Len, len(flat)))
		}
		e.stats.TxPackets++
		if wire := e.net.Wire; wire != nil {
			wire(e.self, e.paths[p.To], flat)
		} else {
			e.net.Deliver(e.self, e.paths[p.To], flat)
		}
	}
	e.tx.Reset()
}

// FD implements fabric.Datagram: there is nothing to poll.
func (e *End) FD() int { return -1 }

// Stats implements fabric.Datagram.
func (e *End) Stats() fabric.DatagramStats { return e.stats }

// Close implements fabric.Datagram.
func (e *End) Close() error {
	for _, d := range e.tx.Descs {
		e.net.pool.Put(d.Addr)
	}
	for _, p := range e.rx.Pkts[e.rxPkt:] {
		for _, d := range e.rx.Descs[p.First:][:p.Bufs] {
			e.net.pool.Put(d.Addr)
		}
	}
	delete(e.net.ends, e.self)
	*e = End{net: e.net, local: e.local, self: e.self, most: e.most}
	return nil
}
