package xdp_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
	"github.com/xwarp/xwarp/xdp/asavie"
)

// Tests on real devices: two hosts joined by a veth pair.

const portBase = 7471

// driver is one of the ways to open a port.
type driver struct {
	name string
	mode bpf.Mode
	open func(xdp.Config) (fabric.Port, error)
	mtu  int // largest
}

func openOurs(c xdp.Config) (fabric.Port, error)   { return xdp.Open(c) }
func openAsavie(c xdp.Config) (fabric.Port, error) { return asavie.Open(c) }

var drivers = []driver{
	{"generic", bpf.Generic, openOurs, 9000},
	{"driver", bpf.Driver, openOurs, 9000},
	{"asavie-generic", bpf.Generic, openAsavie, xdp.MTUSingle},
	{"asavie-driver", bpf.Driver, openAsavie, xdp.MTUSingle},
}

// newTestbed makes two hosts.
func newTestbed(t testing.TB, mtu int) *testbed.Testbed {
	t.Helper()
	return hosttest.New(t, testbed.Config{MTU: mtu})
}

func newArena(t testing.TB) *mem.Arena {
	t.Helper()
	arena, err := mem.New(mem.Config{Size: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	return arena
}

// config is what tests open ports with.
func config(arena *mem.Arena) xdp.Config {
	return xdp.Config{
		Device: testbed.Device, Arena: arena, Steer: bpf.Config{PortBase: portBase},
		RxDepth: 512, TxDepth: 256, Frames: 1024, Track: true,
	}
}

// open opens a port on a host and closes it when the test ends.
func open(t testing.TB, d driver, h *testbed.Host, c xdp.Config) fabric.Port {
	t.Helper()
	c.Mode = d.mode
	var p fabric.Port
	err := h.Do(func() (err error) {
		p, err = d.open(c)
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		testenv.NoXDP(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, p)
	return p
}

// end is one end of a wire between two ports.
type end struct {
	fabric.Port
	host *testbed.Host
}

func newWire(t testing.TB, d driver, c func(*mem.Arena) xdp.Config) (a, b end) {
	t.Helper()
	return wireOn(t, d, c, newTestbed(t, d.mtu))
}

func wireOn(t testing.TB, d driver, c func(*mem.Arena) xdp.Config, tb *testbed.Testbed) (a, b end) {
	t.Helper()
	a.host, b.host = tb.Hosts[0], tb.Hosts[1]
	a.Port = open(t, d, a.host, c(newArena(t)))
	b.Port = open(t, d, b.host, c(newArena(t)))
	return a, b
}

// udpHeaderLen is the length of the Ethernet, IPv4 and UDP headers.
const udpHeaderLen = 14 + 20 + 8

// putHeaders writes the headers of a frame that is size bytes long.
func putHeaders(b []byte, from, to *testbed.Host, port uint16, size int) {
	copy(b[0:], to.MAC)
	copy(b[6:], from.MAC)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip := b[14:34]
	copy(ip, []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0})
	binary.BigEndian.PutUint16(ip[2:], uint16(size-14))
	copy(ip[12:], from.Addr.AsSlice())
	copy(ip[16:], to.Addr.AsSlice())
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	udp := b[34:42]
	binary.BigEndian.PutUint16(udp[0:], port)
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], uint16(size-34))
	binary.BigEndian.PutUint16(udp[6:], 0)
}

// gather returns the bytes of the first frame of bufs and how many buffers it is.
func gather(arena *mem.Arena, bufs []fabric.Desc) (frame []byte, n int) {
	for _, d := range bufs {
		frame = append(frame, arena.At(d.Addr, int(d.Len))...)
		n++
		if d.Flags&fabric.More == 0 {
			break
		}
	}
	return frame, n
}

// send sends whole frames, however long it takes.
func send(p fabric.Port, bufs ...fabric.Desc) {
	for len(bufs) > 0 {
		n := 0
		if p.TxFree() >= min(len(bufs), fabric.MaxBufs) {
			n = p.Send(bufs)
		}
		bufs = bufs[n:]
		p.Flush()
	}
}

// recv waits for one frame and returns a copy of it.
func recv(p fabric.Port) []byte {
	var bufs [fabric.MaxBufs]fabric.Desc
	for {
		n := p.Recv(bufs[:])
		p.Flush()
		if n == 0 {
			continue
		}
		frame, used := gather(p.Arena(), bufs[:n])
		if used != n {
			panic(fmt.Sprintf("%d more buffers than the one frame that was sent", n-used))
		}
		for _, d := range bufs[:n] {
			p.Pool().Put(d.Addr)
		}
		return frame
	}
}

func forEachDriver(t *testing.T, fn func(*testing.T, driver)) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) { fn(t, d) })
	}
}
