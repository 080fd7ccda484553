package mpi_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// seeds returns how many seeds to try: n, fewer with the race detector, or
// XWARP_SEEDS.
func seeds(t *testing.T, n int) int {
	s, set := os.LookupEnv("XWARP_SEEDS")
	switch {
	case !set && slow:
		return max(n/10, 1)
	case !set:
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("XWARP_SEEDS is %q: want a number of seeds", s)
	}
	return n
}

// TestRandom_messagesOverBadNetwork is the proof of the whole path: 10,000
// random messages arrive intact and in order though the network loses, doubles,
// reorders and spoils frames.
func TestRandom_messagesOverBadNetwork(t *testing.T) {
	bad := sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.05, Corrupt: 0.005}
	for seed := range seeds(t, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			e := exercise{seed: uint64(seed), messages: 10_000, maxLen: 4 << 20, tags: 1 + seed%6, wild: float64(seed%5) / 8}
			ranks := 2 + seed%4
			w := newSimWorld(sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: bad}}, ranks)
			if seed%3 == 1 {
				w.mpi.Rendezvous = mpi.RendezvousRead
			}
			w.launch(func(_ *sim.Task, p *mpi.Proc) error { return e.run(p) })
			if err := w.Run(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRandom_sameSeedSameTrace runs one seed twice, byte for byte.
func TestRandom_sameSeedSameTrace(t *testing.T) {
	var hashes [2]uint64
	for i := range hashes {
		w := newSimWorld(sim.Config{Seed: 3, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05}}}, 3)
		w.launch(func(_ *sim.Task, p *mpi.Proc) error {
			return exercise{seed: 3, messages: 300, maxLen: 200_000, tags: 3, wild: 0.3}.run(p)
		})
		if err := w.Run(); err != nil {
			t.Fatal(err)
		}
		hashes[i] = w.TraceHash()
	}
	if hashes[0] != hashes[1] {
		t.Errorf("two runs of one seed differ: %x, %x", hashes[0], hashes[1])
	}
}
