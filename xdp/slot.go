package xdp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// Slot is the place of one process at a [Queue] that many share, or at [QueueSet] of
// its own: all that [OpenSlot], or else [OpenPairSlot], needs besides privileges,
// of which it needs none. The process that made the queue passes it on as text,
// and the descriptors by inheritance.
type Slot struct {
	Number int `json:"slot"`  // which one, from 0
	Slots  int `json:"slots"` // how many the queue has

	// Port is the UDP port whose datagrams arrive here, TCPBase the first of
	// TCPPorts TCP ports.
	Port     uint16 `json:"port"`
	TCPBase  uint16 `json:"tcp_base"`
	TCPPorts int    `json:"tcp_ports"`

	Device     string   `json:"device"`
	Caps       PortCaps `json:"caps"`
	RxDepth    int      `json:"rx"`   // entries of the slot's RX ring
	TxDepth    int      `json:"tx"`   // entries of its TX ring
	Fill       int      `json:"fill"` // entries of each FILL ring that all share
	Completion int      `json:"completion"`
	BusyPoll   bool     `json:"busy_poll,omitempty"` // the sockets have asked for it
	Frames     int      `json:"frames"`              // frames to receive into that all share
	Part       int      `json:"part"`                // bytes of the arena that are a slot's own

	// Base is where in the arena begins what is of this device: that of a process with
	// slots on several is the same for all of them. Parts is where the parts of the
	// slots begin, behind what is of any device.
	Base  int `json:"base,omitempty"`
	Parts int `json:"parts"`

	// Descriptors: of the arena, of the liveness file, and of the sockets
	// of the slot on each queue of the device, of which it sends on the first.
	ArenaFD    int         `json:"arena_fd"`
	LivenessFD int         `json:"liveness_fd"`
	Queues     []SlotQueue `json:"queues,omitempty"`

	// Late says that the sockets are bound when all slots have mapped the rings,
	// and that Caps are not known before.
	Late bool `json:"late,omitempty"`

	// A QueueSet is the queues of the slot if it has its own, by slot of the peer, or
	// one for all. Then only the arena of the descriptors above is there, the
	// slot's own and of the size of its part, and nothing of what is said to be
	// shared: it receives from Base on, and sends from Parts on.
	Pairs []QueuePair `json:"pairs,omitempty"`
}

// SlotQueue are the descriptors of a queue that a slot receives on: of the socket
// that the rings which all share are mapped from, and of its own.
type SlotQueue struct {
	RingsFD  int `json:"rings_fd"`
	SocketFD int `json:"socket_fd"`
}

// slotsMax keeps numbers of slots, and what is multiplied with them, small.
const slotsMax = 1024

// Text returns the slot in the form that ParseSlot reads.
func (s Slot) Text() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // numbers and strings
	}
	return string(b)
}

// ParseSlot reads what Slot.Text wrote. It fails for any other text.
func ParseSlot(text string) (Slot, error) {
	var s Slot
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("xdp: the description of a slot: %w", err)
	}
	return s, s.check()
}

func (s *Slot) check() error {
	switch {
	case s.Slots < 1 || s.Slots > slotsMax || s.Number < 0 || s.Number >= s.Slots:
		return s.wrong("number", s.Number)
	case !isDepth(s.RxDepth):
		return s.wrong("RX ring", s.RxDepth)
	case !isDepth(s.TxDepth):
		return s.wrong("TX ring", s.TxDepth)
	case s.Part < mem.FrameSize || s.Part%mem.FrameSize != 0 || s.Part > arenaMax:
		return s.wrong("part of the arena", s.Part)
	case s.Base < 0 || s.Base%hugePage != 0 || s.Base > arenaMax || s.Parts%hugePage != 0 || s.Parts > arenaMax:
		return s.wrong("place in the arena", s.Base)
	case !s.Late && !s.sound(s.Caps):
		return s.wrong("MTU", s.Caps.MTU)
	case len(s.Pairs) > 0:
		return s.checkPairs()
	case s.Frames < 1 || s.Frames > s.Fill:
		return s.wrong("frames", s.Frames)
	case !isPower(s.Fill) || s.Fill > sharedDepthMax:
		return s.wrong("FILL ring", s.Fill)
	case !isPower(s.Completion) || s.Completion > sharedDepthMax:
		return s.wrong("COMPLETION ring", s.Completion)
	case s.Parts < s.layout().end():
		return s.wrong("parts of the arena", s.Parts)
	case s.ArenaFD < 0 || s.LivenessFD < 0:
		return s.wrong("descriptors", s.ArenaFD)
	case len(s.Queues) == 0 || len(s.Queues) > queuesMax:
		return s.wrong("queues", len(s.Queues))
	}
	for _, q := range s.Queues {
		if q.RingsFD < 0 || q.SocketFD < 0 {
			return s.wrong("descriptors", q.SocketFD)
		}
	}
	return nil
}

// arenaMax keeps sizes and places small, so that sums of them are right.
const arenaMax = 1 << 40

// queuesMax is the most queues that one socket each is opened on.
const queuesMax = 1024

// sound reports whether a port of the slot can have these.
func (s *Slot) sound(c PortCaps) bool {
	return c.TxDepth == s.TxDepth && c.MaxBufs >= 1 && c.MaxBufs <= fabric.MaxBufs && c.MTU >= mtuMin
}

func (s *Slot) checkPairs() error {
	if n := len(s.Pairs); n > slotsMax || n > 1 && n < s.Slots {
		return s.wrong("pairs", n)
	}
	if s.Part%hugePage != 0 || s.Part <= s.Parts || s.Parts < s.Base+receiveLen(len(s.Pairs), s.RxDepth) {
		return s.wrong("part of the arena", s.Part)
	}
	for _, l := range s.Pairs {
		if s.ArenaFD < 0 || l.ReceiveFD < 0 || l.SendFD < 0 {
			return s.wrong("descriptors", l.ReceiveFD)
		}
	}
	return nil
}

// FDs returns the descriptors of the slot in the order of Slot.At.
func (s *Slot) FDs() []int {
	fds := []int{s.ArenaFD}
	if len(s.Pairs) == 0 {
		fds = append(fds, s.LivenessFD)
	}
	for _, q := range s.Queues {
		fds = append(fds, q.RingsFD, q.SocketFD)
	}
	for _, l := range s.Pairs {
		fds = append(fds, l.ReceiveFD, l.SendFD)
	}
	return fds
}

// At returns the slot as a process sees it that has the descriptors of FDs at
// the numbers from fd on.
func (s Slot) At(fd int) Slot {
	s.ArenaFD = fd
	if len(s.Pairs) == 0 {
		s.LivenessFD = fd + 1
		s.Queues = slices.Clone(s.Queues)
		for i := range s.Queues {
			s.Queues[i] = SlotQueue{RingsFD: fd + 2 + 2*i, SocketFD: fd + 3 + 2*i}
		}
		return s
	}
	s.Pairs = slices.Clone(s.Pairs)
	for i := range s.Pairs {
		s.Pairs[i] = QueuePair{ReceiveFD: fd + 1 + 2*i, SendFD: fd + 2 + 2*i}
	}
	return s
}

func (s *Slot) wrong(what string, n int) error {
	return fmt.Errorf("xdp: the description of slot %d of %d makes no sense (%s: %d): the processes must be of the same version", s.Number, s.Slots, what, n)
}

// layout says where everything is in the arena of the slot's queue.
func (s *Slot) layout() layout {
	return layout{slots: s.Slots, txDepth: s.TxDepth, frames: s.Frames, part: s.Part, base: s.Base, parts: s.Parts}
}

// layout divides the arena of a shared queue: the meeting, the slotTable, the frames that all
// receive into, from base on, and for each slot a part of its own, from parts on. In
// between is what belongs to queues of other devices that have the same slots. Parts
// have one size, so that an address tells whose it is.
type layout struct{ slots, txDepth, frames, part, base, parts int }

// lineLen is what parts of the slotTable are aligned to: what different processors
// write is on cache lines, and pairs of lines, of its own.
const lineLen = 128

func (l layout) mailboxLen() int  { return lineLen + roundUp(l.txDepth*8, lineLen) }
func (l layout) mailboxesAt() int { return l.base + meetingLen }
func (l layout) heldAt() int      { return l.mailboxesAt() + l.slots*l.mailboxLen() }
func (l layout) heldLen() int     { return roundUp((l.frames+63)/64*8, lineLen) }
func (l layout) framesAt() int    { return roundUp(l.heldAt()+l.slots*l.heldLen(), mem.FrameSize) }
func (l layout) end() int         { return roundUp(l.framesAt()+l.frames*mem.FrameSize, hugePage) }
func (l layout) size() int        { return l.parts + l.slots*l.part }
func roundUp(n, to int) int       { return (n + to - 1) / to * to }
func (l layout) common() mem.Part { return mem.Part{Len: l.parts} }

func (l layout) partOf(slot int) mem.Part {
	return mem.Part{Start: mem.Addr(l.parts + slot*l.part), Len: l.part}
}

// hugePage is what parts are aligned to: none shares a huge page with another.
const hugePage = 2 << 20
