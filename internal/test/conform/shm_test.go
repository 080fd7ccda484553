package conform

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

func openShm(t testing.TB, a *mem.Arena, c shm.Config) *shm.Datagram {
	t.Helper()
	c.Arena, c.Track = a, true
	c.Local = netip.MustParseAddrPort("127.0.0.1:0")
	e, err := shm.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, e)
	return e
}

func TestDatagram_shm(t *testing.T) {
	arenas := newArenas(t)
	for _, c := range []shm.Config{
		{},
		{MTU: 1500},
		{MTU: 65535, Peers: 2},
		{MTU: 1500, Ring: 16 << 10},
	} {
		t.Run(fmt.Sprintf("MTU=%d,ring=%d", c.MTU, c.Ring), func(t *testing.T) {
			Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
				return openShm(t, arenas[0], c), openShm(t, arenas[1], c), runtime.Gosched
			})
		})
	}
}

// TestDatagram_shmFault runs through the decorator, which does nothing yet.
func TestDatagram_shmFault(t *testing.T) {
	arenas := newArenas(t)
	Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
		var ends [2]fabric.Datagram
		for i := range ends {
			d, err := fault.NewDatagram(openShm(t, arenas[i], shm.Config{}), fault.Config{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			ends[i] = d
		}
		return ends[0], ends[1], runtime.Gosched
	})
}
