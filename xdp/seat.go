package xdp

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
)

// Seat is the place of one process at a [Queue] that many share, or at [Lines] of
// its own: all that [OpenSeat], or else [OpenLineSeat], needs besides privileges,
// of which it needs none. The process that made the queue passes it on as text,
// and the descriptors by inheritance.
type Seat struct {
	Number int `json:"seat"`  // which one, from 0
	Seats  int `json:"seats"` // how many the queue has

	// Port is the UDP port whose datagrams arrive here, TCPBase the first of
	// TCPPorts TCP ports.
	Port     uint16 `json:"port"`
	TCPBase  uint16 `json:"tcp_base"`
	TCPPorts int    `json:"tcp_ports"`

	Device     string   `json:"device"`
	Caps       PortCaps `json:"caps"`
	RxDepth    int      `json:"rx"`   // entries of the seat's RX ring
	TxDepth    int      `json:"tx"`   // entries of its TX ring
	Fill       int      `json:"fill"` // entries of each FILL ring that all share
	Completion int      `json:"completion"`
	Frames     int      `json:"frames"` // frames to receive into that all share
	Part       int      `json:"part"`   // bytes of the arena that are a seat's own

	// Descriptors: of the arena, of the roll of those present, and of the sockets
	// of the seat on each queue of the device, of which it sends on the first.
	ArenaFD int         `json:"arena_fd"`
	RollFD  int         `json:"roll_fd"`
	Queues  []SeatQueue `json:"queues,omitempty"`

	// Late says that the sockets are bound when all seats have mapped the rings,
	// and that Caps are not known before.
	Late bool `json:"late,omitempty"`

	// Lines are the queues of the seat if it has its own, by slot of the peer, or
	// one for all. Then only the arena of the descriptors above is there, the
	// seat's own and of the size of its part, and nothing of what is said to be
	// shared.
	Lines []Line `json:"lines,omitempty"`
}

// SeatQueue are the descriptors of a queue that a seat receives on: of the socket
// that the rings which all share are mapped from, and of its own.
type SeatQueue struct {
	RingsFD  int `json:"rings_fd"`
	SocketFD int `json:"socket_fd"`
}

// seatsMax keeps numbers of seats, and what is multiplied with them, small.
const seatsMax = 1024

// Text returns the seat in the form that ParseSeat reads.
func (s Seat) Text() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // numbers and strings
	}
	return string(b)
}

// ParseSeat reads what Seat.Text wrote.
func ParseSeat(text string) (Seat, error) {
	var s Seat
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("xdp: the description of a seat: %w", err)
	}
	return s, s.check()
}

func (s *Seat) check() error {
	switch {
	case s.Seats < 1 || s.Seats > seatsMax || s.Number < 0 || s.Number >= s.Seats:
		return s.wrong("number", s.Number)
	case !isDepth(s.RxDepth):
		return s.wrong("RX ring", s.RxDepth)
	case !isDepth(s.TxDepth):
		return s.wrong("TX ring", s.TxDepth)
	case s.Part < mem.FrameSize || s.Part%mem.FrameSize != 0 || s.Part > 1<<40:
		return s.wrong("part of the arena", s.Part)
	case !s.Late && !s.sound(s.Caps):
		return s.wrong("MTU", s.Caps.MTU)
	case len(s.Lines) > 0:
		return s.checkLines()
	case s.Frames < 1 || s.Frames > s.Fill:
		return s.wrong("frames", s.Frames)
	case !isPower(s.Fill) || s.Fill > sharedDepthMax:
		return s.wrong("FILL ring", s.Fill)
	case !isPower(s.Completion) || s.Completion > sharedDepthMax:
		return s.wrong("COMPLETION ring", s.Completion)
	case s.ArenaFD < 0 || s.RollFD < 0:
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

// queuesMax is the most queues that one socket each is opened on.
const queuesMax = 1024

// sound reports whether a port of the seat can have these.
func (s *Seat) sound(c PortCaps) bool {
	return c.TxDepth == s.TxDepth && c.MaxBufs >= 1 && c.MaxBufs <= fabric.MaxBufs && c.MTU >= mtuMin
}

func (s *Seat) checkLines() error {
	if n := len(s.Lines); n > seatsMax || n > 1 && n < s.Seats {
		return s.wrong("lines", n)
	}
	if s.Part%hugePage != 0 || s.Part <= receiveLen(len(s.Lines), s.RxDepth) {
		return s.wrong("part of the arena", s.Part)
	}
	for _, l := range s.Lines {
		if s.ArenaFD < 0 || l.ReceiveFD < 0 || l.SendFD < 0 {
			return s.wrong("descriptors", l.ReceiveFD)
		}
	}
	return nil
}

// FDs returns the descriptors of the seat in the order of Seat.At.
func (s *Seat) FDs() []int {
	fds := []int{s.ArenaFD}
	if len(s.Lines) == 0 {
		fds = append(fds, s.RollFD)
	}
	for _, q := range s.Queues {
		fds = append(fds, q.RingsFD, q.SocketFD)
	}
	for _, l := range s.Lines {
		fds = append(fds, l.ReceiveFD, l.SendFD)
	}
	return fds
}

// At returns the seat as a process sees it that has the descriptors of FDs at
// the numbers from fd on.
func (s Seat) At(fd int) Seat {
	s.ArenaFD = fd
	if len(s.Lines) == 0 {
		s.RollFD = fd + 1
		s.Queues = slices.Clone(s.Queues)
		for i := range s.Queues {
			s.Queues[i] = SeatQueue{RingsFD: fd + 2 + 2*i, SocketFD: fd + 3 + 2*i}
		}
		return s
	}
	s.Lines = slices.Clone(s.Lines)
	for i := range s.Lines {
		s.Lines[i] = Line{ReceiveFD: fd + 1 + 2*i, SendFD: fd + 2 + 2*i}
	}
	return s
}

func (s *Seat) wrong(what string, n int) error {
	return fmt.Errorf("xdp: the description of seat %d of %d makes no sense (%s: %d): the processes must be of the same version", s.Number, s.Seats, what, n)
}

// layout says where everything is in the arena of the seat's queue.
func (s *Seat) layout() layout {
	return layout{seats: s.Seats, txDepth: s.TxDepth, frames: s.Frames, part: s.Part}
}

// layout divides the arena of a shared queue: the meeting, the ledger, the frames that all
// receive into, and for each seat a part of its own. Parts have one size, so
// that an address tells whose it is.
type layout struct{ seats, txDepth, frames, part int }

// lineLen is what parts of the ledger are aligned to: what different processors
// write is on cache lines, and pairs of lines, of its own.
const lineLen = 128

func (l layout) boxLen() int      { return lineLen + roundUp(l.txDepth*8, lineLen) }
func (l layout) boxesAt() int     { return meetingLen }
func (l layout) heldAt() int      { return l.boxesAt() + l.seats*l.boxLen() }
func (l layout) heldLen() int     { return roundUp((l.frames+63)/64*8, lineLen) }
func (l layout) framesAt() int    { return roundUp(l.heldAt()+l.seats*l.heldLen(), mem.FrameSize) }
func (l layout) partsAt() int     { return roundUp(l.framesAt()+l.frames*mem.FrameSize, hugePage) }
func (l layout) size() int        { return l.partsAt() + l.seats*l.part }
func roundUp(n, to int) int       { return (n + to - 1) / to * to }
func (l layout) common() mem.Part { return mem.Part{Len: l.partsAt()} }

func (l layout) partOf(seat int) mem.Part {
	return mem.Part{Start: mem.Addr(l.partsAt() + seat*l.part), Len: l.part}
}

// hugePage is what parts are aligned to: none shares a huge page with another.
const hugePage = 2 << 20
