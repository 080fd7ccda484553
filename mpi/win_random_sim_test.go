package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// TestWin_randomOverBadNetwork runs random traffic in the simulator: over each transport, with
// queues and limits of all kinds, with ghosts and without.
func TestWin_randomOverBadNetwork(t *testing.T) {
	for seed := range seeds(t, 120) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 9))
			x := winTraffic{seed: uint64(seed), rounds: 6, ops: 12, block: 40}
			if seed%4 == 1 {
				x.block, x.ops = 5000, 6
			}
			w := badWorld(uint64(seed), rnd, 1+seed%5)
			if seed%7 > 0 { // else as it is by default
				w.mpi = trafficConfig(rnd)
			}
			w.mpi.Transport = []mpi.Transport{mpi.RD, mpi.UD, mpi.RD, mpi.RC, mpi.Hybrid}[seed%5]
			w.mpi.PromoteMessages = 60
			x.simulate(t, w, rnd)
		})
	}
}

// simulate runs the traffic on a simulated world.
func (x winTraffic) simulate(t *testing.T, w *simWorld, rnd *rand.Rand) {
	x.served = w.ghosts > 0
	w.mpi.Ghosts.Binding = mpi.GhostBinding(rnd.IntN(5))
	w.launch(func(task *sim.Task, p *mpi.Proc) error {
		mine := x
		mine.compute = func() { task.Sleep(10 * mono.Microsecond) }
		return mine.run(p)
	})
	if err := w.Run(); err != nil {
		t.Fatalf("%+v, %d ghosts: %v", w.mpi, w.ghosts, err)
	}
}

// badWorld is a simulation of ranks in one of three on hosts of their own, else on one or two
// with one or two ghosts each. Its network loses, doubles, reorders and spoils frames, and falls
// apart for a while.
func badWorld(seed uint64, rnd *rand.Rand, ranks int) *simWorld {
	bad := sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.1, Corrupt: 0.005}
	config := sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: bad}, Limit: 20 * mono.Second} // ghosts may go on for ever
	w := newSimWorld(config, ranks)
	if ghosts := rnd.IntN(3); ghosts > 0 {
		w = newHostedWorld(config, ranks, min(ranks, 1+rnd.IntN(2)), ghosts)
	}
	w.fallApart(rnd, rnd.IntN(4), 20*mono.Millisecond)
	return w
}
