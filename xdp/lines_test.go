package xdp_test

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// linesConfig is what tests open queues of their own with.
func linesConfig(seats, slots int, mode bpf.Mode, sw testbed.Switch) xdp.LinesConfig {
	c := xdp.LinesConfig{
		Device: testbed.Device, Seats: seats, Slots: slots, Steer: bpf.Config{PortBase: portBase}, Mode: mode,
		RxDepth: 256, TxDepth: 256, Part: 16 << 20,
	}
	if sw != testbed.Cable {
		c.Hops = 1
	}
	return c
}

func openLines(t testing.TB, h *testbed.Host, c xdp.LinesConfig) *xdp.Lines {
	t.Helper()
	var l *xdp.Lines
	err := h.Do(func() (err error) {
		l, err = xdp.OpenLines(c)
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		skipOrFail(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// inherited returns a seat with descriptors of its own, as a process that
// inherits them has.
func inherited(t testing.TB, s xdp.Seat) xdp.Seat {
	t.Helper()
	own := func(fd int) int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.ArenaFD = own(s.ArenaFD)
	for i, l := range s.Lines {
		s.Lines[i] = xdp.Line{ReceiveFD: own(l.ReceiveFD), SendFD: own(l.SendFD)}
	}
	return s
}

func sitAlone(t testing.TB, s xdp.Seat) (fabric.Port, error) {
	t.Helper()
	s, err := xdp.ParseSeat(inherited(t, s).Text())
	if err != nil {
		t.Fatal(err)
	}
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	_, testing := t.(*testing.T)
	return xdp.OpenLineSeat(s, arena, testing)
}

// lined are the ports of two hosts whose ranks have queues of their own.
type lined struct {
	lines [2]*xdp.Lines
	ends  [2][]end // by host and seat
}

func newLined(t testing.TB, mode bpf.Mode, sw testbed.Switch, seats [2]int) *lined {
	t.Helper()
	slots := max(seats[0], seats[1])
	tb := testbedOf(t, testbed.Config{MTU: 9000, Queues: slots*slots + 2, Switch: sw})
	s := &lined{}
	for i, h := range tb.Hosts {
		s.lines[i] = openLines(t, h, linesConfig(seats[i], slots, mode, sw))
		for n := range seats[i] {
			p, err := sitAlone(t, s.lines[i].Seat(n))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
			s.ends[i] = append(s.ends[i], end{p, h})
		}
	}
	return s
}

// exchange sends frames of all sizes between the seats in turn, and each arrives
// where it is for.
func (s *lined) exchange(t *testing.T, rounds int) {
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

// Every seat talks to every seat of the other host, whose number may differ, and
// whatever joins the hosts.
func TestLines_everySeatToEverySeat(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		for _, sw := range []testbed.Switch{testbed.Cable, testbed.Bridge, testbed.XDP} {
			t.Run(sw.String(), func(t *testing.T) {
				newLined(t, mode, sw, [2]int{3, 2}).exchange(t, 300)
			})
		}
	})
}

// A seat that is vacated gets nothing more, and the others go on. It cannot be
// taken again: chunks of the one who had it are still where they were.
func TestLines_vacate(t *testing.T) {
	s := newLined(t, bpf.Generic, testbed.Cable, [2]int{2, 2})
	for range 2 {
		if err := s.lines[1].Vacate(1); err != nil {
			t.Fatal(err)
		}
	}
	from, gone := s.ends[0][0], s.ends[1][1]
	frame := content(newRand(), from, gone, 100)
	putHeaders(frame, from.host, gone.host, portBase+1, len(frame))
	send(from, build(newRand(), from, frame)...)
	if _, err := sitAlone(t, s.lines[1].Seat(1)); !errors.Is(err, xdp.ErrSeatTaken) {
		t.Errorf("the seat is taken twice: %v", err)
	}
	s.ends[1] = s.ends[1][:1]
	s.exchange(t, 100)
	var none [fabric.MaxBufs]fabric.Desc
	if n := gone.Recv(none[:]); n != 0 {
		t.Errorf("%d buffers arrive at a seat that was vacated", n)
	}
	if c, err := s.lines[1].Steering().Program().Counters(); err != nil || c.NoSocket != 1 {
		t.Errorf("%+v, %v: want 1 frame without a socket", c, err)
	}
}

// Frames for several seats in one call go each its own way, in order.
func TestLines_mixedBatch(t *testing.T) {
	s := newLined(t, bpf.Generic, testbed.Cable, [2]int{1, 3})
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
					t.Fatalf("seat %d: a frame of %d bytes, want another of %d", to, len(frame), len(frames[0]))
				}
				for _, d := range got[:n] {
					p.Pool().Put(d.Addr)
				}
				got, frames = got[n:], frames[1:]
			}
		}
	}
}

func TestLines_errors(t *testing.T) {
	tb := testbedOf(t, testbed.Config{MTU: 1500, Queues: 4})
	for name, c := range map[string]struct {
		spoil func(*xdp.LinesConfig)
		want  error
	}{
		"too few queues":        {func(c *xdp.LinesConfig) {}, xdp.ErrNoSteering}, // 4, and 1 to send on
		"unknown surroundings":  {func(c *xdp.LinesConfig) { c.Hops = -1 }, xdp.ErrNoSteering},
		"no device":             {func(c *xdp.LinesConfig) { c.Device = "none" }, xdp.ErrNoDevice},
		"more seats than slots": {func(c *xdp.LinesConfig) { c.Slots = 1 }, nil},
		"a ring of 100":         {func(c *xdp.LinesConfig) { c.RxDepth, c.Mode = 100, bpf.Driver }, nil},
		"small parts":           {func(c *xdp.LinesConfig) { c.Part, c.Mode = 4<<20, bpf.Driver }, nil},
		"a large MTU":           {func(c *xdp.LinesConfig) { c.MTU, c.Mode = 9000, bpf.Driver }, xdp.ErrMTU},
	} {
		config := linesConfig(2, 2, bpf.Generic, testbed.Cable)
		c.spoil(&config)
		err := tb.Hosts[0].Do(func() error {
			l, err := xdp.OpenLines(config)
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

// The fan adds no allocation to a frame.
func TestAllocs_lines(t *testing.T) {
	s := newLined(t, bpf.Generic, testbed.Cable, [2]int{2, 2})
	a, b := &s.ends[0][1], &s.ends[1][0]
	frame := content(newRand(), *a, *b, 9014)
	bufs := make([]fabric.Desc, fabric.MaxBufs)
	if n := testing.AllocsPerRun(1000, func() { turn(a, b, frame, bufs) }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// One seat is a plain port: nothing is in its way.
func TestLines_oneSeat(t *testing.T) {
	s := newLined(t, bpf.Generic, testbed.Cable, [2]int{1, 1})
	if _, ok := s.ends[0][0].Port.(*xdp.Port); !ok {
		t.Errorf("it is a %T", s.ends[0][0].Port)
	}
	s.exchange(t, 50)
}

// What the kernel refuses to send is counted once, by who has sent it: a socket may
// be one to receive on and to send on, or another seat's to send on.
func TestLines_invalidCountedOnce(t *testing.T) {
	for _, seats := range []int{1, 2} {
		s := newLined(t, bpf.Generic, testbed.Cable, [2]int{seats, seats})
		port, whole := s.ends[0][0].Port, s.ends[0][0].Port
		if seats > 1 {
			port = xdp.LineTo(whole, 1)
		}
		port.(*xdp.Port).SendInvalid()
		for seat, e := range s.ends[0] {
			want := uint64(0)
			if seat == 0 {
				want = 1
			}
			if n := e.Stats().TxInvalid; n != want {
				t.Errorf("seat %d of %d: %d are counted, want %d", seat, seats, n, want)
			}
		}
	}
}
