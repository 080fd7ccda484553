package conform

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/internal/carrier/kudp"
	"github.com/xwarp/xwarp/internal/carrier/secure"
	"github.com/xwarp/xwarp/internal/test/sim"
)

// encrypted puts encryption over a carrier. The instance is the one of a number, so that a
// simulation repeats itself.
func encrypted(t testing.TB, d fabric.Datagram, n int) fabric.Datagram {
	t.Helper()
	e, err := secure.New(d, secure.Config{Secret: bytes.Repeat([]byte{7}, secure.SecretLen), Instance: secure.Instance{byte(n >> 8), byte(n), 1}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestDatagram_secure runs over frames in memory, and over the kernel, which cuts large
// pieces into datagrams and joins them again.
func TestDatagram_secure(t *testing.T) {
	over := func(t *testing.T, open Opener) {
		Datagram(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
			a, b, step = open(t)
			return encrypted(t, a, 0), encrypted(t, b, 1), step
		})
	}
	for _, c := range []PipeConfig{{}, {MTU: 1500}, {MTU: 65535, Frames: 2048, Depth: 1024}, {MaxBufs: 1}, {Frames: 2048, Chunks: []int{101, 1021, 4000}}} {
		t.Run(fmt.Sprintf("MTU=%d,bufs=%d,chunks=%v", c.MTU, c.MaxBufs, c.Chunks), func(t *testing.T) {
			over(t, func(t *testing.T) (a, b fabric.Datagram, step func()) { return openPipes(t, c) })
		})
	}
	arenas := newArenas(t)
	for _, c := range []kudp.Config{{MTU: 1500}, {MTU: 9000}} {
		t.Run(fmt.Sprintf("kernel,MTU=%d", c.MTU), func(t *testing.T) {
			over(t, func(t *testing.T) (a, b fabric.Datagram, step func()) {
				c := c
				c.Local = netip.MustParseAddrPort("127.0.0.1:0")
				return openSocket(t, arenas[0], c), openSocket(t, arenas[1], c), runtime.Gosched
			})
		})
	}
}

// encryptedStreams puts encryption over streams.
func encryptedStreams(inner fabric.Streams, err error) (fabric.Streams, error) {
	if err != nil {
		return nil, err
	}
	return secure.NewStreams(inner, secure.Config{Secret: bytes.Repeat([]byte{7}, secure.SecretLen), KeyBits: 8})
}

// TestVerbsRC_secure runs in virtual time, over streams that are cut anywhere.
func TestVerbsRC_secure(t *testing.T) {
	for i, c := range []sim.StreamConfig{{}, {Segment: func(_ int, off int64, _ int) int { return 1 + int(off%1000)/3 }}, {SendBuffer: 3001, RecvBuffer: 2003}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			onlyRC(t, func(t *testing.T, hosts int) Net {
				net := simStreams(t, hosts, c)
				open := net.Streams
				net.Streams = func(i int) (fabric.Streams, netip.Addr, []io.Closer, error) {
					s, at, under, err := open(i)
					s, err = encryptedStreams(s, err)
					return s, at, under, err
				}
				return net
			}, connects[i].p)
		})
	}
}

// TestStreams_secure runs over kernel TCP on loopback.
func TestStreams_secure(t *testing.T) {
	Streams(t, func(*testing.T) StreamNet {
		return StreamNet{Step: yield, Greets: true, Open: func(int) (fabric.Streams, []io.Closer, error) {
			s, err := encryptedStreams(ktcp.Open(ktcp.Config{Local: netip.MustParseAddr("127.0.0.1")}))
			return s, nil, err
		}}
	})
}
