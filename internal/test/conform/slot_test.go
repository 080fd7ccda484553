package conform

import (
	"errors"
	"io"
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/internal/carrier/near"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
)

// openQueue opens a queue with some slots on the device of a host.
func openQueue(t *testing.T, h *testbed.Host, slots int, mode bpf.Mode) *xdp.Queue {
	t.Helper()
	var q *xdp.Queue
	err := h.Do(func() (err error) {
		q, err = xdp.OpenQueue(xdp.QueueConfig{
			Device: h.Dev, Slots: slots, Steer: bpf.Config{PortBase: xdpPort}, Mode: mode,
			RxDepth: 1024, TxDepth: 1024, Part: 48 << 20,
		})
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		testenv.NoXDP(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, q)
	return q
}

// sit opens an endpoint on a slot, as a process would that was passed it.
func sit(t *testing.T, h *testbed.Host, q *xdp.Queue, number int) *inet.Datagram {
	t.Helper()
	s := q.Slot(number)
	own := func(fd int) int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.ArenaFD, s.LivenessFD = own(s.ArenaFD), own(s.LivenessFD)
	for i, q := range s.Queues {
		s.Queues[i] = xdp.SlotQueue{RingsFD: own(q.RingsFD), SocketFD: own(q.SocketFD)}
	}
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, arena)
	port, err := xdp.OpenSlot(s, arena, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	var table *route.Table
	on(t, h, func() (err error) {
		table, err = route.Open(route.Config{Link: h.Dev})
		return err
	})
	testenv.Closing(t, table)
	link := table.Link()
	return newEndpoint(t, inet.Config{
		Port: port, Resolver: table, Local: netip.AddrPortFrom(link.Addr, s.Port), MAC: link.MAC, FirstPort: xdpPort,
	})
}

// besides puts shared memory beside an endpoint, for others of its host.
func besides(t *testing.T, h *testbed.Host, far *inet.Datagram) *near.Carrier {
	t.Helper()
	var local *shm.Datagram
	on(t, h, func() (err error) {
		local, err = shm.Open(shm.Config{Arena: far.Arena(), Local: far.Local(), MTU: 9000, Peers: 8, Track: true})
		return err
	})
	c, err := near.New(far, local, 64)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, c)
	return c
}

// keptCarrier is kept for a carrier of two.
type keptCarrier struct{ *near.Carrier }

func (k keptCarrier) Close() error {
	b := fabric.NewBatch(64, fabric.MaxBufs)
	for k.Recv(b) > 0 {
		k.Release(b)
	}
	k.Flush()
	return nil
}

// TestDatagram_slots runs over slots of shared queues on two hosts, while other
// slots there are taken, and over two of one host.
func TestDatagram_slots(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Generic, bpf.Driver} {
		t.Run(mode.String(), func(t *testing.T) {
			tb := newTestbed(t, 9000)
			var ends [2]*inet.Datagram
			for i, h := range tb.Hosts {
				q := openQueue(t, h, 3, mode)
				sit(t, h, q, 0)
				ends[i] = sit(t, h, q, 1+i)
			}
			Datagram(t, func(*testing.T) (a, b fabric.Datagram, step func()) { return ends[0], ends[1], runtime.Gosched })
		})
	}
	t.Run("near", func(t *testing.T) {
		tb := newTestbed(t, 9000)
		h := tb.Hosts[0]
		q := openQueue(t, h, 2, bpf.Generic)
		here, there := besides(t, h, sit(t, h, q, 0)), besides(t, h, sit(t, h, q, 1))
		Datagram(t, func(*testing.T) (a, b fabric.Datagram, step func()) { return here, there, runtime.Gosched })
	})
}

// TestVerbs_slots runs over slots of shared queues: on three hosts, and with two
// of the three ends on one host.
func TestVerbs_slots(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Generic, bpf.Driver} {
		t.Run(mode.String(), func(t *testing.T) {
			tb := bed(t, 9000)
			var open [3]kept
			for i, h := range tb.Hosts {
				open[i] = kept{sit(t, h, openQueue(t, h, 2, mode), 1)}
			}
			verbsOver(t, func(*testing.T, int) Net {
				return Net{Step: yield, Multicast: true, On: tb.on, Open: func(i int) (fabric.Datagram, []io.Closer, error) {
					return open[i], nil, nil
				}}
			})
		})
	}
	t.Run("near", func(t *testing.T) {
		tb := bed(t, 9000)
		q, other := openQueue(t, tb.Hosts[0], 2, bpf.Generic), openQueue(t, tb.Hosts[1], 2, bpf.Generic)
		open := []keptCarrier{
			{besides(t, tb.Hosts[0], sit(t, tb.Hosts[0], q, 0))},
			{besides(t, tb.Hosts[0], sit(t, tb.Hosts[0], q, 1))},
			{besides(t, tb.Hosts[1], sit(t, tb.Hosts[1], other, 1))},
		}
		verbsOver(t, func(*testing.T, int) Net {
			return Net{Step: yield, Open: func(i int) (fabric.Datagram, []io.Closer, error) { return open[i], nil, nil }}
		})
	})
}
