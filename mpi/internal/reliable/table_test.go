package reliable

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

func TestTable(t *testing.T) {
	var tab table
	remote := func(i int) verbs.Remote {
		return verbs.RemoteOf(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 18700))
	}
	if tab.find(remote(0), 2) != nil {
		t.Error("found in an empty table")
	}
	const n = 3000
	for i := range n {
		tab.add(&Peer{remote: remote(i), qpn: 2})
	}
	for i := range n {
		if p := tab.find(remote(i), 2); p == nil || p.remote != remote(i) {
			t.Fatalf("peer %d is not found", i)
		}
		if tab.find(remote(i), 3) != nil {
			t.Fatalf("another queue pair of peer %d is found", i)
		}
	}
	if tab.find(remote(n), 2) != nil {
		t.Error("somebody else is found")
	}
}

// An idle peer takes less than 1 KiB, one that was never used less than 100 bytes.
func TestSize_peer(t *testing.T) {
	if n := reflect.TypeFor[conn]().Size(); n > 640 {
		t.Errorf("%d bytes for a peer that is idle", n)
	}
	if n := reflect.TypeFor[Peer]().Size(); n > 64 {
		t.Errorf("%d bytes for a peer that was never used", n)
	}
}
