package device

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/near"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/xdp"
)

// takeSlot reads Spec.Slot and fills in what it decides.
func (s *Spec) takeSlot() error {
	switch {
	case !strings.HasPrefix(s.Fabric, "xdp"):
		return fmt.Errorf("device: a slot at a shared queue is of no use to fabric %q: leave Slot away", s.Fabric)
	case s.Fabric == "xdp:asavie":
		return fmt.Errorf("device: fabric %q cannot share a queue: leave Slot away", s.Fabric)
	}
	var devices []string
	for line := range strings.SplitSeq(s.Slot, "\n") {
		slot, err := xdp.ParseSlot(line)
		if err != nil {
			return fmt.Errorf("device: %w", err)
		}
		s.slots, devices = append(s.slots, slot), append(devices, slot.Device)
	}
	s.slot = &s.slots[0]
	s.Device, s.Port = strings.Join(devices, ","), s.slot.Port
	s.TCPBase, s.TCPPorts = s.slot.TCPBase, s.slot.TCPPorts
	if s.RC && s.TCPPorts == 0 {
		return errors.New("device: the queue was opened without TCP ports, which RC needs (the network card may not steer them: let the ranks share a queue)")
	}
	return nil
}

// openArena makes an arena, or maps that of the slot. Those of slots on several devices
// are the same one.
func (s *Spec) openArena() (*mem.Arena, error) {
	if s.slot == nil {
		return mem.New(mem.Config{Size: s.Arena, Grow: !strings.HasPrefix(s.Fabric, "xdp")})
	}
	arena, err := s.slot.MapArena()
	if err != nil {
		return nil, err
	}
	for i := range s.slots[1:] {
		other := &s.slots[1+i]
		_ = unix.Close(other.ArenaFD)
		other.ArenaFD = s.slot.ArenaFD
	}
	return arena, nil
}

// openSlot opens the port of the slot.
func (s *Spec) openSlot(arena *mem.Arena) (fabric.Port, error) {
	port, err := portOf(*s.slot, arena, s.pool)
	if err != nil {
		return nil, err
	}
	return s.capturePort(port)
}

// portOf opens the port of a slot at a shared queue, or at queues of its own.
func portOf(slot xdp.Slot, arena *mem.Arena, pool *mem.Pool) (fabric.Port, error) {
	if len(slot.Pairs) > 0 {
		return xdp.OpenPairSlot(slot, arena, pool, false)
	}
	port, err := xdp.OpenSlot(slot, arena, pool, false)
	if err != nil {
		return nil, err // not port: an interface with a nil in it is not nil
	}
	return port, nil
}

// batchMost is how many datagrams the LLP sends at a time at most.
const batchMost = 64

// withNear puts beside a carrier on a slot one in shared memory, for the other
// slots of this host: the NIC does not send to itself.
func (s *Spec) withNear(far fabric.Datagram) (fabric.Datagram, error) {
	caps := far.Caps()
	local, err := shm.Open(shm.Config{
		Arena: far.Arena(), Local: far.Local(), MTU: caps.MaxPayload + ipUDPLen(far.Local().Addr()),
		Frames: 1, Peers: max(1, s.slot.Slots-1),
	})
	if err != nil {
		return nil, errors.Join(err, far.Close())
	}
	joined, err := near.New(far, local, batchMost)
	if err != nil {
		return nil, err
	}
	return joined, nil
}
