package conform

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/inet"
	"github.com/xwarp/xwarp/internal/inet/route"
	"github.com/xwarp/xwarp/internal/testbed"
	"github.com/xwarp/xwarp/xdp"
)

// bulky sends everything as bulk that is larger than a small message.
type bulky struct{ *inet.Endpoint }

func (b bulky) Send(batch *fabric.Batch) {
	for i := range batch.Pkts {
		batch.Pkts[i].Bulk = batch.Pkts[i].Len > 256
	}
	b.Endpoint.Send(batch)
}

// TestDatagram_xdpBulk runs over two queues each way, the receive work of one
// of which is done by a core of its own.
func TestDatagram_xdpBulk(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Generic, bpf.Driver} {
		t.Run(mode.String(), func(t *testing.T) {
			needRoot(t)
			tb, err := testbed.New(testbed.Config{Queues: 3})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, tb)
			for _, h := range tb.Hosts {
				if err := h.ReceiveOn(1, 0); err != nil {
					t.Fatal(err)
				}
			}
			var ends [2]fabric.Datagram
			for i, h := range tb.Hosts {
				on(t, h, func() error {
					ends[i] = bulky{openBulk(t, h, mode)}
					return nil
				})
			}
			Datagram(t, func(*testing.T) (a, b fabric.Datagram, step func()) { return ends[0], ends[1], runtime.Gosched })
		})
	}
}

// openBulk opens an endpoint with two ports; see openXDP.
func openBulk(t *testing.T, h *testbed.Host, mode bpf.Mode) *inet.Endpoint {
	t.Helper()
	arena := newArena(t)
	table, err := route.Open(route.Config{Link: h.Dev})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, table)
	port, bulk, err := xdp.OpenPair(xdp.Config{
		Device: h.Dev, Arena: arena, Mode: mode, Steer: bpf.Config{PortBase: xdpPort},
		RxDepth: 512, TxDepth: 512, Frames: 1536, Track: true,
	}, 1)
	if errors.Is(err, xdp.ErrUnsupported) && os.Getenv("XWARP_REQUIRE_XDP") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	link := table.Link()
	return newEndpoint(t, inet.Config{
		Port: port, Bulk: bulk, Resolver: table, Local: netip.AddrPortFrom(link.Addr, xdpPort), MAC: link.MAC,
	})
}
