package xdp

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

func goodSeat() Seat {
	return Seat{
		Number: 2, Seats: 3, Port: 7002, TCPBase: 61020, TCPPorts: 10, Device: "eth1",
		Caps:    fabric.PortCaps{Driver: "xdp/generic/copy", MTU: 9000, MaxBufs: 18, TxDepth: 64, RxDepth: 21},
		RxDepth: 64, TxDepth: 64, Fill: 1024, Completion: 256, Frames: 1000, Part: 4 << 20,
		ArenaFD: 4, RollFD: 5, Queues: []SeatQueue{{6, 7}, {8, 9}},
	}
}

// lineSeat is goodSeat with queues of its own.
func lineSeat() Seat {
	s := goodSeat()
	s.Fill, s.Completion, s.Frames, s.RollFD, s.Queues = 0, 0, 0, 0, nil
	s.Lines = []Line{{5, 6}, {7, 8}, {9, 9}}
	return s
}

func TestSeat_textAndBack(t *testing.T) {
	for _, c := range []struct {
		seat Seat
		fds  []int
	}{{goodSeat(), []int{10, 11, 12, 13, 14, 15}}, {lineSeat(), []int{10, 11, 12, 13, 14, 15, 16}}} {
		want := c.seat
		got, err := ParseSeat(want.Text())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		before := want.Text()
		if at := want.At(10); at.ArenaFD != 10 || !reflect.DeepEqual(at.FDs(), c.fds) || want.Text() != before {
			t.Errorf("%v, want %v", at.FDs(), c.fds)
		}
	}
}

func TestOpenLineSeat_sharedQueue(t *testing.T) {
	if _, err := OpenLineSeat(goodSeat(), nil, false); err == nil || !strings.Contains(err.Error(), "use OpenSeat") {
		t.Errorf("%v", err)
	}
}

func TestParseSeat_refuses(t *testing.T) {
	for name, spoil := range map[string]func(*Seat){
		"number":      func(s *Seat) { s.Number = 3 },
		"seats":       func(s *Seat) { s.Seats = 1 << 20 },
		"RX ring":     func(s *Seat) { s.RxDepth = 63 },
		"TX ring":     func(s *Seat) { s.TxDepth = 0 },
		"frames":      func(s *Seat) { s.Frames = 1025 },
		"FILL":        func(s *Seat) { s.Fill = 1 << 30 },
		"COMPLETION":  func(s *Seat) { s.Completion = 255 },
		"part":        func(s *Seat) { s.Part = 4097 },
		"MTU":         func(s *Seat) { s.Caps.MaxBufs = 0 },
		"descriptors": func(s *Seat) { s.RollFD = -1 },
	} {
		s := goodSeat()
		spoil(&s)
		if _, err := ParseSeat(s.Text()); err == nil {
			t.Errorf("%s: %s was accepted", name, s.Text())
		}
	}
	for name, spoil := range map[string]func(*Seat){
		"fewer lines than slots": func(s *Seat) { s.Lines = s.Lines[:2] },
		"no arena":               func(s *Seat) { s.ArenaFD = -1 },
		"no socket":              func(s *Seat) { s.Lines[1].SendFD = -1 },
		"too many lines":         func(s *Seat) { s.Lines = make([]Line, seatsMax+1) },
	} {
		s := lineSeat()
		spoil(&s)
		if _, err := ParseSeat(s.Text()); err == nil {
			t.Errorf("%s: %s was accepted", name, s.Text())
		}
	}
	if _, err := ParseSeat("nonsense"); err == nil {
		t.Error("nonsense was accepted")
	}
}

func FuzzParseSeat(f *testing.F) {
	s := goodSeat()
	f.Add(s.Text())
	lines := lineSeat()
	f.Add(lines.Text())
	f.Add(strings.Replace(s.Text(), "3", "-1", 1))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSeat(text)
		if err != nil {
			return
		}
		l := s.layout()
		if p := l.partOf(s.Number); len(s.Lines) == 0 && (l.size() < int(p.Start)+p.Len || l.framesAt() < l.heldAt() || l.partsAt() < l.framesAt()) {
			t.Errorf("%s: %+v", text, l)
		}
	})
}

// The parts of the arena do not overlap, and addresses tell their owners.
func TestLayout(t *testing.T) {
	for _, l := range []layout{{1, 32, 1, hugePage}, {3, 64, 1000, hugePage}, {64, 1024, 64*2300 + 512, 64 << 20}} {
		g := l
		ends := []int{0, g.heldAt(), g.framesAt(), g.partsAt(), g.size()}
		for i := 1; i < len(ends); i++ {
			if ends[i] < ends[i-1] {
				t.Errorf("%+v: %v", l, ends)
			}
		}
		if g.framesAt()+g.frames*mem.FrameSize > g.partsAt() || g.heldAt()+g.seats*g.heldLen() > g.framesAt() {
			t.Errorf("%+v: parts overlap", l)
		}
		ledger := &ledger{layout: g}
		for seat := range g.seats {
			p := g.partOf(seat)
			for _, a := range []mem.Addr{p.Start, p.Start + mem.Addr(p.Len) - 1} {
				if got := ledger.owner(a); got != seat {
					t.Errorf("%+v: %#x is of seat %d, want %d", l, a, got, seat)
				}
			}
		}
	}
}

func TestQueueConfig(t *testing.T) {
	base := QueueConfig{Device: "eth1", Seats: 4, Steer: bpf.Config{PortBase: 7000}}
	c, err := base.WithDefaults()
	if err != nil || c.Frames != 4*(512+rxHeld+slab)+fillLeast || c.Steer.Slots != 4 || c.Part != 64<<20 {
		t.Errorf("%+v, %v", c, err)
	}
	many := base
	many.Seats = 5
	if c, err := many.WithDefaults(); err != nil || c.Part != 32<<20 {
		t.Errorf("%+v, %v", c, err)
	}
	if names := c.Budget().String(); !strings.Contains(names, "RX rings of seat 3") {
		t.Errorf("the budget does not name every seat:\n%s", names)
	}
	for want, spoil := range map[string]func(*QueueConfig){
		"QueueConfig.Seats is 0":          func(c *QueueConfig) { c.Seats = 0 },
		"QueueConfig.Seats is 1025":       func(c *QueueConfig) { c.Seats = 1025 },
		"QueueConfig.RxDepth is 100":      func(c *QueueConfig) { c.RxDepth = 100 },
		"QueueConfig.Part is -1":          func(c *QueueConfig) { c.Part = -1 },
		"RX rings of seat 3 needs 512":    func(c *QueueConfig) { c.Frames = 3 * (512 + rxHeld + slab) },
		"QueueConfig.Part is 2097152: bu": func(c *QueueConfig) { c.Part = 1 },
	} {
		c := base
		spoil(&c)
		if _, err := c.WithDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c = base
	c.Frames = 1
	var short *mem.BudgetError
	if _, err := c.WithDefaults(); !errors.As(err, &short) {
		t.Errorf("%v", err)
	}
}

// Someone on the roll is there until the description of the file is closed, and
// nobody takes the number.
func TestRoll(t *testing.T) {
	r, err := newRoll()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	other, err := sign(r.fd, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if !other.absent(3) {
		t.Error("nobody has signed as 3, and is there")
	}
	three, err := sign(r.fd, 3)
	if err != nil {
		t.Fatal(err)
	}
	if other.absent(3) {
		t.Error("3 has signed, and is absent")
	}
	if _, err := sign(r.fd, 3); !errors.Is(err, ErrSeatTaken) {
		t.Errorf("a second 3: %v", err)
	}
	three.close()
	if !other.absent(3) {
		t.Error("3 is gone, and present")
	}
}
