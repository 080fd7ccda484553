package bpf

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// These tests run the programs in the kernel on packets of their own
// (BPF_PROG_TEST_RUN), without a device.

func load(t testing.TB, c Config) *Program {
	t.Helper()
	testenv.NeedRoot(t)
	p, err := Load(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, p)
	return p
}

// newXSK makes an AF_XDP socket that is ready to be put into an XSKMAP.
func newXSK(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_RX_RING, 64); err != nil {
		t.Fatal(err)
	}
	return fd
}

// XDP verdicts (linux/bpf.h).
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpRedirect = 4
)

const (
	testPort  = 7471
	testSlots = 4
)

// datagram makes a frame with 18 bytes of payload for a port, changed by edit.
func datagram(port uint16, edit ...func(b []byte)) []byte {
	b := make([]byte, 60)
	copy(b, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00")
	ip := b[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(ip[2:], 46)
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], 26)
	for _, e := range edit {
		e(b)
	}
	return b
}

// datagram6 makes a frame with 18 bytes of payload for a port over IPv6, changed by edit.
func datagram6(port uint16, edit ...func(b []byte)) []byte {
	b := make([]byte, 80)
	copy(b, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x86\xdd")
	ip := b[14:]
	ip[0], ip[6], ip[7] = 0x60, unix.IPPROTO_UDP, 64
	binary.BigEndian.PutUint16(ip[4:], 26)
	ip[8], ip[23], ip[24], ip[39] = 0xfd, 1, 0xfd, 2
	udp := ip[40:]
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], 26)
	for _, e := range edit {
		e(b)
	}
	return b
}

func set(at int, bytes ...byte) func([]byte) {
	return func(b []byte) { copy(b[at:], bytes) }
}

func TestSteer_verdicts(t *testing.T) {
	p := load(t, Config{PortBase: testPort, Slots: testSlots, Addr: netip.MustParseAddr("10.0.0.2")})
	for _, slot := range []int{0, 1, testSlots - 1} {
		if err := p.Register(0, slot, newXSK(t)); err != nil {
			t.Fatal(err)
		}
	}
	arp := make([]byte, 42)
	copy(arp[12:], []byte{8, 6})
	for _, test := range []struct {
		name  string
		frame []byte
		want  Counters
	}{
		{"first slot", datagram(testPort), Counters{Steered: 1}},
		{"last slot", datagram(testPort + testSlots - 1), Counters{Steered: 1}},
		{"port before", datagram(testPort - 1), Counters{Passed: 1}},
		{"port after", datagram(testPort + testSlots), Counters{Passed: 1}},
		{"port 0", datagram(0), Counters{Passed: 1}},
		{"slot without socket", datagram(testPort + 2), Counters{NoSocket: 1}},
		{"do not fragment", datagram(testPort, set(20, 0x40, 0)), Counters{Steered: 1}},
		{"first fragment", datagram(testPort, set(20, 0x20, 0)), Counters{Passed: 1}},
		{"last fragment", datagram(testPort, set(20, 0, 1)), Counters{Passed: 1}},
		{"IP options", datagram(testPort, set(14, 0x46)), Counters{Passed: 1}},
		{"IP version 6 in an IPv4 frame", datagram(testPort, set(14, 0x65)), Counters{Passed: 1}},
		{"TCP", datagram(testPort, set(23, unix.IPPROTO_TCP)), Counters{Passed: 1}},
		{"IPv6", datagram(testPort, set(12, 0x86, 0xdd)), Counters{Passed: 1}},
		{"VLAN", datagram(testPort, set(12, 0x81, 0)), Counters{Passed: 1}},
		{"another address", datagram(testPort, set(33, 3)), Counters{Passed: 1}},
		{"first group", datagram(testPort, set(30, 224, 0, 0, 0)), Counters{Steered: 1}},
		{"last group", datagram(testPort, set(30, 239, 255, 255, 255)), Counters{Steered: 1}},
		{"a group, another port", datagram(testPort-1, set(30, 239, 1, 2, 3)), Counters{Passed: 1}},
		{"before the groups", datagram(testPort, set(30, 223, 255, 255, 255)), Counters{Passed: 1}},
		{"behind the groups", datagram(testPort, set(30, 240, 0, 0, 0)), Counters{Passed: 1}},
		{"UDP shorter than its header", datagram(testPort, set(16, 0, 27), set(38, 0, 7)), Counters{Malformed: 1}},
		{"UDP longer than IP", datagram(testPort, set(38, 0, 27)), Counters{Malformed: 1}},
		{"UDP shorter than IP", datagram(testPort, set(38, 0, 25)), Counters{Malformed: 1}},
		{"shortest datagram", datagram(testPort, set(16, 0, 28), set(38, 0, 8))[:42], Counters{Steered: 1}},
		{"one byte less than the headers", datagram(testPort)[:41], Counters{Passed: 1}},
		{"Ethernet header only", datagram(testPort)[:14], Counters{Passed: 1}},
		{"ARP", arp, Counters{Passed: 1}},
	} {
		p.judge(t, test.name, test.frame, test.want)
	}
}

// judge runs a frame through the program, and wants it counted like that.
func (p *Program) judge(t *testing.T, name string, frame []byte, want Counters) {
	t.Helper()
	before := counters(t, p)
	verdict, err := p.objs.Steer.Run(&ebpf.RunOptions{Data: frame})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	wantVerdict := uint32(xdpPass)
	if want.Steered == 1 {
		wantVerdict = xdpRedirect
	}
	if verdict != wantVerdict {
		t.Errorf("%s: verdict %d, want %d", name, verdict, wantVerdict)
	}
	if got := minus(counters(t, p), before); got != want {
		t.Errorf("%s: counted %+v, want %+v", name, got, want)
	}
}

func TestSteer_verdictsIPv6(t *testing.T) {
	c := Config{PortBase: testPort, Slots: testSlots, TCPPorts: 100, Addr: netip.MustParseAddr("fd00::2")}
	p := load(t, c)
	c.Addr = netip.MustParseAddr("10.0.0.2")
	of4 := load(t, c)
	c.Addr = netip.Addr{}
	any := load(t, c)
	for _, q := range []*Program{p, of4, any} {
		for _, slot := range []int{0, 1, testSlots - 1} {
			if err := q.Register(0, slot, newXSK(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	steered, passed, malformed := Counters{Steered: 1}, Counters{Passed: 1}, Counters{Malformed: 1}
	for _, test := range []struct {
		name  string
		frame []byte
		want  Counters
	}{
		{"first slot", datagram6(testPort), steered},
		{"last slot", datagram6(testPort + testSlots - 1), steered},
		{"port before", datagram6(testPort - 1), passed},
		{"port after", datagram6(testPort + testSlots), passed},
		{"slot without socket", datagram6(testPort + 2), Counters{NoSocket: 1}},
		{"a traffic class and a flow label", datagram6(testPort, set(14, 0x6a, 0xbc, 0xde, 0xf0)), steered},
		{"version 4 in an IPv6 frame", datagram6(testPort, set(14, 0x40)), passed},
		{"hop-by-hop options", datagram6(testPort, set(20, 0)), passed},
		{"a fragment", datagram6(testPort, set(20, 44)), passed},
		{"neighbour solicitation", datagram6(testPort, set(20, unix.IPPROTO_ICMPV6)), passed},
		{"another address, first word", datagram6(testPort, set(38, 0xfe)), passed},
		{"another address, last byte", datagram6(testPort, set(53, 3)), passed},
		{"a group", datagram6(testPort, set(38, 0xff, 0x02)), steered},
		{"a group, another port", datagram6(testPort-1, set(38, 0xff, 0x02)), passed},
		{"TCP of slot 0", datagram6(DefaultTCPBase, set(20, unix.IPPROTO_TCP)), steered},
		{"TCP of slot 1", datagram6(DefaultTCPBase+100, set(20, unix.IPPROTO_TCP)), steered},
		{"TCP before", datagram6(DefaultTCPBase-1, set(20, unix.IPPROTO_TCP)), passed},
		{"TCP to a group", datagram6(DefaultTCPBase, set(20, unix.IPPROTO_TCP), set(38, 0xff, 0x02)), passed},
		{"UDP shorter than its header", datagram6(testPort, set(18, 0, 7), set(58, 0, 7)), malformed},
		{"UDP longer than IP", datagram6(testPort, set(58, 0, 27)), malformed},
		{"UDP shorter than IP", datagram6(testPort, set(58, 0, 25)), malformed},
		{"shortest datagram", datagram6(testPort, set(18, 0, 8), set(58, 0, 8))[:62], steered},
		{"one byte less than the headers", datagram6(testPort)[:61], passed},
		{"VLAN", datagram6(testPort, set(12, 0x81, 0)), passed},
		{"IPv4", datagram(testPort), passed},
	} {
		p.judge(t, test.name, test.frame, test.want)
		of4.judge(t, test.name+", to a program of IPv4", test.frame, map[bool]Counters{true: steered, false: passed}[test.name == "IPv4"])
	}
	any.judge(t, "any address", datagram6(testPort, set(53, 3)), steered)
	any.judge(t, "any address of IPv4", datagram(testPort, set(33, 3)), steered)
}

func TestSteer_tcp(t *testing.T) {
	p := load(t, Config{PortBase: testPort, Slots: 3, Addr: netip.MustParseAddr("10.0.0.2"), TCPBase: 61000, TCPPorts: 100})
	for _, slot := range []int{0, 2} {
		if err := p.Register(0, slot, newXSK(t)); err != nil {
			t.Fatal(err)
		}
	}
	segment := func(port uint16, edit ...func([]byte)) []byte {
		return datagram(port, append([]func([]byte){set(23, unix.IPPROTO_TCP), set(38, 0, 0)}, edit...)...)
	}
	for _, test := range []struct {
		name  string
		frame []byte
		want  Counters
	}{
		{"first port", segment(61000), Counters{Steered: 1}},
		{"last port of the slot", segment(61099), Counters{Steered: 1}},
		{"slot without socket", segment(61100), Counters{NoSocket: 1}},
		{"last slot", segment(61299), Counters{Steered: 1}},
		{"port before", segment(60999), Counters{Passed: 1}},
		{"port after", segment(61300), Counters{Passed: 1}},
		{"ssh", segment(22), Counters{Passed: 1}},
		{"port of a datagram", segment(testPort), Counters{Passed: 1}},
		{"datagram to a TCP port", datagram(61000), Counters{Passed: 1}},
		{"datagram", datagram(testPort), Counters{Steered: 1}},
		{"another address", segment(61000, set(33, 3)), Counters{Passed: 1}},
		{"a group", segment(61000, set(30, 239, 1, 2, 3)), Counters{Passed: 1}},
		{"first fragment", segment(61000, set(20, 0x20, 0)), Counters{Passed: 1}},
		{"last fragment", segment(61000, set(20, 0, 1)), Counters{Passed: 1}},
		{"IP options", segment(61000, set(14, 0x46)), Counters{Passed: 1}},
		{"another protocol", segment(61000, set(23, unix.IPPROTO_SCTP)), Counters{Passed: 1}},
	} {
		before := counters(t, p)
		verdict, err := p.objs.Steer.Run(&ebpf.RunOptions{Data: test.frame})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		want := uint32(xdpPass)
		if test.want.Steered == 1 {
			want = xdpRedirect
		}
		if got := minus(counters(t, p), before); verdict != want || got != test.want {
			t.Errorf("%s: verdict %d, want %d; counted %+v, want %+v", test.name, verdict, want, got, test.want)
		}
	}
}

func counters(t testing.TB, p *Program) Counters {
	t.Helper()
	c, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func minus(a, b Counters) Counters {
	return Counters{a.Steered - b.Steered, a.Passed - b.Passed, a.NoSocket - b.NoSocket, a.Lost - b.Lost, a.Malformed - b.Malformed}
}

func TestSteer_anyAddress(t *testing.T) {
	p := load(t, Config{PortBase: testPort})
	if err := p.Register(0, 0, newXSK(t)); err != nil {
		t.Fatal(err)
	}
	for last := range byte(5) {
		verdict, err := p.objs.Steer.Run(&ebpf.RunOptions{Data: datagram(testPort, set(33, last))})
		if err != nil || verdict != xdpRedirect {
			t.Errorf("10.0.0.%d: verdict %d, %v", last, verdict, err)
		}
	}
}

func TestSteer_portsUpToTheLast(t *testing.T) {
	p := load(t, Config{PortBase: 65535})
	if err := p.Register(0, 0, newXSK(t)); err != nil {
		t.Fatal(err)
	}
	for port, want := range map[uint16]uint32{65535: xdpRedirect, 65534: xdpPass, 0: xdpPass} {
		verdict, err := p.objs.Steer.Run(&ebpf.RunOptions{Data: datagram(port)})
		if err != nil || verdict != want {
			t.Errorf("port %d: verdict %d, %v", port, verdict, err)
		}
	}
}

func TestSetLoss(t *testing.T) {
	p := load(t, Config{PortBase: testPort, LossPPM: LossPPMMax})
	if err := p.Register(0, 0, newXSK(t)); err != nil {
		t.Fatal(err)
	}
	const frames = 4000
	for _, test := range []struct{ ppm, min, max int }{
		{0, 0, 0}, {250_000, frames / 5, frames * 3 / 10}, {LossPPMMax, frames - 1, frames},
	} {
		if err := p.SetLoss(test.ppm); err != nil {
			t.Fatal(err)
		}
		before := counters(t, p)
		for range frames {
			if _, err := p.objs.Steer.Run(&ebpf.RunOptions{Data: datagram(testPort)}); err != nil {
				t.Fatal(err)
			}
		}
		got := minus(counters(t, p), before)
		if lost := int(got.Lost); lost < test.min || lost > test.max || got.Steered+got.Lost != frames {
			t.Errorf("%d ppm: %+v of %d", test.ppm, got, frames)
		}
	}
	for _, ppm := range []int{-1, LossPPMMax + 1} {
		if p.SetLoss(ppm) == nil {
			t.Errorf("a loss of %d ppm was taken", ppm)
		}
	}
	verdict, err := p.objs.Steer.Run(&ebpf.RunOptions{Data: datagram(testPort + 1)})
	if err != nil || verdict != xdpPass {
		t.Errorf("the kernel's traffic gets verdict %d, %v under loss", verdict, err)
	}
}

func TestLoad_badConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"PortBase is 0":       {},
		"go past 65535":       {PortBase: 65535, Slots: 2},
		"-1 ports":            {PortBase: 1, Slots: -1},
		"Queues is -1":        {PortBase: 1, Queues: -1},
		"3000 TCP ports":      {PortBase: 1, Slots: 2, TCPPorts: 3000},
		"-1 TCP ports":        {PortBase: 1, TCPPorts: -1},
		"loss of 1000001 ppm": {PortBase: 1, LossPPM: 1_000_001},
		"VLAN is 4095":        {PortBase: 1, VLAN: 4095},
	} {
		if strings.HasPrefix(name, "loss") && os.Geteuid() != 0 {
			continue // seen only after loading
		}
		if p, err := Load(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q, got %v, %v", name, p, err)
		}
	}
}

func TestRegister_errors(t *testing.T) {
	p := load(t, Config{PortBase: testPort, Slots: 2, Queues: 3})
	for _, at := range [][2]int{{-1, 0}, {3, 0}, {0, -1}, {0, 2}} {
		if err := p.Register(at[0], at[1], newXSK(t)); err == nil || !strings.Contains(err.Error(), "3 queues and 2 slots") {
			t.Errorf("queue %d, slot %d: %v", at[0], at[1], err)
		}
	}
	if err := p.Register(0, 0, int(os.Stdin.Fd())); err == nil {
		t.Error("standard input was taken for an AF_XDP socket")
	}
	if err := p.Register(2, 1, newXSK(t)); err != nil {
		t.Fatal(err)
	}
	if err := p.Register(2, 1, newXSK(t)); !errors.Is(err, ErrSlotTaken) {
		t.Errorf("second socket for a slot: %v", err)
	}
	for range 2 {
		if err := p.Unregister(2, 1); err != nil {
			t.Error(err)
		}
	}
	if err := p.Register(2, 1, newXSK(t)); err != nil {
		t.Errorf("after Unregister: %v", err)
	}
}
