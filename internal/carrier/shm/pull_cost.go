package shm

import (
	"os"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
)

// PullCost is what process_vm_readv(2) takes on this machine.
type PullCost struct {
	Call    float64 // ns for a call
	PerByte float64 // ns for each byte
}

// Sizes and number of the calls that MeasurePull makes: 100 us in all.
const (
	costShort = 4 << 10
	costLong  = 32 << 10
	costCalls = 16

	callMost = 20_000 // ns; what takes longer was disturbed, or is no plain machine
	byteMost = 2      // ns
)

// MeasurePull measures calls that read from this process itself, which the kernel
// does as it reads from others. The shortest of several calls counts: there is
// nothing that makes a call shorter than it is, and much that makes it longer. It
// returns false where the call is forbidden, or the figures make no sense.
func MeasurePull(clock mono.Clock) (PullCost, bool) {
	var p puller
	var guard [guardLen]byte
	src, dst := make([]byte, costLong), make([]byte, costLong)
	for i := range src { // pages not written to yet are all one
		src[i], dst[i] = 1, 2
	}
	least := [2]mono.Duration{mono.Second, mono.Second}
	for range costCalls {
		for i, n := range [2]int{costShort, costLong} {
			before := clock.Now()
			if p.read(os.Getpid(), dst[:n], mem.AddressOf(src), mem.AddressOf(guard[:])) != nil {
				return PullCost{}, false
			}
			least[i] = min(least[i], clock.Now().Sub(before))
		}
	}
	perByte := float64(least[1]-least[0]) / (costLong - costShort)
	c := PullCost{Call: float64(least[0]) - perByte*costShort, PerByte: perByte}
	return c, c.Call > 0 && c.Call < callMost && c.PerByte > 0 && c.PerByte < byteMost
}
