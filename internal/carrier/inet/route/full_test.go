package route

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A neighbour that the kernel has no room for is not one that does not answer.
func TestResolve_tableIsFull(t *testing.T) {
	if os.Getenv("XWARP_LONG") != "1" {
		t.Skip("fills a table that all network namespaces of this machine share: XWARP_LONG=1 runs it")
	}
	b := open(t, Config{Tries: 1})
	b.inA(func() error {
		link, err := netlink.LinkByName(b.a.Dev)
		if err != nil {
			return err
		}
		for i := range 1 << 20 {
			err := netlink.NeighSet(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, State: unix.NUD_REACHABLE, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1},
				IP: net.IPv4(10, byte(100+i>>16), byte(i>>8), byte(i)),
			})
			if errors.Is(err, unix.ENOBUFS) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return errors.New("it takes a million")
	})
	_, err := b.Resolve(netip.AddrFrom4([4]byte{10, 87, 0, 77}))
	if !errors.Is(err, ErrTableFull) || !strings.Contains(err.Error(), "sysctl -w net.ipv4.neigh.default.gc_thresh3=") {
		t.Errorf("it says %v", err)
	}
}
