package netstack

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// wirePort is one end of a cable in memory: what it flushes its peer receives.
type wirePort struct {
	arena *mem.Arena
	pool  *mem.Pool
	mtu   int
	depth int
	tx    []fabric.Desc
	rx    []fabric.Desc
	peer  *wirePort
	lose  func(frame []byte) bool // of what it sends; nil: nothing
	stats fabric.PortStats
}

func (p *wirePort) Caps() fabric.PortCaps {
	return fabric.PortCaps{Driver: "wire", MTU: p.mtu, MaxBufs: fabric.MaxBufs, TxDepth: p.depth, RxDepth: p.depth}
}
func (p *wirePort) Arena() *mem.Arena       { return p.arena }
func (p *wirePort) Pool() *mem.Pool         { return p.pool }
func (p *wirePort) TxFree() int             { return p.depth - len(p.tx) }
func (p *wirePort) FD() int                 { return -1 }
func (p *wirePort) Stats() fabric.PortStats { return p.stats }
func (p *wirePort) Close() error            { return nil }

func (p *wirePort) Send(src []fabric.Desc) int {
	p.tx = append(p.tx, src...)
	return len(src)
}

func (p *wirePort) Recv(dst []fabric.Desc) int {
	n := min(len(p.rx), len(dst))
	for n > 0 && p.rx[n-1].Flags&fabric.More != 0 {
		n--
	}
	copy(dst, p.rx[:n])
	p.rx = p.rx[:copy(p.rx, p.rx[n:])]
	return n
}

// Flush carries the frames over to the other arena.
func (p *wirePort) Flush() {
	first := 0
	for i, d := range p.tx {
		if d.Flags&fabric.More == 0 {
			p.carry(p.tx[first : i+1])
			first = i + 1
		}
	}
	p.tx = p.tx[:0]
}

func (p *wirePort) carry(frame []fabric.Desc) {
	q := p.peer
	var flat []byte
	for _, d := range frame {
		flat = append(flat, p.arena.At(d.Addr, int(d.Len))...)
		p.pool.Put(d.Addr)
	}
	p.stats.TxFrames++
	if len(q.rx) > q.depth || p.lose != nil && p.lose(flat) {
		q.stats.RxDropped++
		return
	}
	for len(flat) > 0 {
		at, ok := q.pool.Get()
		if !ok {
			panic("wire: pool is empty")
		}
		n := copy(q.arena.At(at, mem.FrameSize-256), flat)
		d := fabric.Desc{Addr: at, Len: uint32(n)}
		if flat = flat[n:]; len(flat) > 0 {
			d.Flags = fabric.More
		}
		q.rx = append(q.rx, d)
	}
}

// pair is two stacks on a cable.
type pair struct {
	t     testing.TB
	a, b  *Stack
	clock mono.Clock
	ports [2]*wirePort
	ready []fabric.StreamID
}

var (
	addrA  = netip.MustParseAddr("10.0.0.1")
	addrB  = netip.MustParseAddr("10.0.0.2")
	addrA6 = netip.MustParseAddr("fd00::1")
	addrB6 = netip.MustParseAddr("fd00::2")
	macA   = inet.MAC{2, 0, 0, 0, 0, 1}
	macB   = inet.MAC{2, 0, 0, 0, 0, 2}
)

// over6 puts a pair on IPv6.
func over6(c *Config) {
	if c.Local = addrA6; c.MAC == macB {
		c.Local = addrB6
	}
}

func newPair(t testing.TB, mtu int, change func(*Config)) *pair {
	t.Helper()
	return newPairOf(t, mtu, 4096, change)
}

// newPairOf makes a pair with so many frames for each end.
func newPairOf(t testing.TB, mtu, frames int, change func(*Config)) *pair {
	t.Helper()
	p := &pair{t: t, clock: mono.Real{}}
	for i := range p.ports {
		arena := mem.Over(make([]byte, (frames+1)*mem.FrameSize))
		pool, err := mem.NewPool(arena, frames, true)
		if err != nil {
			t.Fatal(err)
		}
		p.ports[i] = &wirePort{arena: arena, pool: pool, mtu: mtu, depth: 2048}
	}
	p.ports[0].peer, p.ports[1].peer = p.ports[1], p.ports[0]
	ways := inet.Fixed{
		addrA: {MAC: macA, Source: addrA, MTU: mtu}, addrB: {MAC: macB, Source: addrB, MTU: mtu},
		addrA6: {MAC: macA, Source: addrA6, MTU: mtu}, addrB6: {MAC: macB, Source: addrB6, MTU: mtu},
	}
	open := func(i int, addr netip.Addr, mac inet.MAC) *Stack {
		c := Config{Port: p.ports[i], Resolver: ways, Local: addr, MAC: mac}
		if change != nil {
			change(&c)
		}
		if c.Clock != nil {
			p.clock = c.Clock
		}
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p.a, p.b = open(0, addrA, macA), open(1, addrB, macB)
	t.Cleanup(p.close)
	return p
}

// close closes both ends and looks for frames that were lost on the way.
func (p *pair) close() {
	for i, s := range []*Stack{p.a, p.b} {
		if err := s.Close(); err != nil {
			p.t.Error(err)
		}
		port := p.ports[i]
		for _, d := range port.rx {
			port.pool.Put(d.Addr)
		}
		port.rx = nil
	}
	for i, port := range p.ports {
		for _, d := range port.rx {
			port.pool.Put(d.Addr)
		}
		port.rx = nil
		if port.pool.Free() != port.pool.Cap() {
			p.t.Errorf("end %d: %d of %d frames came back", i, port.pool.Free(), port.pool.Cap())
		}
	}
}

// until lets both ends work until done.
func (p *pair) until(done func() bool) {
	for !done() {
		for _, s := range []*Stack{p.a, p.b} {
			p.ready = s.Poll(p.clock.Now(), p.ready[:0])
			s.Flush()
		}
	}
}

// connect opens a stream from a to b.
func (p *pair) connect() (a, b *Stream) {
	p.t.Helper()
	l, err := p.b.Listen(netip.AddrPort{}, 16)
	if err != nil {
		p.t.Fatal(err)
	}
	defer l.Close()
	s, err := p.a.Dial(l.Local(), netip.AddrPort{})
	if err != nil {
		p.t.Fatal(err)
	}
	a = s.(*Stream)
	p.until(func() bool {
		if b == nil {
			if s := l.Accept(); s != nil {
				b = s.(*Stream)
			}
		}
		return b != nil && a.State() != fabric.StreamConnecting
	})
	if a.State() != fabric.StreamOpen || b.State() != fabric.StreamOpen {
		p.t.Fatalf("states %d and %d: %v", a.State(), b.State(), a.Err())
	}
	return a, b
}
