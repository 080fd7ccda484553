package inet_test

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/conform"
)

// liar is a resolver that believes what it is told, as the kernel does.
type liar struct {
	*network
	followed, doubted []netip.Addr
}

func (l *liar) Follow(a netip.Addr) { l.followed = append(l.followed, a) }

func (l *liar) Doubt(a netip.Addr) netip.Addr {
	l.doubted = append(l.doubted, a)
	return a
}

func (l *liar) tell(a netip.Addr, hop inet.Hop) {
	l.Fixed[a] = hop
	l.generation++
}

func stationOf(m inet.MAC) fabric.Station {
	return fabric.Station(binary.LittleEndian.Uint64(append(m[:], 0, 0)))
}

// out is an endpoint on a port whose frames are looked at.
type out struct {
	*inet.Datagram
	port, other *conform.Pipe
	net         *liar
	t           *testing.T
}

func newOut(t *testing.T, local netip.AddrPort) *out {
	t.Helper()
	o := &out{net: &liar{network: newNetwork()}, t: t}
	var err error
	if o.port, o.other, err = conform.NewPipe(conform.PipeConfig{}); err != nil {
		t.Fatal(err)
	}
	if o.Datagram, err = inet.New(inet.Config{Port: o.port, Resolver: o.net, Local: local, MAC: macA}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// frames flushes and returns copies of the frames that the port has sent.
func (o *out) frames() (all [][]byte) {
	o.Flush()
	descs := make([]fabric.Desc, 64)
	for _, d := range descs[:o.other.Recv(descs)] {
		all = append(all, slices.Clone(o.other.Arena().At(d.Addr, int(d.Len))))
		o.other.Pool().Put(d.Addr)
	}
	return all
}

// goes returns the Ethernet address that a datagram to a path goes to, none when it is
// not sent.
func (o *out) goes(p fabric.Path) inet.MAC {
	o.t.Helper()
	f, ok := o.Frame()
	if !ok {
		o.t.Fatal("no frame")
	}
	b := fabric.NewBatch(1, 1)
	b.Add(fabric.Packet{To: p, Sealed: true}, fabric.Desc{Addr: f + inet.Headroom, Len: 100})
	o.Send(b)
	all := o.frames()
	if len(all) == 0 {
		return inet.MAC{}
	}
	return inet.Ethernet(all[len(all)-1]).Dst()
}

// TestBack_strangers: answers go where the question came from, without asking anybody,
// and nothing is kept.
func TestBack_strangers(t *testing.T) {
	o := newOut(t, addrA)
	first := fabric.Path(-1)
	for i := range 10000 {
		from := fabric.Remote4(0x0a4d0000|uint32(i+100), 9)
		mac := inet.MAC{2, 9, 0, 0, byte(i >> 8), byte(i)}
		p, ok := o.Back(from, stationOf(mac))
		if again, _ := o.Back(from, stationOf(mac)); !ok || again != p {
			t.Fatalf("paths %d and %d, %v", p, again, ok)
		}
		if first < 0 {
			first = p
		}
		if got := o.goes(p); got != mac || p != first {
			t.Fatalf("the answer goes to %v by path %d, want %v by %d", got, p, mac, first)
		}
		o.Drop(p)
	}
	if len(o.net.followed) != 0 {
		t.Errorf("%d strangers are followed", len(o.net.followed))
	}
	for _, bad := range []struct {
		from    string
		station fabric.Station
	}{
		{"10.77.0.9:9", 0}, {"10.77.0.9:9", stationOf(inet.MAC{1, 0, 0, 0, 0, 1})}, {"10.77.0.9:0", stationOf(macB)},
		{"224.0.0.9:9", stationOf(macB)}, {"0.0.0.0:9", stationOf(macB)}, {"[fd00::9]:9", stationOf(macB)},
	} {
		if _, ok := o.Back(fabric.RemoteOf(netip.MustParseAddrPort(bad.from)), bad.station); ok {
			t.Errorf("there is a way to %s at %#x", bad.from, bad.station)
		}
	}
}

// TestBack_known: what strangers say of somebody who was resolved, or is trusted, changes
// nothing, and to resolve whom a stranger has spoken for asks the resolver.
func TestBack_known(t *testing.T) {
	o := newOut(t, addrA)
	lie := inet.MAC{2, 6, 6, 6, 6, 6}
	p, ok := o.Back(fabric.RemoteOf(addrB), stationOf(lie))
	if !ok || o.goes(p) != lie {
		t.Fatal("no path back")
	}
	q, err := o.Resolve(addrB)
	if err != nil || q != p || o.goes(p) != macB {
		t.Errorf("path %d after %d, %v, to %v", q, p, err, o.goes(p))
	}
	o.Drop(p)
	if r, _ := o.Back(fabric.RemoteOf(addrB), stationOf(lie)); r != p || o.goes(p) != macB {
		t.Errorf("path %d after %d, to %v", r, p, o.goes(p))
	}
	far := netip.MustParseAddrPort("10.99.0.1:9")
	if p, _ = o.Back(fabric.RemoteOf(far), stationOf(lie)); len(o.net.followed) != 0 {
		t.Error("a stranger is followed")
	}
	o.Trust(p, stationOf(macB))
	o.net.tell(addrA.Addr(), inet.Hop{}) // of others; there is no word of far yet
	if o.goes(p) != macB || len(o.net.followed) != 1 {
		t.Errorf("who is trusted is sent to %v", o.goes(p))
	}
	router := inet.MAC{2, 0, 0, 0, 0, 77}
	o.net.tell(far.Addr(), inet.Hop{MAC: router, MTU: 1500, Via: netip.MustParseAddr("10.77.0.77")})
	if o.Flush(); o.goes(p) != router {
		t.Errorf("behind a router it is that one's address that counts, not %v", o.goes(p))
	}
}

// TestTrust_forgedNeighbour: what the kernel is told of a neighbour counts less than
// what the neighbour's own frames have shown, for as long as it answers; else both are
// tried, and the neighbour is asked for.
func TestTrust_forgedNeighbour(t *testing.T) {
	o := newOut(t, addrA)
	lie, moved := inet.MAC{2, 6, 6, 6, 6, 6}, inet.MAC{2, 7, 7, 7, 7, 7}
	p, err := o.Resolve(addrB)
	if err != nil {
		t.Fatal(err)
	}
	o.net.tell(addrB.Addr(), inet.Hop{MAC: lie, MTU: 9000})
	if o.Flush(); o.goes(p) != lie {
		t.Errorf("to %v: nobody has shown that the kernel is wrong", o.goes(p))
	}
	o.Trust(p, stationOf(macB))
	o.net.tell(addrB.Addr(), inet.Hop{MAC: moved, MTU: 9000})
	if o.Flush(); o.goes(p) != macB {
		t.Errorf("to %v", o.goes(p))
	}
	for i, want := range []inet.MAC{moved, macB, moved, macB} {
		o.Doubt(p)
		asked := o.frames()
		if got := o.goes(p); got != want || len(asked) != 1 {
			t.Errorf("doubt %d: to %v, want %v; %d requests", i+1, got, want, len(asked))
		}
	}
	o.Doubt(p)
	o.Trust(p, stationOf(moved))
	if o.goes(p) != moved {
		t.Errorf("to %v after it was heard from %v", o.goes(p), moved)
	}
	o.net.tell(addrB.Addr(), inet.Hop{})
	if o.Flush(); o.goes(p) != (inet.MAC{}) {
		t.Error("something was sent without a route")
	}
}

// TestDoubt_asks: the frames that ask for a neighbour are right, byte for byte.
func TestDoubt_asks(t *testing.T) {
	for _, c := range []struct {
		self, who string
		want      []byte
	}{
		{"10.77.0.1:9", "10.77.0.2:9", []byte{
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 10, 8, 6,
			0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 10, 10, 77, 0, 1, 0, 0, 0, 0, 0, 0, 10, 77, 0, 2,
		}},
		{"[fd00::1]:9", "[fd00::a0b:c0d]:9", []byte{
			0x33, 0x33, 0xff, 0x0b, 0x0c, 0x0d, 2, 0, 0, 0, 0, 10, 0x86, 0xdd,
			0x60, 0, 0, 0, 0, 32, 58, 255,
			0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
			0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x0b, 0x0c, 0x0d,
			135, 0, 0x5b, 0x62, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d,
			1, 1, 2, 0, 0, 0, 0, 10,
		}},
	} {
		o := newOut(t, netip.MustParseAddrPort(c.self))
		who := netip.MustParseAddrPort(c.who)
		o.net.tell(who.Addr(), inet.Hop{MAC: macB, MTU: 9000})
		p, err := o.Resolve(who)
		if err != nil {
			t.Fatal(err)
		}
		o.Doubt(p)
		all := o.frames()
		if len(all) != 1 || !slices.Equal(all[0], c.want) {
			t.Errorf("asked with % x, want % x", all, c.want)
		}
	}
}
