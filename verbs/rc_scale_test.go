package verbs_test

import (
	"errors"
	"testing"

	"github.com/xwarp/xwarp/bench/footprint"
)

// connectionCost returns how many bytes of the heap a process keeps for each of
// n connections that have carried a message in both directions and are idle.
func connectionCost(t *testing.T, c footprint.Config, n int) int64 {
	t.Helper()
	c.Peers = 1
	one, err := footprint.Heap(c)
	must(t, err)
	c.Peers = n
	all, err := footprint.Heap(c)
	must(t, err)
	return (all - one) / int64(n-1)
}

// One process holds a thousand connections: what each costs in user space, and
// what the kernel keeps for it.
func TestRCScale_kernelTCP(t *testing.T) {
	const n = 1000
	most, err := footprint.MostOverTCP()
	must(t, err)
	if most < n {
		t.Skipf("%d connections to one process take %d open files with both ends of each, and the limit leaves room for %d connections: raise it with ulimit -n", n, 2*n, most)
	}
	each := connectionCost(t, footprint.Config{Carrier: footprint.KernelTCP, Shared: true}, n)
	socket, err := footprint.Socket()
	if err != nil && !errors.Is(err, footprint.ErrNoSlabs) {
		t.Fatal(err)
	}
	t.Logf("%d idle connections: %d bytes each in user space, and %d in the kernel", n, each, socket)
	if each > idleConnection || each < 1000 {
		t.Errorf("an idle connection takes %d bytes, want at most %d", each, idleConnection)
	}
}

func TestRCScale_simulator(t *testing.T) {
	const n = 10_000
	each := connectionCost(t, footprint.Config{Carrier: footprint.SimTCP, Shared: true}, n)
	t.Logf("%d idle connections: %d bytes each in user space", n, each)
	if each > idleConnection || each < 1000 {
		t.Errorf("an idle connection takes %d bytes, want at most %d", each, idleConnection)
	}
}

// idleConnection is the most bytes of the heap that an idle connection may
// take: its queue pair, its identifier, and the first of its send queue.
const idleConnection = 4 << 10
