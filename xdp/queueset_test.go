package xdp_test

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
)

// setConfig is what tests open queues of their own with.
func setConfig(slots, peers int, mode bpf.Mode, sw testbed.Switch) xdp.QueueSetConfig {
	c := xdp.QueueSetConfig{
		Device: testbed.Device, Slots: slots, PeerSlots: peers, Steer: bpf.Config{PortBase: portBase}, Mode: mode,
		RxDepth: 256, TxDepth: 256, Part: 16 << 20,
	}
	if sw != testbed.Cable {
		c.Hops = 1
	}
	return c
}

func openQueueSet(t testing.TB, h *testbed.Host, c xdp.QueueSetConfig) *xdp.QueueSet {
	t.Helper()
	var l *xdp.QueueSet
	err := h.Do(func() (err error) {
		l, err = xdp.OpenQueueSet(c)
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		testenv.NoXDP(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, l)
	return l
}

// inherited returns a slot with descriptors of its own, as a process that
// inherits them has.
func inherited(t testing.TB, s xdp.Slot) xdp.Slot {
	t.Helper()
	own := func(fd int) int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.ArenaFD = own(s.ArenaFD)
	for i, l := range s.Pairs {
		s.Pairs[i] = xdp.QueuePair{ReceiveFD: own(l.ReceiveFD), SendFD: own(l.SendFD)}
	}
	return s
}

func sitAlone(t testing.TB, s xdp.Slot) (fabric.Port, error) {
	t.Helper()
	s, err := xdp.ParseSlot(inherited(t, s).Text())
	if err != nil {
		t.Fatal(err)
	}
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	_, testing := t.(*testing.T)
	return xdp.OpenPairSlot(s, arena, nil, testing)
}

// setHosts are the ports of two hosts whose ranks have queues of their own.
type setHosts struct {
	sets [2]*xdp.QueueSet
	ends [2][]end // by host and slot
}

func newSetHosts(t testing.TB, mode bpf.Mode, sw testbed.Switch, slots [2]int) *setHosts {
	t.Helper()
	peers := max(slots[0], slots[1])
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Queues: peers*peers + 2, Switch: sw})
	s := &setHosts{}
	for i, h := range tb.Hosts {
		s.sets[i] = openQueueSet(t, h, setConfig(slots[i], peers, mode, sw))
		for n := range slots[i] {
			p, err := sitAlone(t, s.sets[i].Slot(n))
			if err != nil {
				t.Fatal(err)
			}
			testenv.Closing(t, p)
			s.ends[i] = append(s.ends[i], end{p, h})
		}
	}
	return s
}

// exchange sends frames of all sizes between the slots in turn, and each arrives
// where it is for.
func (s *setHosts) exchange(t *testing.T, rounds int) {
	t.Helper()
	rng := newRand()
	for round := range rounds {
		here, there := s.ends[round%2], s.ends[1-round%2]
		from, to := here[rng.IntN(len(here))], rng.IntN(len(there))
		want := content(rng, from, there[to], udpHeaderLen+rng.IntN(9014-udpHeaderLen+1))
		putHeaders(want, from.host, there[to].host, uint16(portBase+to), len(want))
		send(from, build(rng, from, want)...)
		if got := recv(there[to]); !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d bytes were sent, got %d bytes, not the same", round, len(want), len(got))
		}
	}
	for _, ends := range s.ends {
		wantNoDrops(t, ends...)
	}
}

// Every slot talks to every slot of the other host, whose number may differ, and
// whatever joins the hosts.
func TestQueueSet_everySlotToEverySlot(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		for _, sw := range []testbed.Switch{testbed.Cable, testbed.Bridge, testbed.XDP} {
			t.Run(sw.String(), func(t *testing.T) {
				newSetHosts(t, mode, sw, [2]int{3, 2}).exchange(t, 300)
			})
		}
	})
}

// A slot that is vacated gets nothing more, and the others go on. It cannot be
// taken again: chunks of the one who had it are still where they were.
func TestQueueSet_vacate(t *testing.T) {
	s := newSetHosts(t, bpf.Generic, testbed.Cable, [2]int{2, 2})
	for range 2 {
		if err := s.sets[1].Vacate(1); err != nil {
			t.Fatal(err)
		}
	}
	from, gone := s.ends[0][0], s.ends[1][1]
	frame := content(newRand(), from, gone, 100)
	putHeaders(frame, from.host, gone.host, portBase+1, len(frame))
	send(from, build(newRand(), from, frame)...)
	if _, err := sitAlone(t, s.sets[1].Slot(1)); !errors.Is(err, xdp.ErrSlotTaken) {
		t.Errorf("the slot is taken twice: %v", err)
	}
	s.ends[1] = s.ends[1][:1]
	s.exchange(t, 100)
	var none [fabric.MaxBufs]fabric.Desc
	if n := gone.Recv(none[:]); n != 0 {
		t.Errorf("%d buffers arrive at a slot that was vacated", n)
	}
	if c, err := s.sets[1].Steering().Program().Counters(); err != nil || c.NoSocket != 1 {
		t.Errorf("%+v, %v: want 1 frame without a socket", c, err)
	}
}

// Frames for several slots in one call go each its own way, in order.
func TestQueueSet_mixedBatch(t *testing.T) {
	s := newSetHosts(t, bpf.Generic, testbed.Cable, [2]int{1, 3})
	from, rng := s.ends[0][0], newRand()
	var bufs []fabric.Desc
	var want [3][][]byte
	for range 12 {
		to := rng.IntN(3)
		frame := content(rng, from, s.ends[1][to], udpHeaderLen+rng.IntN(9014-udpHeaderLen+1))
		putHeaders(frame, from.host, s.ends[1][to].host, uint16(portBase+to), len(frame))
		bufs, want[to] = append(bufs, build(rng, from, frame)...), append(want[to], frame)
	}
	if free := from.TxFree(); free != 256 || from.Send(bufs) != len(bufs) {
		t.Fatalf("%d buffers were not taken, room was for %d", len(bufs), free)
	}
	from.Flush()
	for to, frames := range want {
		p := s.ends[1][to]
		dst := make([]fabric.Desc, 256)
		for len(frames) > 0 {
			got := dst[:p.Recv(dst)]
			for len(got) > 0 {
				frame, n := gather(p.Arena(), got)
				if !bytes.Equal(frame, frames[0]) {
					t.Fatalf("slot %d: a frame of %d bytes, want another of %d", to, len(frame), len(frames[0]))
				}
				for _, d := range got[:n] {
					p.Pool().Put(d.Addr)
				}
				got, frames = got[n:], frames[1:]
			}
		}
	}
}

func TestQueueSet_errors(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500, Queues: 4})
	for name, c := range map[string]struct {
		spoil func(*xdp.QueueSetConfig)
		want  error
	}{
		"too few queues":        {func(c *xdp.QueueSetConfig) {}, xdp.ErrNoSteering}, // 4, and 1 to send on
		"unknown surroundings":  {func(c *xdp.QueueSetConfig) { c.Hops = -1 }, xdp.ErrNoSteering},
		"no device":             {func(c *xdp.QueueSetConfig) { c.Device = "none" }, xdp.ErrNoDevice},
		"more slots than peers": {func(c *xdp.QueueSetConfig) { c.PeerSlots = 1 }, nil},
		"a ring of 100":         {func(c *xdp.QueueSetConfig) { c.RxDepth, c.Mode = 100, bpf.Driver }, nil},
		"small parts":           {func(c *xdp.QueueSetConfig) { c.Part, c.Mode = 4<<20, bpf.Driver }, nil},
		"a large MTU":           {func(c *xdp.QueueSetConfig) { c.MTU, c.Mode = 9000, bpf.Driver }, xdp.ErrMTU},
	} {
		config := setConfig(2, 2, bpf.Generic, testbed.Cable)
		c.spoil(&config)
		err := tb.Hosts[0].Do(func() error {
			l, err := xdp.OpenQueueSet(config)
			if err == nil {
				l.Close()
			}
			return err
		})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// The portSet adds no allocation to a frame.
func TestAllocs_lines(t *testing.T) {
	s := newSetHosts(t, bpf.Generic, testbed.Cable, [2]int{2, 2})
	a, b := &s.ends[0][1], &s.ends[1][0]
	frame := content(newRand(), *a, *b, 9014)
	bufs := make([]fabric.Desc, fabric.MaxBufs)
	if n := testing.AllocsPerRun(1000, func() { turn(a, b, frame, bufs) }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// One slot is a plain port: nothing is in its way.
func TestQueueSet_oneSlot(t *testing.T) {
	s := newSetHosts(t, bpf.Generic, testbed.Cable, [2]int{1, 1})
	if _, ok := s.ends[0][0].Port.(*xdp.Port); !ok {
		t.Errorf("it is a %T", s.ends[0][0].Port)
	}
	s.exchange(t, 50)
}

// What the kernel refuses to send is counted once, by who has sent it: a socket may
// be one to receive on and to send on, or another slot's to send on.
func TestQueueSet_invalidCountedOnce(t *testing.T) {
	for _, slots := range []int{1, 2} {
		s := newSetHosts(t, bpf.Generic, testbed.Cable, [2]int{slots, slots})
		port, whole := s.ends[0][0].Port, s.ends[0][0].Port
		if slots > 1 {
			port = xdp.PairTo(whole, 1)
		}
		port.(*xdp.Port).SendInvalid()
		for slot, e := range s.ends[0] {
			want := uint64(0)
			if slot == 0 {
				want = 1
			}
			if n := e.Stats().TxInvalid; n != want {
				t.Errorf("slot %d of %d: %d are counted, want %d", slot, slots, n, want)
			}
		}
	}
}
