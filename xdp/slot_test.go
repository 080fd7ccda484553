package xdp

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

func goodSlot() Slot {
	return Slot{
		Number: 2, Slots: 3, Port: 7002, TCPBase: 61020, TCPPorts: 10, Device: "eth1",
		Caps:    fabric.PortCaps{Driver: "xdp/generic/copy", MTU: 9000, MaxBufs: 18, TxDepth: 64, RxDepth: 21},
		RxDepth: 64, TxDepth: 64, Fill: 1024, Completion: 256, Frames: 1000, Part: 4 << 20, Base: 2 << 20, Parts: 8 << 20,
		ArenaFD: 4, LivenessFD: 5, Queues: []SlotQueue{{6, 7}, {8, 9}},
	}
}

// pairSlot is goodSlot with queues of its own.
func pairSlot() Slot {
	s := goodSlot()
	s.Fill, s.Completion, s.Frames, s.LivenessFD, s.Queues = 0, 0, 0, 0, nil
	s.Pairs = []QueuePair{{5, 6}, {7, 8}, {9, 9}}
	s.Part = 12 << 20
	return s
}

func TestSlot_textAndBack(t *testing.T) {
	for _, c := range []struct {
		slot Slot
		fds  []int
	}{{goodSlot(), []int{10, 11, 12, 13, 14, 15}}, {pairSlot(), []int{10, 11, 12, 13, 14, 15, 16}}} {
		want := c.slot
		got, err := ParseSlot(want.Text())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		before := want.Text()
		if at := want.At(10); at.ArenaFD != 10 || !reflect.DeepEqual(at.FDs(), c.fds) || want.Text() != before {
			t.Errorf("%v, want %v", at.FDs(), c.fds)
		}
	}
}

func TestOpenLineSlot_sharedQueue(t *testing.T) {
	if _, err := OpenPairSlot(goodSlot(), nil, nil, false); err == nil || !strings.Contains(err.Error(), "use OpenSlot") {
		t.Errorf("%v", err)
	}
}

func TestParseSlot_refuses(t *testing.T) {
	for name, spoil := range map[string]func(*Slot){
		"number":      func(s *Slot) { s.Number = 3 },
		"slots":       func(s *Slot) { s.Slots = 1 << 20 },
		"RX ring":     func(s *Slot) { s.RxDepth = 63 },
		"TX ring":     func(s *Slot) { s.TxDepth = 0 },
		"frames":      func(s *Slot) { s.Frames = 1025 },
		"FILL":        func(s *Slot) { s.Fill = 1 << 30 },
		"COMPLETION":  func(s *Slot) { s.Completion = 255 },
		"part":        func(s *Slot) { s.Part = 4097 },
		"base":        func(s *Slot) { s.Base = 1 << 20 },
		"parts":       func(s *Slot) { s.Parts = 4 << 20 },
		"far parts":   func(s *Slot) { s.Parts = 1 << 41 },
		"MTU":         func(s *Slot) { s.Caps.MaxBufs = 0 },
		"descriptors": func(s *Slot) { s.LivenessFD = -1 },
	} {
		s := goodSlot()
		spoil(&s)
		if _, err := ParseSlot(s.Text()); err == nil {
			t.Errorf("%s: %s was accepted", name, s.Text())
		}
	}
	for name, spoil := range map[string]func(*Slot){
		"fewer pairs than slots": func(s *Slot) { s.Pairs = s.Pairs[:2] },
		"no arena":               func(s *Slot) { s.ArenaFD = -1 },
		"no socket":              func(s *Slot) { s.Pairs[1].SendFD = -1 },
		"parts too early":        func(s *Slot) { s.Parts = s.Base },
		"nothing to send from":   func(s *Slot) { s.Part = s.Parts },
		"too many pairs":         func(s *Slot) { s.Pairs = make([]QueuePair, slotsMax+1) },
	} {
		s := pairSlot()
		spoil(&s)
		if _, err := ParseSlot(s.Text()); err == nil {
			t.Errorf("%s: %s was accepted", name, s.Text())
		}
	}
	if _, err := ParseSlot("nonsense"); err == nil {
		t.Error("nonsense was accepted")
	}
}

func FuzzParseSlot(f *testing.F) {
	s := goodSlot()
	f.Add(s.Text())
	lines := pairSlot()
	f.Add(lines.Text())
	f.Add(strings.Replace(s.Text(), "3", "-1", 1))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSlot(text)
		if err != nil {
			return
		}
		l := s.layout()
		if p := l.partOf(s.Number); len(s.Pairs) == 0 && (l.size() < int(p.Start)+p.Len || l.framesAt() < l.heldAt() || l.parts < l.end()) {
			t.Errorf("%s: %+v", text, l)
		}
	})
}

// The parts of the arena do not overlap, and addresses tell their owners.
func TestLayout(t *testing.T) {
	for _, l := range []layout{
		{1, 32, 1, hugePage, 0, 8 << 20}, {3, 64, 1000, hugePage, 4 << 20, 32 << 20}, {64, 1024, 64*2300 + 512, 64 << 20, 2 << 20, 1 << 30},
	} {
		g := l
		ends := []int{g.base, g.heldAt(), g.framesAt(), g.end(), g.parts, g.size()}
		for i := 1; i < len(ends); i++ {
			if ends[i] < ends[i-1] {
				t.Errorf("%+v: %v", l, ends)
			}
		}
		if g.framesAt()+g.frames*mem.FrameSize > g.end() || g.heldAt()+g.slots*g.heldLen() > g.framesAt() {
			t.Errorf("%+v: parts overlap", l)
		}
		slotTable := &slotTable{layout: g}
		for slot := range g.slots {
			p := g.partOf(slot)
			for _, a := range []mem.Addr{p.Start, p.Start + mem.Addr(p.Len) - 1} {
				if got := slotTable.owner(a); got != slot {
					t.Errorf("%+v: %#x is of slot %d, want %d", l, a, got, slot)
				}
			}
		}
	}
}

func TestQueueConfig(t *testing.T) {
	base := QueueConfig{Device: "eth1", Slots: 4, Steer: bpf.Config{PortBase: 7000}}
	c, err := base.WithDefaults()
	if err != nil || c.Frames != 4*(512+rxHeld+slab)+fillLeast || c.Steer.Slots != 4 || c.Part != 64<<20 {
		t.Errorf("%+v, %v", c, err)
	}
	many := base
	many.Slots = 5
	if c, err := many.WithDefaults(); err != nil || c.Part != 32<<20 {
		t.Errorf("%+v, %v", c, err)
	}
	if names := c.Budget().String(); !strings.Contains(names, "RX rings of slot 3") {
		t.Errorf("the budget does not name every slot:\n%s", names)
	}
	for want, spoil := range map[string]func(*QueueConfig){
		"QueueConfig.Slots is 0":          func(c *QueueConfig) { c.Slots = 0 },
		"QueueConfig.Slots is 1025":       func(c *QueueConfig) { c.Slots = 1025 },
		"QueueConfig.RxDepth is 100":      func(c *QueueConfig) { c.RxDepth = 100 },
		"QueueConfig.Part is -1":          func(c *QueueConfig) { c.Part = -1 },
		"RX rings of slot 3 needs 512":    func(c *QueueConfig) { c.Frames = 3 * (512 + rxHeld + slab) },
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

// Who holds a lock is there until the description of the file is closed, and
// nobody takes the number.
func TestLivenessFile(t *testing.T) {
	r, err := newLivenessFile()
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
	if _, err := sign(r.fd, 3); !errors.Is(err, ErrSlotTaken) {
		t.Errorf("a second 3: %v", err)
	}
	three.close()
	if !other.absent(3) {
		t.Error("3 is gone, and present")
	}
}
