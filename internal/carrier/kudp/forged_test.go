package kudp

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// TestSend_forgedICMP: the kernel believes an ICMP message about the MTU of the path,
// and the socket does not: full datagrams go out as before, and who resolves later may
// send them too.
func TestSend_forgedICMP(t *testing.T) {
	hosts := newHosts(t)
	a, b := openOn(t, hosts[0], Config{}), openOn(t, hosts[1], Config{})
	to, err := a.Resolve(b.Local())
	if err != nil {
		t.Fatal(err)
	}
	batch := fabric.NewBatch(2, 3)
	full := func() {
		t.Helper()
		batch.Reset()
		first := int32(0)
		for left := a.Caps().MaxPayload; left > 0; {
			f, ok := a.Frame()
			if !ok {
				t.Fatal("no frame")
			}
			n := min(left, mem.FrameSize)
			batch.Descs = append(batch.Descs, fabric.Desc{Addr: f, Len: uint32(n)})
			left -= n
		}
		batch.Pkts = append(batch.Pkts, fabric.Packet{First: first, Bufs: int32(len(batch.Descs)), Len: int32(a.Caps().MaxPayload), To: to})
		a.Send(batch)
		a.Flush()
		if got := receive(b, 1); len(got[0]) != a.Caps().MaxPayload {
			t.Fatalf("%d bytes arrived, want %d", len(got[0]), a.Caps().MaxPayload)
		}
	}
	full()
	for believed := 0; believed != 600; {
		if err := hosttest.ForgeTooBig(hosts[1], a.Local(), b.Local(), 600); err != nil {
			t.Fatal(err)
		}
		err := hosts[0].Do(func() error {
			routes, err := netlink.RouteGet(b.Local().Addr().AsSlice())
			if err == nil {
				believed = routes[0].MTU
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	full()
	if st := a.Stats(); st.TxErrors != 0 || st.TxUnreachable != 0 {
		t.Errorf("not all was sent: %+v", st)
	}
	if _, err := a.Resolve(netip.AddrPortFrom(b.Local().Addr(), b.Local().Port()+1)); err != nil {
		t.Errorf("who resolves afterwards: %v", err)
	}
}
