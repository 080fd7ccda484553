package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/xdp"
)

// A network with strangers on it: two hosts on a bridge, each with a queue pair of RD,
// and a third port from which somebody lies to them.

const strangePort = 4791

// lan is a bridge with hosts; the last of them is the stranger, who forges.
type lan struct {
	*rig
	bed    *hosts
	forger *testbed.Host
}

// newLAN opens a queue pair on each of two hosts, over AF_XDP or kernel UDP.
func newLAN(t *testing.T, xdpCarrier, ipv6 bool) *lan {
	t.Helper()
	tb := hosttest.New(t, testbed.Config{Hosts: 3, Switch: testbed.Bridge, IPv6: ipv6})
	w := &lan{bed: &hosts{tb}, forger: tb.Hosts[2]}
	arenas := newArenas(t)
	open := func(i int) (d fabric.Datagram, under []io.Closer, err error) {
		h := tb.Hosts[i]
		local := netip.AddrPortFrom(h.Addr, strangePort)
		err = h.Do(func() error {
			if !xdpCarrier {
				d, err = kudp.Open(kudp.Config{Arena: arenas[i], Local: local, Track: true})
				return err
			}
			d, under, err = openStrange(h, arenas[i], local)
			return err
		})
		if errors.Is(err, xdp.ErrUnsupported) {
			testenv.NoXDP(t, err)
		}
		return d, under, err
	}
	c := &VerbsConfig{Net: func(*testing.T, int) Net { return Net{Step: yield, On: w.bed.on, Open: open} }}
	w.rig = newRig(t, c, &verbsCase{}, verbs.RD)
	return w
}

func openStrange(h *testbed.Host, a *mem.Arena, local netip.AddrPort) (fabric.Datagram, []io.Closer, error) {
	table, err := route.Open(route.Config{Link: h.Dev})
	if err != nil {
		return nil, nil, err
	}
	port, err := xdp.Open(xdp.Config{
		Device: h.Dev, Arena: a, Mode: bpf.Generic, Steer: bpf.Config{PortBase: strangePort},
		RxDepth: 1024, TxDepth: 1024, Frames: 4096, Track: true,
	})
	if err != nil {
		return nil, nil, errors.Join(err, table.Close())
	}
	e, err := inet.New(inet.Config{Port: port, Resolver: table, Local: local, MAC: table.Link().MAC})
	return e, []io.Closer{table}, err
}

// talk exchanges n messages each way while lie is told before each.
func (w *lan) talk(n int, lie func(i int)) {
	w.t.Helper()
	for i := range n {
		lie(i)
		w.exchange(w.hosts[0], w.hosts[1])
	}
	for i, h := range w.hosts {
		if st, _ := h.ctx.Stats(); st.PeersLost != 0 {
			w.t.Errorf("host %d has lost its peer: %+v", i, st)
		}
	}
}

func (w *lan) resent() (n uint64) {
	for _, h := range w.hosts {
		st, _ := h.ctx.Stats()
		n += st.TxResent
	}
	return n
}

// onLANs runs a test over AF_XDP and kernel UDP, and each IP.
func onLANs(t *testing.T, ips []bool, test func(t *testing.T, xdpCarrier, ipv6 bool)) {
	for _, carrier := range []string{"xdp", "udp"} {
		for _, ipv6 := range ips {
			t.Run(fmt.Sprintf("%s,IPv6=%v", carrier, ipv6), func(t *testing.T) { test(t, carrier == "xdp", ipv6) })
		}
	}
}

// TestStrangers_icmp: somebody says that the path takes small packets only. A job that
// runs goes on, through changes of routes, and another one can begin.
func TestStrangers_icmp(t *testing.T) {
	onLANs(t, only(false, true), func(t *testing.T, xdpCarrier, ipv6 bool) {
		w := newLAN(t, xdpCarrier, ipv6)
		w.meetAll()
		a, b := w.bed.Hosts[0], w.bed.Hosts[1]
		mtu, other := 600, "10.99.0.0/16"
		if ipv6 {
			mtu, other = 1280, "fd99::/64"
		}
		lie := func(i int) {
			from, to := netip.AddrPortFrom(a.Addr, strangePort), netip.AddrPortFrom(b.Addr, strangePort)
			w.must(hosttest.ForgeTooBig(w.forger, from, to, mtu))
			w.must(hosttest.ForgeTooBig(w.forger, to, from, mtu))
			w.must(a.Do(func() error { // routes change now and then
				link, err := netlink.LinkByName(a.Dev)
				if err != nil {
					return err
				}
				_, dst, err := net.ParseCIDR(other)
				if err != nil {
					return err
				}
				r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst}
				if i%2 == 0 {
					return netlink.RouteAdd(r)
				}
				return netlink.RouteDel(r)
			}))
		}
		w.talk(10, lie)
		w.large(1 << 20)
		for _, h := range w.hosts {
			h.close()
		}
		for _, h := range w.hosts {
			h.open()
		}
		w.meetAll()
		w.talk(2, lie)
		w.large(1 << 20)
	})
}

// large sends a message of n bytes from one to the other.
func (w *lan) large(n int) {
	w.t.Helper()
	a, b := w.hosts[0], w.hosts[1]
	src, dst := a.region(n, 0).fill(n), b.region(n, verbs.LocalWrite)
	id := b.recv(a, dst.SGE(0, n))
	wr := a.wr(verbs.OpSend, b, src.SGE(0, n))
	a.post(wr)
	b.received(id, verbs.OpRecv, a)
	a.sent(&wr, verbs.Success)
	dst.is(0, src.b)
	w.must(src.Dereg())
	w.must(dst.Dereg())
}

// TestStrangers_neighbours: somebody says to each that the other has another Ethernet
// address, over and over. Messages go on: what the peer's own frames show counts. Of
// kernel UDP nothing is asked here: there it is the kernel that sends.
func TestStrangers_neighbours(t *testing.T) {
	for _, ipv6 := range only(false, true) {
		t.Run(fmt.Sprint("IPv6=", ipv6), func(t *testing.T) {
			w := newLAN(t, true, ipv6)
			lies := w.neighbourLies()
			w.meetAll()
			w.exchange(w.hosts[0], w.hosts[1])
			w.talk(30, lies)
		})
	}
}

// TestStrangers_neighboursOfStreams: likewise for RC on TCP in user space.
func TestStrangers_neighboursOfStreams(t *testing.T) {
	for _, ipv6 := range only(false, true) {
		t.Run(fmt.Sprint("IPv6=", ipv6), func(t *testing.T) {
			tb := hosttest.New(t, testbed.Config{Hosts: 3, Switch: testbed.Bridge, IPv6: ipv6})
			w := &lan{bed: &hosts{tb}, forger: tb.Hosts[2]}
			c := &VerbsConfig{Net: carriersOn(t, w.bed, userTCP(bpf.Generic, openOurs))}
			w.rig = newRig(t, c, &verbsCase{}, verbs.RC)
			for _, h := range tb.Hosts[:2] {
				w.must(hosttest.Gullible(h))
			}
			w.meetAll()
			w.talk(10, w.neighbourLies())
			w.large(1 << 20)
		})
	}
}

// lieMAC is nobody's.
var lieMAC = [6]byte{2, 6, 6, 6, 6, 6}

// neighbourLies returns a function that tells each of the two a wrong address of the
// other, six times.
func (w *lan) neighbourLies() func(int) {
	return func(int) {
		for range 6 {
			w.must(hosttest.ForgeNeighbour(w.forger, w.bed.Hosts[0].Addr, lieMAC[:]))
			w.must(hosttest.ForgeNeighbour(w.forger, w.bed.Hosts[1].Addr, lieMAC[:]))
		}
	}
}

// TestStrangers_neighboursBefore: the lies come before the job, and the kernel believes
// them. The true address is asked for, and found.
func TestStrangers_neighboursBefore(t *testing.T) {
	for _, ipv6 := range only(false, true) {
		t.Run(fmt.Sprint("IPv6=", ipv6), func(t *testing.T) {
			w := newLAN(t, true, ipv6)
			lies := w.neighbourLies()
			for i, h := range w.bed.Hosts[:2] {
				w.must(hosttest.Gullible(h))
				for mac := h.MAC; mac[1] != lieMAC[1]; { // until the kernel believes it
					lies(0)
					w.must(h.Do(func() (err error) {
						mac, err = knowNeighbour(w.bed.Hosts[1-i].Addr)
						return err
					}))
				}
			}
			w.meetAll()
			w.talk(2, func(int) {})
		})
	}
}

// knowNeighbour makes the kernel know somebody, by a datagram to nobody, and returns
// which Ethernet address it takes for theirs.
func knowNeighbour(a netip.Addr) (net.HardwareAddr, error) {
	for {
		fd, err := unix.Socket(map[bool]int{true: unix.AF_INET, false: unix.AF_INET6}[a.Is4()], unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if a.Is4() {
			err = unix.Sendto(fd, nil, 0, &unix.SockaddrInet4{Port: 9, Addr: a.As4()})
		} else {
			err = unix.Sendto(fd, nil, 0, &unix.SockaddrInet6{Port: 9, Addr: a.As16()})
		}
		unix.Close(fd)
		if err != nil {
			return nil, err
		}
		list, err := netlink.NeighList(0, netlink.FAMILY_ALL)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a && n.State&(unix.NUD_REACHABLE|unix.NUD_STALE|unix.NUD_DELAY) != 0 {
				return n.HardwareAddr, nil
			}
		}
	}
}

// TestStrangers_hellos: somebody who knows the key says Hello from many addresses of the
// subnet where nobody is, and from others. Nobody waits for an answer there, what is kept
// of it is bounded, and messages go on.
func TestStrangers_hellos(t *testing.T) {
	onLANs(t, []bool{false}, func(t *testing.T, xdpCarrier, ipv6 bool) { // strangeHello is of IPv4
		w := newLAN(t, xdpCarrier, ipv6)
		w.meetAll()
		w.exchange(w.hosts[0], w.hosts[1])
		n := 0
		w.talk(100, func(int) {
			frames := make([][]byte, 300)
			for i := range frames {
				n++
				frames[i] = strangeHello(w.forger.MAC, w.bed.Hosts[0], n)
			}
			w.must(hosttest.SendFrames(w.forger, frames...))
		})
		st, _ := w.hosts[0].ctx.Stats()
		if st.RxDatagrams < 5000 { // some may find no room
			t.Errorf("only %d of %d Hellos were heard: %+v", st.RxDatagrams, n, st)
		}
		if kept := st.RxDatagrams - st.PeersDropped; kept > 4096+2000 { // those of the job are counted as well
			t.Errorf("%d of %d strangers are kept", kept, st.RxDatagrams)
		}
	})
}

// strangeHello is the frame of a first Hello to h that says it is from address number n.
func strangeHello(mac []byte, h *testbed.Host, n int) []byte {
	const length = dgram.HeaderLen + dgram.HelloLen
	b := make([]byte, inet.HeaderLen+length)
	inet.PutEthernet(b, inet.MAC(h.MAC), inet.MAC(mac), inet.EtherIPv4)
	inet.PutIPv4(b[inet.EthernetLen:], inet.IPv4Fields{
		TotalLen: inet.IPv4Len + inet.UDPLen + length, TTL: 64, Protocol: inet.ProtoUDP,
		Src: [4]byte{10, 87, byte(n >> 8 % 64 * (n % 2)), byte(10 + n%240)}, Dst: h.Addr.As4(),
	})
	inet.PutUDP(b[inet.EthernetLen+inet.IPv4Len:], uint16(1024+n/2), strangePort, inet.UDPLen+length)
	p := b[inet.HeaderLen:]
	(&dgram.Header{Type: dgram.TypeHello, Key: 0x5eed, Flags: dgram.FlagCRC, SrcEpoch: uint32(n + 1)}).Put(p)
	binary.BigEndian.PutUint16(p[dgram.HeaderLen:], 8972)
	binary.BigEndian.PutUint16(p[dgram.HeaderLen+2:], length)
	dgram.Seal(p, dgram.CRC(0, p[dgram.CRCLen:]))
	return b
}

// TestCard_cutsWrongly: a card loses all that it is given in one piece to cut, as qemu's
// igb does. Messages arrive, and after a while nothing is given to it like that.
func TestCard_cutsWrongly(t *testing.T) {
	w := newLAN(t, false, false)
	w.must(w.bed.Hosts[0].Do(func() error { return loseSegmented(t, w.bed.Hosts[0].Dev) }))
	w.meetAll()
	for range 4 {
		w.large(1 << 20)
	}
	before := w.resent()
	for range 32 {
		w.large(1 << 20)
	}
	if before == 0 {
		t.Error("nothing was lost: the test shows nothing")
	}
	// There are 117 datagrams to a MiB, and hosts that stand still send some again.
	if n := w.resent() - before; n > 32*117/2 {
		t.Errorf("of the last 32 MiB %d segments were sent again", n)
	}
	if st, _ := w.hosts[0].ctx.Stats(); st.PeersLost != 0 {
		t.Error("the peer was lost")
	}
}

// loseSegmented makes a device drop what the kernel, or the card, has yet to cut.
func loseSegmented(t *testing.T, dev string) error {
	const gsoSegs, shot = 164, 2 // in struct __sk_buff; TC_ACT_SHOT
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, gsoSegs, asm.Word),
			asm.Mov.Imm(asm.R0, 0),
			asm.JLE.Imm(asm.R2, 1, "out"),
			asm.Mov.Imm(asm.R0, shot),
			asm.Return().WithSymbol("out"),
		},
	})
	if err != nil {
		return err
	}
	testenv.Closing(t, prog)
	link, err := netlink.LinkByName(dev)
	if err != nil {
		return err
	}
	attrs := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	if err := netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "clsact"}); err != nil {
		return err
	}
	return netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: attrs.LinkIndex, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          prog.FD(), Name: "lose", DirectAction: true,
	})
}
