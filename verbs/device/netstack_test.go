package device

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
)

// both is what a context with RC over AF_XDP stands on.
type both struct {
	carriers
	ready []fabric.StreamID
	batch *fabric.Batch
	got   [][]byte // payloads of datagrams
}

func openBoth(t *testing.T, h *testbed.Host, s Spec) *both {
	t.Helper()
	s.Device, s.RC, s.Clock = h.Dev, true, mono.Real{}
	b := &both{batch: fabric.NewBatch(8, fabric.MaxBufs)}
	err := h.Do(func() error {
		arena, err := mem.New(mem.Config{Size: 32 << 20, SmallPages: true})
		if err != nil {
			return err
		}
		o := opening{closers: []io.Closer{arena}, bulkFD: -1}
		if b.carriers, err = o.carriers(&s, arena); err != nil {
			return o.undo(err)
		}
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			for _, c := range o.reversed() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// step is what an engine does with both carriers.
func (b *both) step() {
	if b.datagram.Recv(b.batch) > 0 {
		for _, p := range b.batch.Pkts {
			var payload []byte
			for _, d := range b.batch.Descs[p.First:][:p.Bufs] {
				payload = append(payload, b.datagram.Arena().At(d.Addr, int(d.Len))...)
			}
			b.got = append(b.got, payload)
		}
		b.datagram.Release(b.batch)
	}
	b.ready = b.streams.Poll(mono.Real{}.Now(), b.ready[:0])
	b.streams.Flush()
	b.datagram.Flush()
}

// send sends one datagram.
func (b *both) send(t *testing.T, to netip.AddrPort, payload []byte) {
	t.Helper()
	path, err := b.datagram.Resolve(to)
	if err != nil {
		t.Fatal(err)
	}
	frame, ok := b.datagram.Frame()
	if !ok {
		t.Fatal("no frame")
	}
	frame += mem.Addr(b.datagram.Caps().Headroom)
	copy(b.datagram.Arena().At(frame, len(payload)), payload)
	out := fabric.NewBatch(1, 1)
	out.Pkts = append(out.Pkts, fabric.Packet{Bufs: 1, Len: int32(len(payload)), To: path})
	out.Descs = append(out.Descs, fabric.Desc{Addr: frame, Len: uint32(len(payload))})
	b.datagram.Send(out)
}

// Datagrams and byte streams share a queue, and a capture has both.
func TestCarriers_streamsBesideDatagrams(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 1500})
	for _, name := range []string{"xdp:generic", "xdp:driver", "xdp:asavie"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "both.pcapng")
			t.Run("exchange", func(t *testing.T) {
				x := openBoth(t, tb.Hosts[0], Spec{Fabric: name, Capture: file})
				y := openBoth(t, tb.Hosts[1], Spec{Fabric: name})
				exchangeBoth(t, x, y)
			})
			if raw, err := os.ReadFile(file); err != nil || !bytes.Contains(raw, []byte("by stream")) || !bytes.Contains(raw, []byte("by datagram")) {
				t.Errorf("the capture has %d bytes and not all of what was sent: %v", len(raw), err)
			}
		})
	}
}

func exchangeBoth(t *testing.T, x, y *both) {
	t.Helper()
	l, err := y.streams.Listen(netip.AddrPort{}, 4)
	if err != nil {
		t.Fatal(err)
	}
	a, err := x.streams.Dial(netip.AddrPortFrom(y.streams.Addr(), l.Local().Port()), netip.AddrPort{})
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 100
	words := []byte("by stream")
	var b fabric.Stream
	var got []byte
	buf := make([]byte, 100)
	for sent := 0; len(got) < rounds*len(words) || len(y.got) < rounds; {
		x.step()
		y.step()
		if a.State() == fabric.StreamFailed {
			t.Fatal(a.Err())
		}
		if b == nil {
			b = l.Accept()
			continue
		}
		n, _ := b.Recv(buf)
		got = append(got, buf[:n]...)
		if sent < rounds && sent <= len(y.got) && a.State() == fabric.StreamOpen {
			if n := a.Send([][]byte{words}); n != len(words) {
				t.Fatalf("%d bytes are taken", n)
			}
			x.send(t, y.datagram.Local(), []byte("by datagram"))
			sent++
		}
	}
	if !bytes.Equal(got, bytes.Repeat(words, rounds)) {
		t.Errorf("%q", got)
	}
	for _, p := range y.got {
		if string(p) != "by datagram" {
			t.Errorf("%q", p)
		}
	}
}
