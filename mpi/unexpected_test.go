package mpi_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// TestUnexpected_floodDoesNotStopOthers: one rank sends far more than is kept, and
// what others send, in messages and in collectives, comes all the same, before any
// of it is received.
func TestUnexpected_floodDoesNotStopOthers(t *testing.T) {
	w := newSimWorld(sim.Config{}, 3)
	w.mpi.UnexpectedMax = 100_000
	const messages, length = 2000, 2000
	w.launch(func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		other, err := c.Dup()
		if err != nil {
			return err
		}
		var flood []mpi.Request
		if c.Rank() == 2 {
			for i := range messages {
				b := make([]byte, length)
				pattern(b, i)
				r, err := mpi.Isend(c, b, 0, 5)
				if err != nil {
					return err
				}
				flood = append(flood, r)
			}
		}
		for round := range 8 {
			if err := sums(other, round); err != nil {
				return err
			}
		}
		switch c.Rank() {
		case 0:
			if _, err := mpi.Recv(c, make([]byte, 10), 1, 7); err != nil {
				return err
			}
			b := make([]byte, length)
			for i := range messages {
				if _, err := mpi.Recv(c, b, 2, 5); err != nil {
					return err
				}
				if err := checkPattern(b, i); err != nil {
					return fmt.Errorf("message %d: %w", i, err)
				}
			}
		case 1:
			if err := mpi.Send(c, make([]byte, 10), 0, 7); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(flood); err != nil {
			return err
		}
		return other.Free()
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}
