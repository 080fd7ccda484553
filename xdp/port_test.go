package xdp_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/xdp"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// content makes a frame of size bytes.
func content(rng *rand.Rand, from, to end, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	putHeaders(b, from.host, to.host, portBase, size)
	return b
}

// build puts a frame into frames of the pool, in pieces of random length at
// random offsets.
func build(rng *rand.Rand, from end, frame []byte) (bufs []fabric.Desc) {
	for rest := frame; len(rest) > 0; {
		chunk, ok := from.Pool().Get()
		if !ok {
			panic("the pool is empty")
		}
		n := min(len(rest), mem.FrameSize)
		if len(bufs) == 0 {
			n = udpHeaderLen + rng.IntN(n-udpHeaderLen+1)
		} else if left := (len(rest) + mem.FrameSize - 1) / mem.FrameSize; len(bufs)+left < fabric.MaxBufs {
			n = 1 + rng.IntN(n)
		}
		addr := chunk + mem.Addr(rng.IntN(mem.FrameSize-n+1))
		copy(from.Arena().At(addr, n), rest)
		bufs = append(bufs, fabric.Desc{Addr: addr, Len: uint32(n), Flags: fabric.More})
		rest = rest[n:]
	}
	bufs[len(bufs)-1].Flags = 0
	return bufs
}

func wantNoDrops(t *testing.T, ports ...end) {
	t.Helper()
	for _, p := range ports {
		if st := p.Stats(); st.TxInvalid+st.RxInvalid+st.RxDropped != 0 {
			t.Errorf("%s: %+v", p.host.Name, st)
		}
	}
}

func TestPort_framesOfEverySizeArriveIntact(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		sizes := []int{udpHeaderLen, 60, 64, 1514, 3839, 3840}
		if d.mtu == 9000 {
			sizes = append(sizes, 3841, 4096, 4097, 7680, 7681, 9013, 9014)
		}
		for range 300 {
			sizes = append(sizes, udpHeaderLen+rng.IntN(d.mtu+14-udpHeaderLen+1))
		}
		for _, size := range sizes {
			want := content(rng, a, b, size)
			bufs := build(rng, a, want)
			send(a, bufs...)
			if got := recv(b); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes in buffers %v: got %d bytes, not the same", size, bufs, len(got))
			}
			a, b = b, a
		}
		wantNoDrops(t, a, b)
	})
}

// A burst overruns nothing as long as it fits into what the receiver keeps
// ready, and arrives in order, in one or many calls of Recv.
func TestPort_burst(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		for _, room := range []int{fabric.MaxBufs, 19, 64, 500} {
			var want [][]byte
			bufs := make([]fabric.Desc, 0, 256)
			for len(bufs)+fabric.MaxBufs < a.TxFree() && len(want) < 100 {
				frame := content(rng, a, b, udpHeaderLen+rng.IntN(d.mtu+14-udpHeaderLen+1))
				want = append(want, frame)
				bufs = append(bufs, build(rng, a, frame)...)
			}
			if n := a.Send(bufs); n != len(bufs) {
				t.Fatalf("Send took %d of %d buffers, TxFree promised room", n, len(bufs))
			}
			a.Flush()
			dst := make([]fabric.Desc, room)
			for len(want) > 0 {
				got := dst[:b.Recv(dst)]
				for len(got) > 0 {
					frame, n := gather(b.Arena(), got)
					if got[n-1].Flags != 0 {
						t.Fatalf("Recv returned %v: the last frame is not whole", dst)
					}
					if !bytes.Equal(frame, want[0]) {
						t.Fatalf("frame of %d bytes, want another of %d", len(frame), len(want[0]))
					}
					want = want[1:]
					for _, d := range got[:n] {
						b.Pool().Put(d.Addr)
					}
					got = got[n:]
				}
				b.Flush()
				a.Flush()
			}
		}
		wantNoDrops(t, a, b)
	})
}

// split cuts payload in the arena at the boundaries of chunks, as a sender of
// registered memory has to.
func split(at mem.Addr, size int) (bufs []fabric.Desc) {
	for size > 0 {
		n := min(size, int(mem.FrameBase(at)+mem.FrameSize-at))
		bufs = append(bufs, fabric.Desc{Addr: at, Len: uint32(n), Flags: fabric.More})
		at += mem.Addr(n)
		size -= n
	}
	bufs[len(bufs)-1].Flags = 0
	return bufs
}

func TestPort_payloadOutsideThePool(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		const registered = 64 << 10
		mr, err := a.Arena().Alloc(registered, 1)
		if err != nil {
			t.Fatal(err)
		}
		free := 0
		for i := range 300 {
			size := 1 + rng.IntN(d.mtu+14-udpHeaderLen)
			from := mr + mem.Addr(rng.IntN(registered-size))
			want := content(rng, a, b, udpHeaderLen+size)
			copy(a.Arena().At(from, size), want[udpHeaderLen:])
			bufs := append(build(rng, a, want[:udpHeaderLen]), split(from, size)...)
			bufs[0].Flags = fabric.More
			send(a, bufs...)
			if got := recv(b); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes of payload at %#x: got %d bytes, not the same", size, from, len(got))
			}
			a.Flush()
			if i == 0 {
				free = a.Pool().Free()
			} else if n := a.Pool().Free(); n != free {
				t.Fatalf("%d frames in the pool after sending payload from outside, want %d", n, free)
			}
		}
		wantNoDrops(t, a, b)
	})
}

// Frames go round and round; none may get lost on the way.
func TestPort_framesComeBack(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		freeA, freeB := a.Pool().Free(), b.Pool().Free()
		for range 5000 {
			send(a, build(rng, a, content(rng, a, b, 64+rng.IntN(d.mtu-64)))...)
			recv(b)
		}
		a.Flush()
		b.Flush()
		// What is missing in the FILL ring is posted in batches.
		const batch = 16
		if n := a.Pool().Free(); n < freeA || n >= freeA+batch {
			t.Errorf("sender: %d frames in the pool, %d before", n, freeA)
		}
		if n := b.Pool().Free(); n < freeB || n >= freeB+batch {
			t.Errorf("receiver: %d frames in the pool, %d before", n, freeB)
		}
		st := b.Stats()
		if sent := a.Stats(); sent.TxFrames != 5000 || st.RxFrames != 5000 || sent.TxBytes != st.RxBytes {
			t.Errorf("sent %+v, received %+v", sent, st)
		}
	})
}

func TestPort_noRoomIsACount(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		if n := a.TxFree(); n != a.Caps().TxDepth {
			t.Fatalf("TxFree is %d, the send queue %d", n, a.Caps().TxDepth)
		}
		var bufs []fabric.Desc
		for range a.Caps().TxDepth + 5 {
			bufs = append(bufs, build(rng, a, content(rng, a, b, udpHeaderLen))...)
		}
		if n := a.Send(bufs); n != a.Caps().TxDepth {
			t.Fatalf("Send took %d buffers, the send queue has %d", n, a.Caps().TxDepth)
		}
		if n := a.Send(bufs[a.Caps().TxDepth:]); n != 0 {
			t.Fatalf("Send took %d buffers with a full queue", n)
		}
		for a.TxFree() < a.Caps().TxDepth {
			a.Flush()
		}
	})
}

// A receiver that sleeps loses frames, says so, and goes on afterwards.
func TestRecv_overrun(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		const depth, sent = 512, 700
		for range sent {
			send(a, build(rng, a, content(rng, a, b, 100))...)
		}
		received := 0
		dst := make([]fabric.Desc, fabric.MaxBufs)
		for received+int(b.Stats().RxDropped) < sent {
			for _, d := range dst[:b.Recv(dst)] {
				b.Pool().Put(d.Addr)
				received++
			}
		}
		if received < depth || received == sent {
			t.Errorf("%d of %d frames received with room for %d", received, sent, depth)
		}
		b.Flush()
		want := content(rng, a, b, 100)
		send(a, build(rng, a, want)...)
		if got := recv(b); !bytes.Equal(got, want) {
			t.Error("the frame after the overrun is not the one that was sent")
		}
	})
}

func TestSend_badBufferPanics(t *testing.T) {
	a, _ := newWire(t, drivers[0], config)
	chunk, _ := a.Pool().Get()
	tooMany := make([]fabric.Desc, fabric.MaxBufs+1)
	for i := range tooMany {
		tooMany[i] = fabric.Desc{Addr: chunk, Len: 64, Flags: fabric.More}
	}
	tooMany[fabric.MaxBufs].Flags = 0
	for _, test := range []struct {
		name string
		bufs []fabric.Desc
	}{
		{"empty", []fabric.Desc{{Addr: chunk}}},
		{"across a boundary", []fabric.Desc{{Addr: chunk + 4000, Len: 97}}},
		{"longer than a chunk", []fabric.Desc{{Addr: chunk, Len: 4097}}},
		{"too many", tooMany},
		{"not whole", tooMany[:3]},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Send took it")
				}
			}()
			a.Send(test.bufs)
		})
	}
}

func TestCaps(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		for _, mtu := range []int{0, 1500} {
			a, _ := newWire(t, d, func(arena *mem.Arena) xdp.Config {
				c := config(arena)
				c.MTU = mtu
				return c
			})
			caps := a.Caps()
			want := mtu
			if mtu == 0 {
				want = d.mtu
			}
			if caps.MTU != want || caps.MaxBufs != fabric.MaxBufs || caps.ZeroCopy || caps.TxDepth != 256 {
				t.Errorf("MTU %d wanted, got %+v", mtu, caps)
			}
			if bufs := (want + 14 + 3839) / 3840; caps.RxDepth != 512/bufs {
				t.Errorf("%d frames of %d buffers wait in 512 chunks, not %d", 512/bufs, bufs, caps.RxDepth)
			}
		}
	})
}

func TestMode_autoIsGenericOnVeth(t *testing.T) {
	d := drivers[0]
	d.mode = bpf.Auto
	a, _ := newWire(t, d, config)
	if got := a.Caps().Driver; got != "xdp/generic/copy" {
		t.Errorf("%s", got)
	}
}

func TestAllocs_port(t *testing.T) {
	forEachDriver(t, func(t *testing.T, d driver) {
		a, b := newWire(t, d, config)
		rng := newRand()
		frame := content(rng, a, b, d.mtu+14)
		var bufs [fabric.MaxBufs]fabric.Desc
		round := func() {
			n := 0
			for at := 0; at < len(frame); n++ {
				chunk, _ := a.Pool().Get()
				at += copy(a.Arena().At(chunk, mem.FrameSize), frame[at:])
				bufs[n] = fabric.Desc{Addr: chunk, Len: mem.FrameSize, Flags: fabric.More}
			}
			bufs[n-1].Len, bufs[n-1].Flags = uint32(len(frame)-(n-1)*mem.FrameSize), 0
			for a.TxFree() < n {
				a.Flush()
			}
			a.Send(bufs[:n])
			a.Flush()
			for n = 0; n == 0; n = b.Recv(bufs[:]) {
				b.Flush()
			}
			for _, d := range bufs[:n] {
				b.Pool().Put(d.Addr)
			}
		}
		if n := testing.AllocsPerRun(1000, round); n != 0 {
			t.Errorf("%v allocations per frame", n)
		}
	})
}
