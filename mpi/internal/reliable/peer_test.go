package reliable

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/xwarp/xwarp/verbs"
)

func TestPeerAt(t *testing.T) {
	var e QueuePair
	remote := func(i int) verbs.Remote {
		return verbs.RemoteOf(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 18700))
	}
	if e.peerAt(remote(0), 2) != nil {
		t.Error("found where nobody is")
	}
	const n = 3000
	for i := range n {
		e.peers.Add(remote(i).Hash(), &Peer{remote: remote(i), qpn: 2})
	}
	for i := range n {
		if p := e.peerAt(remote(i), 2); p == nil || p.remote != remote(i) {
			t.Fatalf("peer %d is not found", i)
		}
		if e.peerAt(remote(i), 3) != nil {
			t.Fatalf("another queue pair of peer %d is found", i)
		}
	}
	if e.peerAt(remote(n), 2) != nil {
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
