package fault

import (
	"bytes"
	"testing"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/internal/sim"
)

// Frames through a bad port over a simulated network: all that was not lost
// arrives, with the bytes that it was sent with.
func TestPort_overSim(t *testing.T) {
	const frames = 3000
	w := sim.New(sim.Config{Seed: 1})
	n := w.Nodes(2)
	inner, err := n[0].Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := n[1].Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := NewPort(inner, Config{Seed: 9, Loss: 0.1, Dup: 0.1, Reorder: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	mac := n[1].MAC()
	got := make([]int, frames)
	overtaken, last := 0, 0
	w.Go(n[0], "sender", func(task *sim.Task) error {
		for i := 0; i < frames; task.Now() {
			if bad.TxFree() >= 3 {
				size := 60 + i%8000
				bad.Send(buildFrame(bad, append(mac[:], pattern(i, size-6)...)))
				i++
			}
			bad.Flush()
		}
		for range 100 {
			task.Sleep(1000)
			bad.Flush()
		}
		return bad.Close()
	})
	w.Go(n[1], "receiver", func(task *sim.Task) error {
		descs := make([]fabric.Desc, 64)
		for task.Now() < 1e8 {
			for _, frame := range readFrames(other, descs) {
				i := numbers([][]byte{frame[6:]})[0]
				if !bytes.Equal(frame[6:], pattern(i, len(frame)-6)) {
					t.Fatalf("frame %d arrived changed", i)
				}
				got[i]++
				if i < last {
					overtaken++
				}
				last = i
			}
			other.Flush()
			task.Park(1e8, 0)
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	s := bad.Faults()
	missing, twice := 0, 0
	for _, n := range got {
		if n == 0 {
			missing++
		} else {
			twice += n - 1
		}
	}
	if missing != int(s.Lost) || twice != int(s.Duplicated) || missing == 0 || twice == 0 || overtaken == 0 {
		t.Errorf("%d missing, %d twice, %d overtaken; the port says %+v", missing, twice, overtaken, s)
	}
	if s.Packets != frames || bad.Caps().Driver != "sim+fault" {
		t.Errorf("%d packets through %s", s.Packets, bad.Caps().Driver)
	}
}

func buildFrame(p fabric.Port, bytes []byte) []fabric.Desc {
	var out []fabric.Desc
	for len(bytes) > 0 {
		addr, ok := p.Pool().Get()
		if !ok {
			panic("no frame")
		}
		n := copy(p.Arena().At(addr, mem.FrameSize), bytes)
		bytes = bytes[n:]
		out = append(out, fabric.Desc{Addr: addr, Len: uint32(n), Flags: fabric.More})
	}
	out[len(out)-1].Flags = 0
	return out
}

func readFrames(p fabric.Port, descs []fabric.Desc) (frames [][]byte) {
	var frame []byte
	for _, d := range descs[:p.Recv(descs)] {
		frame = append(frame, p.Arena().At(d.Addr, int(d.Len))...)
		p.Pool().Put(d.Addr)
		if d.Flags&fabric.More == 0 {
			frames, frame = append(frames, frame), nil
		}
	}
	return frames
}

func TestPort_corrupts(t *testing.T) {
	c := newCarrier(t)
	m, err := newMill(Config{Seed: 1, Corrupt: 1}, c.arena)
	if err != nil {
		t.Fatal(err)
	}
	m.take, m.give = c.pool.Get, c.pool.Put
	sent := pattern(3, 5000)
	addr, _ := c.pool.Get()
	second, _ := c.pool.Get()
	copy(c.arena.At(addr, 4096), sent)
	copy(c.arena.At(second, 904), sent[4096:])
	m.add(fabric.Packet{Len: 5000}, []fabric.Desc{{Addr: addr, Len: 4096, Flags: fabric.More}, {Addr: second, Len: 904}}, true)
	var got []byte
	for _, d := range m.out.Descs {
		got = append(got, c.arena.At(d.Addr, int(d.Len))...)
	}
	if len(got) != 5000 || bytes.Equal(got, sent) || m.stats.Corrupted != 1 {
		t.Errorf("%d bytes came out, equal: %v, %+v", len(got), bytes.Equal(got, sent), m.stats)
	}
	if c.pool.Cap()-c.pool.Free() != len(m.out.Descs) {
		t.Error("the original was not given back")
	}
}
