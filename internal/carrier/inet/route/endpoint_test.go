package route

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/conform"
)

// TestEndpoint_followsKernel changes what the kernel knows while an endpoint
// sends, and looks at the frames.
func TestEndpoint_followsKernel(t *testing.T) {
	b := open(t, Config{})
	var last inet.MAC
	frames := 0
	port, peer, err := conform.NewPipe(conform.PipeConfig{Wire: func(f []byte) []byte {
		last = inet.Ethernet(f).Dst()
		frames++
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := inet.New(inet.Config{
		Port: port, Resolver: b.Table, Local: netip.AddrPortFrom(b.Link().Addr, 4791), MAC: b.Link().MAC,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(e.Close(), peer.Close()); err != nil {
			t.Error(err)
		}
	}()
	to, err := e.Resolve(netip.AddrPortFrom(b.b.Addr, 4791))
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		e.Flush() // an engine step begins with what happened before
		f, _ := e.Frame()
		e.Send(&fabric.Batch{
			Pkts:  []fabric.Packet{{Bufs: 1, Len: 10, To: to}},
			Descs: []fabric.Desc{{Addr: f + inet.Headroom, Len: 10}},
		})
		e.Flush()
	}
	send()
	if frames != 1 || last != inet.MAC(b.b.MAC) {
		t.Errorf("%d frames, the last to %v; want 1 to %v", frames, last, b.b.MAC)
	}

	moved := inet.MAC{2, 0, 0, 0, 0, 99}
	b.ip(b.a, "neigh", "replace", b.b.Addr.String(), "lladdr", moved.String(), "dev", b.a.Dev)
	b.until("new address", b.b.Addr, func(hop inet.Hop, ok bool) bool { return ok && hop.MAC == moved })
	send()
	if frames != 2 || last != moved {
		t.Errorf("%d frames, the last to %v; want 2 to %v", frames, last, moved)
	}

	b.ip(b.a, "link", "set", b.a.Dev, "down")
	b.until("link down", b.b.Addr, func(_ inet.Hop, ok bool) bool { return !ok })
	send()
	if s := e.Stats(); frames != 2 || s.TxUnreachable != 1 {
		t.Errorf("with the link down %d frames are sent, %d counted as unreachable", frames-2, s.TxUnreachable)
	}

	b.ip(b.a, "link", "set", b.a.Dev, "up")
	b.until("link up", b.b.Addr, func(_ inet.Hop, ok bool) bool { return ok })
	send()
	if frames != 3 || last != inet.MAC(b.b.MAC) {
		t.Errorf("%d frames, the last to %v; want 3 to %v", frames, last, b.b.MAC)
	}
}
