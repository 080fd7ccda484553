package xdp_test

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// spreadQueues is how many queues devices have whose frames arrive on any of them.
const spreadQueues = 4

// sendSpread sends datagrams with a byte each through the kernel, from as many
// source ports, which it spreads over the queues of a veth as a network card with
// RSS does. It returns how many.
func sendSpread(t *testing.T, from, to *testbed.Host, port uint16) int {
	t.Helper()
	const flows = 96
	err := from.Do(func() error {
		for i := range flows {
			c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.Addr, port)))
			if err != nil {
				return err
			}
			_, err = c.Write([]byte{byte(i)})
			if c.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return flows
}

// received takes in what sendSpread sent, until all that is not counted as stray or
// dropped is there, each datagram once. It returns how many came.
func received(t *testing.T, p fabric.Port, sent int) int {
	t.Helper()
	seen := map[byte]bool{}
	descs := make([]fabric.Desc, 64)
	for {
		n := p.Recv(descs)
		for _, d := range descs[:n] {
			b := p.Arena().At(d.Addr, int(d.Len))
			if seen[b[udpHeaderLen]] {
				t.Errorf("datagram %d arrived twice", b[udpHeaderLen])
			}
			seen[b[udpHeaderLen]] = true
			p.Pool().Put(d.Addr)
		}
		p.Flush()
		if n > 0 {
			continue
		}
		if st := p.Stats(); len(seen)+int(st.RxStray+st.RxDropped) >= sent {
			return len(seen)
		}
		fds := []unix.PollFd{{Fd: int32(p.FD()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, 100); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

// A port receives on all queues of its device, in every order and many at a time,
// and sends on one.
func TestOpen_allQueues(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		tb := testbedOf(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
		a, b := tb.Hosts[0], tb.Hosts[1]
		c := config(newArena(t))
		c.Frames = 0
		p := open(t, driver{mode: mode, open: openOurs}, a, c)
		for range 20 {
			n := sendSpread(t, b, a, portBase)
			if got := received(t, p, n); got != n {
				t.Fatalf("%d of %d datagrams arrived: %+v", got, n, p.Stats())
			}
		}
		if st := p.Stats(); st.RxStray != 0 || st.RxDropped != 0 {
			t.Errorf("%+v: want none stray, none dropped", st)
		}
	})
}

// What arrives on a queue that a port does not receive on is counted.
func TestOpen_countsStray(t *testing.T) {
	tb := testbedOf(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
	a, b := tb.Hosts[0], tb.Hosts[1]
	c := config(newArena(t))
	c.Queues = 1
	p := open(t, driver{mode: bpf.Generic, open: openOurs}, a, c)
	n := sendSpread(t, b, a, portBase)
	got := received(t, p, n)
	if st := p.Stats(); st.RxStray == 0 || got == 0 || got+int(st.RxStray) != n {
		t.Errorf("%d datagrams, %d received, %d stray: want some of both, and no others", n, got, p.Stats().RxStray)
	}
}

// A port that receives on many queues has buffers for all of them.
func TestOpen_budgetOfQueues(t *testing.T) {
	for _, q := range []struct{ queues, depth int }{{1, 2048}, {2, 2048}, {4, 1024}, {5, 512}, {8, 512}, {64, 64}, {128, 32}} {
		c, err := xdp.Config{Device: "none", Arena: newArena(t), Queues: q.queues}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if c.RxDepth != q.depth || c.Frames < q.queues*q.depth+c.TxDepth {
			t.Errorf("%d queues: %d chunks for each, %d in all, want %d each", q.queues, c.RxDepth, c.Frames, q.depth)
		}
	}
}

// openSpread opens shared queues on the first host of a testbed with spreadQueues of them.
func openSpread(t *testing.T, mode bpf.Mode, seats int) (*testbed.Testbed, *xdp.Queue) {
	t.Helper()
	tb := testbedOf(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
	return tb, openQueue(t, tb.Hosts[0], queueConfig(seats, mode))
}

// Every seat receives on all queues, and what it gives back goes to where most
// arrives: far more comes in than there are frames.
func TestQueue_allQueues(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		const seats = 3
		tb, q := openSpread(t, mode, seats)
		var ports []fabric.Port
		for n := range seats {
			ports = append(ports, sit(t, q, n))
		}
		for range 2 + 2*q.Frames()/96/seats {
			for n, p := range ports {
				sent := sendSpread(t, tb.Hosts[1], tb.Hosts[0], uint16(portBase+n))
				if got := received(t, p, sent); got != sent {
					t.Fatalf("seat %d: %d of %d datagrams arrived: %+v", n, got, sent, p.Stats())
				}
			}
		}
		if n := q.Steering().Stray(); n != 0 {
			t.Errorf("%d datagrams were stray", n)
		}
	})
}

// What a seat had on all queues when it went is given back.
func TestQueue_vacateAllQueues(t *testing.T) {
	tb, q := openSpread(t, bpf.Generic, 2)
	s := take(t, q, 0)
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	p, err := xdp.OpenSeat(s, arena, true)
	if err != nil {
		t.Fatal(err)
	}
	sendSpread(t, tb.Hosts[1], tb.Hosts[0], portBase)
	if n := p.Recv(make([]fabric.Desc, 64)); n == 0 { // held, and never put
		t.Fatal("nothing arrived")
	}
	if fill, received, held := q.Accounted(); received == 0 || held[0] == 0 || fill+received+held[0] != q.Frames() {
		t.Fatalf("%d in FILL rings, %d received, %v held of %d", fill, received, held, q.Frames())
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := q.Vacate(0); err != nil {
		t.Fatal(err)
	}
	if fill, received, held := q.Accounted(); fill != q.Frames() || received != 0 || held[0] != 0 {
		t.Errorf("%d in FILL rings, %d received, %v held of %d: want all in FILL rings", fill, received, held, q.Frames())
	}
}
