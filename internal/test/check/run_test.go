package check

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// TestRun_seeds plays a few hundred seeds; XWARP_SEEDS=N plays N of them.
// cmd/xcheck is for thousands, and tells more.
func TestRun_seeds(t *testing.T) {
	seeds := uint64(300)
	if slow {
		seeds = 20
	}
	if n, err := strconv.ParseUint(os.Getenv("XWARP_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if res, err := Run(seed, Options{}); err != nil {
				t.Errorf("%v\n%v", &res.Scenario, err)
			}
		})
	}
}

// Seeds that failed: answers went for good to an Ethernet address that was read from a
// damaged frame.
func TestRun_failedBefore(t *testing.T) {
	for _, seed := range []uint64{3476, 4458} {
		if res, err := Run(seed, Options{}); err != nil {
			t.Errorf("%v\n%v", &res.Scenario, err)
		}
	}
}

// A seed does the same each time, byte for byte.
func TestRun_repeats(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			a, errA := Run(seed, Options{})
			b, errB := Run(seed, Options{})
			if a.Hash != b.Hash || a.Virtual != b.Virtual || errA != nil || errB != nil {
				t.Errorf("%x, then %x; %v, then %v", a.Hash, b.Hash, errA, errB)
			}
		})
	}
}

// The workload reaches what it is meant to reach: every operation succeeds
// somewhere and fails somewhere, and so on. A seed that does nothing finds nothing.
func TestRun_reaches(t *testing.T) {
	if slow {
		t.Skip("takes minutes with the race detector")
	}
	got := Coverage{}
	for seed := range uint64(150) {
		res, err := Run(seed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got.Add(res.Coverage)
	}
	for _, missing := range got.Missing() {
		t.Errorf("no seed has seen: %s", missing)
	}
}
