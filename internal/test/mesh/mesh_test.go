package mesh

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

var (
	hereAddr  = netip.MustParseAddrPort("10.0.0.1:1")
	thereAddr = netip.MustParseAddrPort("10.0.0.2:2")
)

// send sends payload in buffers of at most a frame.
func send(t *testing.T, from *End, to netip.AddrPort, payload []byte) {
	t.Helper()
	path, err := from.Resolve(to)
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBatch(1, fabric.MaxBufs)
	size := len(payload)
	for room := mem.FrameSize - Headroom; ; room = mem.FrameSize {
		f, ok := from.Frame()
		if !ok {
			t.Fatal("no frame")
		}
		at := f + mem.Addr(mem.FrameSize-room)
		n := copy(from.Arena().At(at, room), payload)
		b.Descs = append(b.Descs, fabric.Desc{Addr: at, Len: uint32(n), Flags: fabric.More})
		if payload = payload[n:]; len(payload) == 0 {
			break
		}
	}
	b.Descs[len(b.Descs)-1].Flags = 0
	b.Pkts = append(b.Pkts, fabric.Packet{Bufs: int32(len(b.Descs)), Len: int32(size), To: path})
	from.Send(b)
	from.Flush()
}

// receive returns the payloads that have arrived.
func receive(e *End) (got [][]byte) {
	b := fabric.NewBatch(4, 4)
	for e.Recv(b) > 0 {
		for _, p := range b.Pkts {
			var flat []byte
			for _, d := range b.Descs[p.First:][:p.Bufs] {
				flat = append(flat, e.Arena().At(d.Addr, int(d.Len))...)
			}
			got = append(got, flat)
		}
		e.Release(b)
	}
	return got
}

func TestNet_delivers(t *testing.T) {
	n, err := New(Config{Frames: 64})
	if err != nil {
		t.Fatal(err)
	}
	here, there := n.Open(hereAddr, 0), n.Open(thereAddr, 0)
	for i := range 100 {
		want := bytes.Repeat([]byte{byte(i)}, 1+i*89)
		send(t, here, thereAddr, want)
		if got := receive(there); len(got) != 1 || !bytes.Equal(got[0], want) {
			t.Fatalf("%d bytes: got %d datagrams", len(want), len(got))
		}
	}
	if n.Free() != 64 || n.Lost != 0 {
		t.Errorf("%d frames free, %d datagrams lost", n.Free(), n.Lost)
	}
}

func TestNet_wireDecides(t *testing.T) {
	n, err := New(Config{Frames: 64})
	if err != nil {
		t.Fatal(err)
	}
	here, there := n.Open(hereAddr, 0), n.Open(thereAddr, 0)
	n.Wire = func(from, to fabric.Remote, payload []byte) {
		for range payload[0] {
			n.Deliver(from, to, payload)
		}
	}
	for i := range byte(3) {
		send(t, here, thereAddr, []byte{i})
		if got := receive(there); len(got) != int(i) {
			t.Errorf("%d arrive of %d", len(got), i)
		}
	}
}

func TestNet_noRoom(t *testing.T) {
	n, err := New(Config{Frames: 8, Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	here, there := n.Open(hereAddr, 0), n.Open(thereAddr, 0)
	for range 3 { // the third finds the queue full
		send(t, here, thereAddr, make([]byte, 10))
	}
	send(t, here, netip.MustParseAddrPort("10.0.0.3:3"), make([]byte, 10)) // nobody
	if n.Lost != 2 || there.Waiting() != 2 {
		t.Errorf("%d lost, %d waiting", n.Lost, there.Waiting())
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	if n.Free() != 8 {
		t.Errorf("%d frames of 8 are free after Close", n.Free())
	}
}
