package sim

import (
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

func TestSwitch_broadcastReachesAllOthers(t *testing.T) {
	w := New(Config{})
	n := w.Nodes(4)
	ends := make([]*end, 4)
	for i := range ends {
		ends[i] = open(t, n[i])
	}
	w.Go(n[1], "sender", func(task *Task) error {
		addr, _ := ends[1].port.Pool().Get()
		frame := n[1].Arena().At(addr, 60)
		copy(frame, "\xff\xff\xff\xff\xff\xff")
		ends[1].port.Send([]fabric.Desc{{Addr: addr, Len: 60}})
		ends[1].port.Flush()
		task.Sleep(mono.Millisecond)
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for i, e := range ends {
		want := 1
		if i == 1 {
			want = 0
		}
		if got := e.poll(); got != want {
			t.Errorf("node %d got %d frames, want %d", i, got, want)
		}
	}
}

func TestNode_addresses(t *testing.T) {
	w := New(Config{ArenaSize: 4096})
	nodes := w.Nodes(300)
	seen := map[netip.Addr]bool{}
	for _, n := range nodes {
		mac, ok := w.MACOf(n.Addr())
		if !ok || mac != n.MAC() || w.nodeOf(mac) != n || seen[n.Addr()] {
			t.Fatalf("node %d: address %v, MAC %x", n.ID(), n.Addr(), n.MAC())
		}
		seen[n.Addr()] = true
	}
	for _, s := range []string{"10.0.0.0", "10.0.1.45", "10.1.0.1", "192.168.0.1", "::1"} {
		if _, ok := w.MACOf(netip.MustParseAddr(s)); ok {
			t.Errorf("%s has a node", s)
		}
	}
}
