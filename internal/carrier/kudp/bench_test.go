package kudp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

func open(t testing.TB, c Config) *Socket {
	t.Helper()
	arena, err := mem.New(mem.Config{Size: 32 << 20, SmallPages: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Arena, c.Track = arena, true
	if !c.Local.IsValid() {
		c.Local = netip.MustParseAddrPort("127.0.0.1:0")
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := arena.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send sends n datagrams of size bytes.
func send(s *Socket, b *fabric.Batch, to fabric.Path, n, size int) {
	b.Reset()
	for i := range n {
		f, _ := s.Frame()
		b.Pkts = append(b.Pkts, fabric.Packet{First: int32(i), Bufs: 1, Len: int32(size), To: to})
		b.Descs = append(b.Descs, fabric.Desc{Addr: f, Len: uint32(size)})
	}
	s.Send(b)
	s.Flush()
}

// BenchmarkBatch reports what a datagram costs from one socket to another,
// sent and received by one thread: compare the offloads.
func BenchmarkBatch(b *testing.B) {
	b.Run("loopback", func(b *testing.B) {
		benchOffloads(b, func(b *testing.B, c Config) (tx, rx *Socket) { return open(b, c), open(b, c) })
	})
	b.Run("veth", func(b *testing.B) {
		hosts := newHosts(b)
		benchOffloads(b, func(b *testing.B, c Config) (tx, rx *Socket) {
			return openOn(b, hosts[0], c), openOn(b, hosts[1], c)
		})
	})
}

func benchOffloads(b *testing.B, pair func(*testing.B, Config) (tx, rx *Socket)) {
	for _, size := range []int{64, 1400} {
		for _, n := range []int{1, 8, 32} {
			for _, c := range []Config{{NoGSO: true, NoGRO: true}, {NoGRO: true}, {}, {NoGSO: true}} {
				c.MTU = 9000
				b.Run(fmt.Sprintf("size=%d/batch=%d/gso=%v/gro=%v", size, n, !c.NoGSO, !c.NoGRO), func(b *testing.B) {
					tx, rx := pair(b, c)
					benchBatch(b, tx, rx, n, size)
				})
			}
		}
	}
}

func benchBatch(b *testing.B, tx, rx *Socket, n, size int) {
	to, err := tx.Resolve(rx.Local())
	if err != nil {
		b.Fatal(err)
	}
	batch, got := fabric.NewBatch(n, 1), fabric.NewBatch(n, 1)
	for b.Loop() {
		send(tx, batch, to, n, size)
		for left := n; left > 0; {
			left -= rx.Recv(got)
			rx.Release(got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pkt")
}

// newHosts makes two hosts on a cable.
func newHosts(t testing.TB) []*testbed.Host {
	t.Helper()
	tb := hosttest.New(t, testbed.Config{})
	return tb.Hosts
}

func openOn(t testing.TB, h *testbed.Host, c Config) (s *Socket) {
	t.Helper()
	c.Local = netip.AddrPortFrom(h.Addr, 0)
	if err := h.Do(func() error { s = open(t, c); return nil }); err != nil {
		t.Fatal(err)
	}
	return s
}
