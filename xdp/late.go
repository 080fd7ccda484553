package xdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Before Linux 6.4 the rings of a bound socket cannot be mapped, and slots
// map those that another process has made (QueueConfig.Late). So each slot maps
// them first and says so; when all have that are still there, the maker of the queues
// binds the sockets; and then the slots are told what the ports can do, which is
// known only now. They meet in the beginning of what they share in the arena.

// meeting is what slots and the process that made the queues tell one another.
type meeting struct {
	state  *uint32  // a state of it, which Bind writes when all else is written
	length *uint32  // bytes of text
	begun  *uint32  // slotTable.begun, which has its place here
	text   []byte   // caps as JSON, or why there is no port
	mapped []uint32 // by slot: not 0 when it has mapped the rings
}

// The states of a meeting.
const (
	meetingOpen = iota
	meetingBound
	meetingFailed
)

// meetingLen is how much of the arena a meeting takes.
const meetingLen = 2 * mem.FrameSize

func meetingOf(arena *Arena, l layout) *meeting {
	b := arena.Bytes()[l.base:][:meetingLen]
	words := mem.ScalarsOf[uint32](b[:12])
	return &meeting{&words[0], &words[1], &words[2], b[lineLen:mem.FrameSize], mem.ScalarsOf[uint32](b[mem.FrameSize:][:4*slotsMax])}
}

// close ends the meeting with a text.
func (m *meeting) close(state uint32, text []byte) {
	*m.length = uint32(copy(m.text, text))
	atomic.StoreUint32(m.state, state)
}

// await says that a slot has mapped its rings, and returns what its port can do
// when all have.
func (m *meeting) await(slot int) (caps PortCaps, err error) {
	atomic.StoreUint32(&m.mapped[slot], 1)
	for atomic.LoadUint32(m.state) == meetingOpen {
		time.Sleep(time.Millisecond)
	}
	text := m.text[:min(int(*m.length), len(m.text))]
	if atomic.LoadUint32(m.state) != meetingBound {
		return caps, errors.New(string(text))
	}
	if err := json.Unmarshal(text, &caps); err != nil {
		return caps, fmt.Errorf("xdp: what the port of slot %d can do: %w", slot, err)
	}
	return caps, nil
}

// Bind binds the sockets of queues that were opened with QueueConfig.Late, once
// each slot was opened or is gone, which gone reports. It reports whether that was
// so. When it fails the slots do, with the same reason. The calling thread must be in the
// network namespace of the device.
func (q *Queue) Bind(gone func(slot int) bool) (done bool, err error) {
	fault := guarded(func() error {
		done, err = q.bindLate(gone)
		return nil
	})
	return done || fault != nil, errors.Join(err, fault)
}

func (q *Queue) bindLate(gone func(slot int) bool) (done bool, err error) {
	m := meetingOf(q.arena, q.layout)
	for slot := range q.config.Slots {
		if atomic.LoadUint32(&m.mapped[slot]) == 0 && !gone(slot) {
			return false, nil
		}
	}
	if err := q.bind(); err != nil {
		m.close(meetingFailed, []byte(err.Error()))
		return true, err
	}
	q.steering.device.settle()
	text, err := json.Marshal(q.caps)
	if err != nil {
		panic(err) // numbers and strings
	}
	m.close(meetingBound, text)
	return true, nil
}

// MapsBound reports whether this kernel lets a process map the rings of a socket
// that is bound (Linux 6.4). It tries on the loopback device of the network
// namespace of the calling thread, which it does not disturb. Where that cannot be
// tried, the number of the kernel decides.
func MapsBound() bool {
	if maps, err := triesMapping(); err == nil {
		return maps
	}
	return versionAtLeast(kernelRelease(), 6, 4)
}

func triesMapping() (maps bool, err error) {
	const loopback = "lo"
	dev, err := lookup(loopback)
	if err != nil {
		return false, err
	}
	arena, err := mem.New(mem.Config{Size: depthMin * mem.FrameSize, SmallPages: true})
	if err != nil {
		return false, err
	}
	defer arena.Close()
	d := depths{depthMin, depthMin, depthMin, depthMin}
	s, err := newSocket(loopback, arena, d)
	if err != nil {
		return false, err
	}
	defer s.close()
	if err := s.bind(dev, 0, []uint16{unix.XDP_COPY}, 1); err != nil {
		return false, err
	}
	again, err := mapRings(s.fd, d)
	if err != nil {
		return false, nil //nolint:nilerr // that is the answer
	}
	again.unmap()
	return true, nil
}
