package mpi_test

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// TestTyped_overBadNetworks sends data in all modes while the network loses, doubles,
// reorders and spoils frames, over each transport.
func TestTyped_overBadNetworks(t *testing.T) {
	bad := sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.005}
	few := mpi.Config{Receives: 4, Sends: 2, EagerMax: 1000}
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC, mpi.Hybrid} {
		for seed := range seeds(t, 5) {
			t.Run(fmt.Sprint(transport, seed), func(t *testing.T) {
				t.Parallel()
				w := newSimWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: bad}}, 2)
				if seed%2 == 1 {
					w.mpi = few
				}
				w.mpi.Transport, w.mpi.PromoteMessages = transport, 20
				w.launch(func(_ *sim.Task, p *mpi.Proc) error { return typedMessages(p.World()) })
				if err := w.Run(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
