package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// manyHosts has the server's end on peers hosts of a testbed and the client on
// one more.
func manyHosts(t *testing.T, peers int) site {
	t.Helper()
	bed := hosttest.New(t, testbed.Config{Hosts: peers + 1})
	first, client := bed.Hosts[0], bed.Hosts[peers]
	s := site{Local{Device: first.Dev, Enter: first.Do}, Local{Device: client.Dev, Enter: client.Do}, first.Addr.String() + ":0"}
	for _, h := range bed.Hosts[1:peers] {
		s.server.Hosts = append(s.server.Hosts, h.Do)
	}
	return s
}

func TestPeers(t *testing.T) {
	for _, transport := range Transports() {
		for _, fabric := range []string{"udp", "shm", "tcp", "xdp"} {
			for _, loss := range []float64{0, 0.05} {
				spec := brief("send_rate", fabric, 8, 1000)
				spec.Transport, spec.Peers, spec.Loss, spec.Window = transport, 3, loss, 9
				if spec.Check() != nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%g", transport, fabric, loss), func(t *testing.T) {
					place := loopback(t)
					if fabric == "xdp" {
						place = manyHosts(t, 3)
					}
					check(t, place.open(t, spec))
				})
			}
		}
	}
}

// Endpoints on AF_XDP need a device each.
func TestPeers_tooFewDevices(t *testing.T) {
	place := manyHosts(t, 2)
	spec := brief("send_rate", "xdp", 8)
	spec.Peers = 3
	_, err := Connect(t.Context(), spec, ConnectConfig{Local: place.client, Addr: place.serve(t, ServeConfig{})})
	if err == nil || !strings.Contains(err.Error(), "needs a device for each") {
		t.Errorf("got %v", err)
	}
}

func TestAllocs_peers(t *testing.T) {
	spec := brief("send_rate", "udp", 8)
	spec.Peers = 4
	s := loopback(t).open(t, spec)
	count := newAllocCounter(t)
	few, many := count.in(t, s, 64), count.in(t, s, 6400)
	if many > few+200 {
		t.Errorf("%d allocations for 64 messages, %d for 6400", few, many)
	}
}
