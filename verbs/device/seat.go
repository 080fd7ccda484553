package device

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/fabric/near"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/shm"
	"github.com/xwarp/xwarp/xdp"
)

// takeSeat reads Spec.Seat and fills in what it decides.
func (s *Spec) takeSeat() error {
	switch {
	case !strings.HasPrefix(s.Fabric, "xdp"):
		return fmt.Errorf("device: a seat at a shared queue is of no use to fabric %q: leave Seat away", s.Fabric)
	case s.Fabric == "xdp:asavie":
		return fmt.Errorf("device: fabric %q cannot share a queue: leave Seat away", s.Fabric)
	case s.BulkQueue != 0:
		return errors.New("device: a seat is at one queue: leave BulkQueue or Seat away")
	}
	seat, err := xdp.ParseSeat(s.Seat)
	if err != nil {
		return fmt.Errorf("device: %w", err)
	}
	s.seat = &seat
	s.Device, s.Port = seat.Device, seat.Port
	s.TCPBase, s.TCPPorts = seat.TCPBase, seat.TCPPorts
	if s.RC && seat.TCPPorts == 0 {
		return errors.New("device: the queue was opened without TCP ports, which RC needs (the network card may not steer them: let the ranks share a queue)")
	}
	return nil
}

// openArena makes an arena, or maps that of the seat.
func (s *Spec) openArena() (*mem.Arena, error) {
	if s.seat != nil {
		return s.seat.MapArena()
	}
	return mem.New(mem.Config{Size: s.Arena})
}

// openSeat opens the port of the seat.
func (s *Spec) openSeat(arena *mem.Arena) (ports, error) {
	port, err := portOf(*s.seat, arena)
	if err != nil {
		return ports{}, err
	}
	captured, err := s.capturePort(port)
	return ports{port: captured}, err
}

// portOf opens the port of a seat at a shared queue, or at queues of its own.
func portOf(seat xdp.Seat, arena *mem.Arena) (fabric.Port, error) {
	if len(seat.Lines) > 0 {
		return xdp.OpenLineSeat(seat, arena, false)
	}
	port, err := xdp.OpenSeat(seat, arena, false)
	if err != nil {
		return nil, err // not port: an interface with a nil in it is not nil
	}
	return port, nil
}

// batchMost is how many datagrams the LLP sends at a time at most.
const batchMost = 64

// withNear puts beside a carrier on a seat one in shared memory, for the other
// seats of this host: the NIC does not send to itself.
func (s *Spec) withNear(far fabric.Datagram) (fabric.Datagram, error) {
	caps := far.Caps()
	local, err := shm.Open(shm.Config{
		Arena: far.Arena(), Local: far.Local(), MTU: caps.MaxPayload + ipUDPLen(far.Local().Addr()),
		Frames: 1, Peers: max(1, s.seat.Seats-1),
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
