package xdp_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
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
		tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
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
		st := p.Stats()
		if st.RxStray != 0 || st.RxDropped != 0 {
			t.Errorf("%+v: want none stray, none dropped", st)
		}
		sum, used := uint64(0), 0
		for _, n := range st.RxQueues {
			if sum += n; n > 0 {
				used++
			}
		}
		if sum != st.RxFrames || used < 2 || used > spreadQueues {
			t.Errorf("%v: want %d frames in all, on several of %d queues", st.RxQueues, st.RxFrames, spreadQueues)
		}
	})
}

// What arrives on a queue that a port does not receive on is counted.
func TestOpen_countsStray(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
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
func openSpread(t *testing.T, mode bpf.Mode, slots int) (*testbed.Testbed, *xdp.Queue) {
	t.Helper()
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
	return tb, openQueue(t, tb.Hosts[0], queueConfig(slots, mode))
}

// Every slot receives on all queues, and what it gives back goes to where most
// arrives: far more comes in than there are frames.
func TestQueue_allQueues(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		const slots = 3
		tb, q := openSpread(t, mode, slots)
		var ports []fabric.Port
		for n := range slots {
			ports = append(ports, sit(t, q, n))
		}
		for range 2 + 2*q.Frames()/96/slots {
			for n, p := range ports {
				sent := sendSpread(t, tb.Hosts[1], tb.Hosts[0], uint16(portBase+n))
				if got := received(t, p, sent); got != sent {
					t.Fatalf("slot %d: %d of %d datagrams arrived: %+v", n, got, sent, p.Stats())
				}
			}
		}
		if n := q.Steering().Stray(); n != 0 {
			t.Errorf("%d datagrams were stray", n)
		}
	})
}

// What a slot had on all queues when it went is given back.
func TestQueue_vacateAllQueues(t *testing.T) {
	tb, q := openSpread(t, bpf.Generic, 2)
	s := take(t, q, 0)
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	p, err := xdp.OpenSlot(s, arena, nil, true)
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

// Queues of a kernel that cannot map the rings of bound sockets are bound when all
// slots are there, but for those that will not come.
func TestQueue_late(t *testing.T) {
	const slots = 3
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: spreadQueues})
	c := queueConfig(slots, bpf.Generic)
	c.Late = true
	q := openQueue(t, tb.Hosts[0], c)
	never := func(int) bool { return false }
	if done, err := q.Bind(never); done || err != nil {
		t.Fatalf("bound: %v, %v; want to wait for the slots", done, err)
	}
	opened := make(chan fabric.Port, slots)
	for n := range slots - 1 {
		slot := take(t, q, n)
		go func() {
			var p fabric.Port
			defer func() { opened <- p }() // also when occupy has ended this goroutine
			p = occupy(t, slot)
		}()
	}
	second := func(slot int) bool { return slot == slots-1 }
	bind := func() (err error) {
		for done := false; !done && err == nil && !t.Failed(); time.Sleep(time.Millisecond) {
			done, err = q.Bind(second)
		}
		return err
	}
	if err := tb.Hosts[0].Do(bind); err != nil || t.Failed() {
		t.Fatal(err)
	}
	for range slots - 1 {
		p := <-opened
		if p == nil {
			t.FailNow()
		}
		caps := p.Caps()
		caps.Home = 0 // which each slot has for itself
		if caps != q.Caps() || caps.MTU != 1500 {
			t.Errorf("%+v, want %+v", caps, q.Caps())
		}
	}
	if err := q.Vacate(slots - 1); err != nil {
		t.Error(err)
	}
	if n := sendSpread(t, tb.Hosts[1], tb.Hosts[0], portBase+slots-1); int(q.Steering().Stray()) != n {
		t.Errorf("%d of %d datagrams to nobody were stray", q.Steering().Stray(), n)
	}
}

// Why queues could not be bound is what each slot fails with.
func TestQueue_lateFails(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500})
	c := queueConfig(1, bpf.Driver)
	c.Late, c.ZeroCopy = true, xdp.ZeroCopyMust // which a veth has not
	q := openQueue(t, tb.Hosts[0], c)
	s := take(t, q, 0)
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	failed := make(chan error)
	go func() {
		_, err := xdp.OpenSlot(s, arena, nil, true)
		failed <- err
	}()
	var bound error
	for done := false; !done; time.Sleep(time.Millisecond) {
		done, bound = q.Bind(func(int) bool { return false })
	}
	if err := <-failed; bound == nil || err == nil || err.Error() != bound.Error() || !errors.Is(bound, xdp.ErrUnsupported) {
		t.Errorf("Bind: %v; OpenSlot: %v; want that there is no zero-copy", bound, err)
	}
}

func TestMapsBound(t *testing.T) {
	tb := newTestbed(t, 1500)
	err := tb.Hosts[0].Do(func() error {
		if !xdp.MapsBound() {
			t.Error("this kernel cannot map the rings of a bound socket, or that could not be tried")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
