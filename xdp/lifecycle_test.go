package xdp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// attached returns the XDP program on a host's device.
func attached(t *testing.T, h *testbed.Host) (a bpf.Attached, ok bool) {
	t.Helper()
	err := h.Do(func() error {
		link, err := netlink.LinkByName(h.Dev)
		if err != nil {
			return err
		}
		a, ok, err = bpf.Query(link.Attrs().Index)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, ok
}

// bypasses returns how many programs are at the way out of a host's device. false: Linux before 6.6 has none.
func bypasses(t *testing.T, h *testbed.Host) (n int, ok bool) {
	t.Helper()
	var found *link.QueryResult
	err := h.Do(func() error {
		device, err := netlink.LinkByName(h.Dev)
		if err == nil {
			found, err = link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: ebpf.AttachTCXEgress})
		}
		return err
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
		return 0, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Programs), true
}

func TestClose_reopenAtOnce(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		tb := newTestbed(t, d.mtu)
		h := tb.Hosts[0]
		arena := newArena(t)
		c := config(arena)
		c.Mode = d.mode
		for range 5 {
			err := h.Do(func() error {
				p, err := d.open(c)
				if err != nil {
					return err
				}
				return p.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
			if a, ok := attached(t, h); ok {
				t.Fatalf("%v is left after Close", a)
			}
		}
		// Nothing of the arena is left in use.
		if _, err := arena.Alloc(arena.Len(), 0); err != nil {
			t.Errorf("ports did not give their frames back: %v", err)
		}
	})
}

func TestClose_twice(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, _ := newWire(t, d, config)
		for range 2 { // and once more when the test ends
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if fd := a.FD(); fd != -1 {
			t.Errorf("FD is %d after Close", fd)
		}
		if st := a.Stats(); st != (fabric.PortStats{}) {
			t.Errorf("%+v after nothing was sent", st)
		}
	})
}

// holdPortEnv makes a run of the test binary the victim of a kill.
const holdPortEnv = "XWARP_TEST_HOLD_PORT"

func TestHelper_holdPort(t *testing.T) {
	name := os.Getenv(holdPortEnv)
	if name == "" {
		t.Skip("run by TestKill_leavesNothing")
	}
	for _, d := range drivers {
		if d.name == name {
			c := config(newArena(t))
			c.Mode = d.mode
			p, err := d.open(c)
			fmt.Println("opened", err)
			for err == nil { // until killed
				p.Flush()
			}
		}
	}
}

func TestKill_leavesNothing(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		tb := newTestbed(t, d.mtu)
		h := tb.Hosts[0]
		victim := exec.Command(os.Args[0], "-test.run=^TestHelper_holdPort$")
		victim.Env = append(os.Environ(), holdPortEnv+"="+d.name)
		victim.Stderr = os.Stderr
		out, err := victim.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Start(victim); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || line != "opened <nil>\n" {
			t.Fatalf("the process with the port says %q, %v", line, err)
		}
		if a, ok := attached(t, h); !ok || a.Name != "steer" {
			t.Fatalf("%v, %v on the device while the port is open", a, ok)
		}
		want := 0
		if d.mode == bpf.Generic {
			want = 1
		}
		if n, ok := bypasses(t, h); ok && n != want {
			t.Errorf("%d programs at the way out while the port is open, want %d", n, want)
		}
		if err := victim.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = victim.Wait() // says that it was killed
		if a, ok := attached(t, h); ok {
			t.Errorf("%v is left after the process died", a)
		}
		if n, _ := bypasses(t, h); n != 0 {
			t.Errorf("%d programs are left at the way out after the process died", n)
		}
		open(t, d, h, config(newArena(t)))
	})
}

func TestOpen_otherProgramIsKept(t *testing.T) {
	for _, foreign := range []bpf.Mode{bpf.Generic, bpf.Driver} {
		for _, d := range drivers {
			t.Run(foreign.String()+"/"+d.name, func(t *testing.T) {
				tb := newTestbed(t, d.mtu)
				h := tb.Hosts[0]
				sw, err := bpf.LoadSwitch(foreign)
				if err != nil {
					t.Fatal(err)
				}
				defer sw.Close()
				err = h.Do(func() error {
					link, err := netlink.LinkByName(h.Dev)
					if err != nil {
						return err
					}
					return sw.AddPort(link.Attrs().Index, h.MAC)
				})
				if err != nil {
					t.Fatal(err)
				}
				before, _ := attached(t, h)
				c := config(newArena(t))
				c.Mode = d.mode
				err = h.Do(func() error { _, err := d.open(c); return err })
				if other, ok := errors.AsType[*bpf.AttachedError](err); !ok || other.Name != "l2switch" || other.Device != h.Dev || other.LinkID == 0 {
					t.Errorf("error is %v", err)
				}
				if after, ok := attached(t, h); !ok || after != before {
					t.Errorf("%v is now %v", before, after)
				}
			})
		}
	}
}

// The kernel's own traffic passes by our socket in both directions.
func TestOpen_kernelStillAnswers(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		if err := echoTCP(a.host, b.host); err != nil {
			t.Errorf("TCP: %v", err)
		}
		if err := ping(a.host, b.host); err != nil {
			t.Errorf("ping: %v", err)
		}
		for _, p := range []end{a, b} {
			if n := p.Recv(make([]fabric.Desc, fabric.MaxBufs)); n != 0 {
				t.Errorf("%d buffers of the kernel's traffic came to us", n)
			}
		}
	})
}

func echoTCP(from, to *testbed.Host) error {
	var l net.Listener
	err := to.Do(func() (err error) {
		l, err = net.Listen("tcp4", to.Addr.String()+":0")
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = io.Copy(conn, conn)
			conn.Close()
		}
		served <- err
	}()
	const size = 1 << 20
	err = from.Do(func() error {
		conn, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		defer conn.Close()
		go func() {
			_, _ = conn.Write(make([]byte, size)) // the read below notices
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		n, err := io.Copy(io.Discard, conn)
		if n != size {
			return fmt.Errorf("%d of %d bytes came back: %w", n, size, err)
		}
		return err
	})
	return errors.Join(err, <-served)
}

// ping sends ICMP echo requests until one is answered.
func ping(from, to *testbed.Host) error {
	return from.Do(func() error {
		conn, err := net.Dial("ip4:icmp", to.Addr.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		request := []byte{8, 0, 0xf7, 0xfd, 0, 1, 0, 1} // type, code, checksum, id, sequence
		for {
			if _, err := conn.Write(request); err != nil {
				return err
			}
			reply := make([]byte, 64)
			_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // then ask again
			n, err := conn.Read(reply)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if err != nil {
				return err
			}
			const ipHeader = 20
			if n < ipHeader+8 || reply[ipHeader] != 0 { // type 0: echo reply
				return fmt.Errorf("the answer is % x", reply[:n])
			}
			return nil
		}
	})
}

// What is sent while the device is down waits until it is up again.
func TestFlush_deviceGoesDown(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		set := func(change func(netlink.Link) error) {
			t.Helper()
			err := a.host.Do(func() error {
				link, err := netlink.LinkByName(a.host.Dev)
				if err != nil {
					return err
				}
				return change(link)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		set(netlink.LinkSetDown)
		rng := newRand()
		var want [][]byte
		for range 40 {
			want = append(want, content(rng, a, b, 100))
			send(a, build(rng, a, want[len(want)-1])...)
		}
		if n := b.Recv(make([]fabric.Desc, fabric.MaxBufs)); n != 0 {
			t.Fatalf("%d buffers arrived from a device that is down", n)
		}
		set(netlink.LinkSetUp)
		dst := make([]fabric.Desc, fabric.MaxBufs)
		for len(want) > 0 {
			a.Flush()
			for _, d := range dst[:b.Recv(dst)] {
				if got := b.Arena().At(d.Addr, int(d.Len)); string(got) != string(want[0]) {
					t.Fatalf("%d frames before the last, another frame arrived", len(want))
				}
				want = want[1:]
				b.Pool().Put(d.Addr)
			}
			b.Flush()
		}
	})
}

// One program may serve several ports of a device. It stays when they close.
func TestOpen_sharedProgram(t *testing.T) {
	tb := newTestbed(t, 9000)
	h := tb.Hosts[0]
	var prog *bpf.Program
	err := h.Do(func() (err error) {
		prog, err = bpf.Load(bpf.Config{PortBase: portBase, Slots: 4})
		if err != nil {
			return err
		}
		link, err := netlink.LinkByName(h.Dev)
		if err != nil {
			return err
		}
		_, err = prog.Attach(link.Attrs().Index, bpf.Generic)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	a := end{open(t, drivers[0], tb.Hosts[1], config(newArena(t))), tb.Hosts[1]}
	for slot := range 4 {
		c := config(newArena(t))
		c.Program, c.Slot = prog, slot
		b := end{open(t, drivers[0], h, c), h}
		frame := content(newRand(), a, b, 100)
		frame[37] += byte(slot) // destination port
		send(a, build(newRand(), a, frame)...)
		if got := recv(b); string(got) != string(frame) {
			t.Errorf("slot %d got another frame", slot)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, ok := attached(t, h); !ok {
			t.Fatal("Close of a port removed the caller's program")
		}
	}
}

func TestLoss_isCountedAndNotDelivered(t *testing.T) {
	a, b := newWire(t, drivers[0], config)
	program := b.Port.(*xdp.Port).Steering().Program()
	if err := program.SetLoss(bpf.LossPPMMax / 2); err != nil {
		t.Fatal(err)
	}
	rng := newRand()
	const sent = 2000
	var bufs [fabric.MaxBufs]fabric.Desc
	received := uint64(0)
	for received+lost(t, program) < sent {
		if a.Stats().TxFrames < sent {
			send(a, build(rng, a, content(rng, a, b, 64))...)
		}
		for _, d := range bufs[:b.Recv(bufs[:])] {
			b.Pool().Put(d.Addr)
			received++
		}
		b.Flush()
	}
	if received < sent/3 || received > sent*2/3 {
		t.Errorf("%d of %d frames received at 50 %% loss", received, sent)
	}
	if err := program.SetLoss(0); err != nil {
		t.Fatal(err)
	}
	before := lost(t, program)
	for range 200 {
		send(a, build(rng, a, content(rng, a, b, 64))...)
		recv(b)
	}
	if n := lost(t, program); n != before {
		t.Errorf("%d frames lost after loss was turned off", n-before)
	}
}

func lost(t *testing.T, p *bpf.Program) uint64 {
	t.Helper()
	c, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c.Lost
}

func TestPool_twoPortsInOneArena(t *testing.T) {
	tb := newTestbed(t, 9000)
	arena := newArena(t)
	a := end{open(t, drivers[0], tb.Hosts[0], config(arena)), tb.Hosts[0]}
	b := end{open(t, drivers[0], tb.Hosts[1], config(arena)), tb.Hosts[1]}
	for at := mem.Addr(0); at < mem.Addr(arena.Len()); at += mem.FrameSize {
		if a.Pool().Owns(at) && b.Pool().Owns(at) {
			t.Fatalf("two ports own the frame at %#x", at)
		}
	}
	want := content(newRand(), a, b, 9000)
	send(a, build(newRand(), a, want)...)
	if got := recv(b); string(got) != string(want) {
		t.Error("the frame is not the same")
	}
}
