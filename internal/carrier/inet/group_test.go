package inet_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/conform"
)

var joined = netip.MustParseAddr("239.129.2.3")

func TestGroupMAC(t *testing.T) {
	for addr, want := range map[string]string{ // RFC 1112, section 6.4
		"224.0.0.1":       "01:00:5e:00:00:01",
		"224.128.0.1":     "01:00:5e:00:00:01",
		"239.129.2.3":     "01:00:5e:01:02:03",
		"239.255.255.255": "01:00:5e:7f:ff:ff",
	} {
		if got := inet.GroupMAC(netip.MustParseAddr(addr)); got.String() != want || !got.Group() {
			t.Errorf("%s: %v, want %s", addr, got, want)
		}
	}
}

// toGroup makes a frame for B one for a group.
func toGroup(mac inet.MAC, group netip.Addr) func(f []byte) []byte {
	return func(f []byte) []byte {
		copy(f, mac[:])
		to := group.As4()
		copy(f[30:], to[:])
		f[40], f[41] = 0, 0 // no UDP checksum
		fixIP(f)
		return f
	}
}

func TestRecv_groups(t *testing.T) {
	twin := netip.MustParseAddr("238.1.2.3") // has the same Ethernet address
	mac := inet.GroupMAC(joined)
	for _, c := range []struct {
		name   string
		change func(f []byte) []byte
		want   string
	}{
		{"joined", toGroup(mac, joined), "hello"},
		{"not joined", toGroup(inet.GroupMAC(netip.MustParseAddr("239.9.9.9")), netip.MustParseAddr("239.9.9.9")), ""},
		{"not joined, same Ethernet address", toGroup(mac, twin), ""},
		{"Ethernet address of another group", toGroup(inet.GroupMAC(netip.MustParseAddr("239.1.2.4")), joined), ""},
		{"Ethernet address of a host", toGroup(macB, joined), ""},
		{"broadcast", toGroup(inet.MAC{255, 255, 255, 255, 255, 255}, joined), ""},
		{"own address to the group's Ethernet address", toGroup(mac, addrB.Addr()), ""},
		{"another port", func(f []byte) []byte { f[37]++; return toGroup(mac, joined)(f) }, ""},
		{"from ourselves", func(f []byte) []byte {
			self := addrB.Addr().As4()
			copy(f[26:], self[:])
			return toGroup(mac, joined)(f)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, conform.PipeConfig{})
			if err := p.b.Join(joined); err != nil {
				t.Fatal(err)
			}
			p.portB.Inject(c.change(datagram([]byte("hello"))))
			p.portB.Inject(datagram([]byte("unicast")))
			got := strings.Join(p.receive(), ",")
			if got != strings.TrimPrefix(c.want+",unicast", ",") {
				t.Errorf("received %q, want %q and the unicast one", got, c.want)
			}
			if s := p.b.Stats(); c.want == "" && s.RxMalformed != 1 {
				t.Errorf("malformed %d, want 1", s.RxMalformed)
			}
			if free := p.portB.Pool().Free(); free != p.portB.Pool().Cap() {
				t.Errorf("%d frames are missing", p.portB.Pool().Cap()-free)
			}
		})
	}
}

func TestSend_toGroup(t *testing.T) {
	p := newPair(t, conform.PipeConfig{})
	to, err := p.a.Resolve(netip.AddrPortFrom(joined, addrB.Port()))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := p.a.Frame()
	f += inet.Headroom
	p.a.Send(&fabric.Batch{
		Pkts:  []fabric.Packet{{Bufs: 1, Len: 5, To: to}},
		Descs: []fabric.Desc{{Addr: f, Len: 5}},
	})
	p.a.Flush()
	var rx [fabric.MaxBufs]fabric.Desc
	if n := p.portB.Recv(rx[:]); n != 1 {
		t.Fatalf("%d buffers arrive", n)
	}
	defer p.portB.Pool().Put(rx[0].Addr)
	h := p.portB.Arena().At(rx[0].Addr, int(rx[0].Len))
	ip := inet.IPv4(h[inet.EthernetLen:])
	if got := inet.Ethernet(h).Dst(); got != inet.GroupMAC(joined) {
		t.Errorf("Ethernet destination %v", got)
	}
	if got := netip.AddrFrom4(ip.Dst()); got != joined || ip.TTL() != 1 {
		t.Errorf("IP destination %v with TTL %d, want %v with 1", got, ip.TTL(), joined)
	}
}

// clerk is a network that is told of memberships, or refuses them.
type clerk struct {
	*network
	joined map[netip.Addr]int
	refuse error
}

func (c *clerk) Join(a netip.Addr) error {
	if c.refuse == nil {
		c.joined[a]++
	}
	return c.refuse
}

func (c *clerk) Leave(a netip.Addr) error {
	c.joined[a]--
	return c.refuse
}

func TestJoin_asksTheResolver(t *testing.T) {
	port, other, err := conform.NewPipe(conform.PipeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c := &clerk{network: newNetwork(), joined: map[netip.Addr]int{}}
	e, err := inet.New(inet.Config{Port: port, Resolver: c, Local: addrA, MAC: macA})
	if err != nil {
		t.Fatal(err)
	}
	c.refuse = errors.New("no more")
	if err := e.Join(joined); !errors.Is(err, c.refuse) {
		t.Errorf("Join: %v", err)
	}
	if err := e.Leave(joined); !errors.Is(err, inet.ErrMembership) {
		t.Errorf("Leave after a refused Join: %v", err)
	}
	c.refuse = nil
	others := netip.MustParseAddr("224.0.0.251")
	for _, a := range []netip.Addr{joined, others} {
		if err := e.Join(a); err != nil || c.joined[a] != 1 {
			t.Errorf("Join %v: %v, asked for %d times", a, err, c.joined[a])
		}
	}
	if err := e.Join(joined); !errors.Is(err, inet.ErrMembership) || c.joined[joined] != 1 {
		t.Errorf("second Join: %v, asked for %d times", err, c.joined[joined])
	}
	if err := e.Leave(joined); err != nil || c.joined[joined] != 0 || c.joined[others] != 1 {
		t.Errorf("Leave: %v, %v", err, c.joined)
	}
	if err := e.Close(); err != nil || c.joined[others] != 0 {
		t.Errorf("Close: %v, %v", err, c.joined)
	}
}
