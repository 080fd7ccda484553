package secure

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/mesh"
)

// rig is two ends, and what passes between them.
type rig struct {
	t    *testing.T
	net  *mesh.Net
	a, b *end
	wire []captured // since the last take
	held bool       // what is sent is captured, and not delivered
}

// captured is a datagram on the wire.
type captured struct {
	from, to fabric.Remote
	bytes    []byte
}

// end is one of the two.
type end struct {
	*Datagram
	to fabric.Path // the other one
	rx *fabric.Batch
}

var (
	addrA = netip.MustParseAddrPort("10.0.0.1:4791")
	addrB = netip.MustParseAddrPort("10.0.0.2:4792")
)

func counting() []byte {
	secret := make([]byte, SecretLen)
	for i := range secret {
		secret[i] = byte(i)
	}
	return secret
}

func newRig(t *testing.T, c Config) *rig {
	t.Helper()
	net, err := mesh.New(mesh.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Secret == nil {
		c.Secret = counting()
	}
	r := &rig{t: t, net: net}
	net.Wire = func(from, to fabric.Remote, payload []byte) {
		r.wire = append(r.wire, captured{from, to, append([]byte(nil), payload...)})
		if !r.held {
			net.Deliver(from, to, payload)
		}
	}
	other := c
	other.Instance = Instance{} // random
	r.a, r.b = r.open(addrA, c), r.open(addrB, other)
	r.a.to, r.b.to = r.path(r.a, addrB), r.path(r.b, addrA)
	return r
}

func (r *rig) open(at netip.AddrPort, c Config) *end {
	r.t.Helper()
	d, err := New(r.net.Open(at, 0), c)
	if err != nil {
		r.t.Fatal(err)
	}
	return &end{Datagram: d, rx: fabric.NewBatch(64, 64*fabric.MaxBufs)}
}

func (r *rig) path(e *end, to netip.AddrPort) fabric.Path {
	r.t.Helper()
	p, err := e.Resolve(to)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// send sends a payload, in as few frames as it takes.
func (r *rig) send(e *end, payload string) {
	r.t.Helper()
	b := fabric.NewBatch(1, fabric.MaxBufs)
	p := fabric.Packet{Len: int32(len(payload)), To: e.to}
	room := mem.FrameSize - e.Caps().Headroom
	for at := mem.Addr(e.Caps().Headroom); p.Bufs == 0 || payload != ""; at, room = 0, mem.FrameSize {
		f, ok := e.Frame()
		if !ok {
			r.t.Fatal("no frame")
		}
		n := copy(e.arena.At(f+at, room), payload)
		payload = payload[n:]
		b.Descs = append(b.Descs, fabric.Desc{Addr: f + at, Len: uint32(n), Flags: fabric.More})
		p.Bufs++
	}
	b.Descs[p.Bufs-1].Flags = 0
	b.Pkts = append(b.Pkts, p)
	e.Send(b)
	e.Flush()
}

// take returns what was on the wire, and forgets it.
func (r *rig) take() []captured {
	all := r.wire
	r.wire = nil
	return all
}

// inject makes a datagram arrive.
func (r *rig) inject(c captured) { r.net.Deliver(c.from, c.to, c.bytes) }

// received returns what has arrived at an end.
func (r *rig) received(e *end) (all []string) {
	for {
		n := e.Recv(e.rx)
		for i := range n {
			p, s := &e.rx.Pkts[i], ""
			for _, d := range e.rx.Descs[p.First : p.First+p.Bufs] {
				s += string(e.arena.At(d.Addr, int(d.Len)))
			}
			if len(s) != int(p.Len) {
				r.t.Fatalf("a datagram of %d bytes has buffers of %d", p.Len, len(s))
			}
			all = append(all, s)
		}
		if n > 0 {
			e.Release(e.rx)
		} else if e.Datagram.Datagram.(*mesh.End).Waiting() == 0 {
			return all
		}
	}
}
