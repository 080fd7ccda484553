package sim

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

var _ fabric.Port = (*Port)(nil)

func TestPort_carriesFramesOfAllSizes(t *testing.T) {
	w := New(Config{Seed: 1})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	sizes := []int{4, 46, 1500, rxChunk - ethHeader, rxChunk - ethHeader + 1, 4096 - ethHeader, 9000}
	w.Go(n[0], "sender", func(task *Task) error {
		for i, size := range sizes {
			if !a.send(n[1], numbered(i, size)) {
				t.Errorf("no room for %d bytes", size)
			}
			a.port.Flush()
			task.Sleep(20 * mono.Microsecond)
		}
		a.poll()
		return nil
	})
	w.Go(n[1], "receiver", func(task *Task) error {
		b.await(task, len(sizes), mono.Never)
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for i, size := range sizes {
		if !bytes.Equal(b.got[i], numbered(i, size)) {
			t.Errorf("frame %d of %d bytes arrived changed", i, size)
		}
	}
	for _, e := range []*end{a, b} {
		if err := e.port.Close(); err != nil {
			t.Error(err)
		}
		if free, all := e.port.Pool().Free(), e.port.Pool().Cap(); free != all {
			t.Errorf("after Close %d of %d frames are in the pool", free, all)
		}
	}
}

func TestPort_dropsWithoutBuffers(t *testing.T) {
	w := New(Config{Seed: 1, Frames: 64, RxDepth: 20, TxDepth: 60})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	w.Go(n[0], "sender", func(task *Task) error {
		for i := range 30 {
			a.send(n[1], numbered(i, 100))
			a.port.Flush()
			task.Sleep(10 * mono.Microsecond)
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	if s := b.port.Stats(); s.RxFrames != 20 || s.RxDropped != 10 {
		t.Errorf("RX ring of 20 took %d frames and dropped %d", s.RxFrames, s.RxDropped)
	}
}

// The bytes of a frame are read when the wire takes it, and the buffer comes
// back only in a Flush after that.
func TestPort_readsWhenSent(t *testing.T) {
	w := New(Config{Seed: 1})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	payload, err := n[0].Arena().Alloc(64, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Go(n[0], "sender", func(task *Task) error {
		a.send(n[1], make([]byte, 9000)) // occupies the wire
		addr, _ := a.port.Pool().Get()
		mac := n[1].MAC()
		copy(n[0].Arena().At(addr, 14), mac[:])
		text := n[0].Arena().At(payload, 5)
		copy(text, "early")
		a.port.Send([]fabric.Desc{{Addr: addr, Len: 14, Flags: fabric.More}, {Addr: payload, Len: 5}})
		a.port.Flush()
		copy(text, "late!")
		task.Sleep(mono.Millisecond)
		if missing := a.port.Pool().Cap() - a.port.Pool().Free(); missing == a.port.posted.len() {
			t.Error("buffers came back before Flush")
		}
		a.port.Flush()
		if free := a.port.Pool().Free() + a.port.posted.len(); free != a.port.Pool().Cap() {
			t.Errorf("%d buffers did not come back", a.port.Pool().Cap()-free)
		}
		if string(text) != "late!" {
			t.Errorf("the port wrote %q into a buffer that is not of its pool", text)
		}
		return nil
	})
	w.Go(n[1], "receiver", func(task *Task) error { b.await(task, 2, mono.Never); return nil })
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	if got := string(b.got[1]); got != "late!" {
		t.Errorf("the wire read %q", got)
	}
}

func TestPort_full(t *testing.T) {
	w := New(Config{Seed: 1, TxDepth: 20})
	n := w.Nodes(2)
	a, b := open(t, n[0]), open(t, n[1])
	const frames = 200
	w.Go(n[0], "sender", func(task *Task) error {
		for i := 0; i < frames; {
			task.Now()
			if a.send(n[1], numbered(i, 60)) {
				i++
				continue
			}
			a.port.Flush()
			task.Park(mono.Never, 0) // room in the TX ring wakes it
		}
		a.port.Flush()
		return nil
	})
	w.Go(n[1], "receiver", func(task *Task) error { b.await(task, frames, mono.Never); return nil })
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for i, p := range b.got {
		if number(p) != i {
			t.Fatalf("frame %d arrived as %d", number(p), i)
		}
	}
}

func TestPort_panicsOnBrokenRules(t *testing.T) {
	base := func(p *Port) mem.Addr { a, _ := p.pool.Get(); return a }
	for _, c := range []struct {
		name, want string
		send       func(p *Port) []fabric.Desc
	}{
		{"crosses", "chunk boundary", func(p *Port) []fabric.Desc { return []fabric.Desc{{Addr: base(p) + 4090, Len: 20}} }},
		{"outside", "outside", func(p *Port) []fabric.Desc {
			return []fabric.Desc{{Addr: mem.Addr(p.Arena().Len()), Len: 20}}
		}},
		{"empty", "empty", func(p *Port) []fabric.Desc { return []fabric.Desc{{Addr: base(p)}} }},
		{"more", "More", func(p *Port) []fabric.Desc {
			return []fabric.Desc{{Addr: base(p), Len: 20, Flags: fabric.More}}
		}},
		{"short", "13 bytes", func(p *Port) []fabric.Desc { return []fabric.Desc{{Addr: base(p), Len: 13}} }},
		{"long", "1600 bytes", func(p *Port) []fabric.Desc { return []fabric.Desc{{Addr: base(p), Len: 1600}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(Config{MTU: 1500})
			p := open(t, w.Node()).port
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, c.want) {
					t.Errorf("panic %q does not mention %q", v, c.want)
				}
			}()
			p.Send(c.send(p))
		})
	}
}

func TestPort_Close_namesLeaks(t *testing.T) {
	w := New(Config{})
	p := open(t, w.Node()).port
	p.Pool().Get()
	p.Pool().Get()
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "2 buffers") {
		t.Errorf("Close with two buffers missing: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestPort_steer(t *testing.T) {
	w := New(Config{})
	n := w.Nodes(2)
	a := open(t, n[0])
	odd := func(frame []byte) bool { return frame[ethHeader+3]&1 == 1 }
	first, err := n[1].Open(odd)
	if err != nil {
		t.Fatal(err)
	}
	one, other := &end{port: first, descs: make([]fabric.Desc, 64)}, open(t, n[1])
	w.Go(n[0], "sender", func(*Task) error {
		for i := range 10 {
			a.send(n[1], numbered(i, 60))
		}
		a.port.Flush()
		return nil
	})
	for name, e := range map[string]*end{"odd": one, "even": other} {
		w.Go(n[1], name, func(task *Task) error { e.await(task, 5, mono.Never); return nil })
	}
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if number(one.got[i]) != 2*i+1 || number(other.got[i]) != 2*i {
			t.Errorf("frame %d went to the wrong port", i)
		}
	}
}
