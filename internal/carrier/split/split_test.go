package split

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// tape is a port that receives what the test puts on it.
type tape struct {
	fabric.Port
	arena  *mem.Arena
	pool   *mem.Pool
	rx     []fabric.Desc
	closed int
}

var errTape = errors.New("tape is closed")

func newTape(t *testing.T, frames int) *tape {
	t.Helper()
	arena := mem.Over(make([]byte, (frames+1)*mem.FrameSize))
	pool, err := mem.NewPool(arena, frames, true)
	if err != nil {
		t.Fatal(err)
	}
	return &tape{arena: arena, pool: pool}
}

func (p *tape) Arena() *mem.Arena { return p.arena }
func (p *tape) Pool() *mem.Pool   { return p.pool }
func (p *tape) Close() error      { p.closed++; return errTape }

func (p *tape) Recv(dst []fabric.Desc) int {
	n := min(len(p.rx), len(dst))
	for n > 0 && p.rx[n-1].Flags&fabric.More != 0 {
		n--
	}
	copy(dst, p.rx[:n])
	p.rx = p.rx[n:]
	return n
}

// frame makes a frame of some buffers arrive, with a number in its last byte.
func (p *tape) frame(ethType uint16, proto byte, bufs int, number byte) {
	for i := range bufs {
		at, ok := p.pool.Get()
		if !ok {
			panic("tape: the test has too few frames")
		}
		d := fabric.Desc{Addr: at, Len: 60}
		b := p.arena.At(at, 60)
		clear(b)
		if i == 0 {
			at := protocolAt
			if ethType == 0x86dd {
				at = protocolAt6
			}
			b[12], b[13], b[at] = byte(ethType>>8), byte(ethType), proto
		} else {
			b[12], b[13], b[23] = 8, 0, protoTCP // only the first buffer counts
		}
		b[59] = number
		if i < bufs-1 {
			d.Flags = fabric.More
		}
		p.rx = append(p.rx, d)
	}
}

// drain receives all frames of a side and returns their numbers.
func (p *tape) drain(t *testing.T, s *Side, room int) (numbers []byte) {
	t.Helper()
	dst := make([]fabric.Desc, room)
	for {
		n := s.Recv(dst)
		if n == 0 {
			return numbers
		}
		if dst[n-1].Flags&fabric.More != 0 {
			t.Fatal("the last frame is not whole")
		}
		for _, d := range dst[:n] {
			if d.Flags&fabric.More == 0 {
				numbers = append(numbers, p.arena.At(d.Addr, 60)[59])
			}
			p.pool.Put(d.Addr)
		}
	}
}

func TestRecv_sortsFrames(t *testing.T) {
	for _, c := range []struct {
		name    string
		ethType uint16
		proto   byte
		tcp     bool
	}{
		{"TCP", 0x0800, 6, true},
		{"UDP", 0x0800, 17, false},
		{"ARP", 0x0806, 6, false},
		{"TCP over IPv6", 0x86dd, 6, true},
		{"UDP over IPv6", 0x86dd, 17, false},
	} {
		for _, bufs := range []int{1, 3} {
			p := newTape(t, 16)
			tcp, rest := New(p)
			p.frame(c.ethType, c.proto, bufs, 1)
			mine, other := tcp, rest
			if !c.tcp {
				mine, other = rest, tcp
			}
			if got := p.drain(t, other, fabric.MaxBufs); len(got) != 0 {
				t.Errorf("%s: the wrong side got %v", c.name, got)
			}
			if got := p.drain(t, mine, fabric.MaxBufs); len(got) != 1 {
				t.Errorf("%s: %v", c.name, got)
			}
		}
	}
	p := newTape(t, 1)
	tcp, rest := New(p)
	p.frame(0x0800, 6, 1, 1)
	p.rx[0].Len = protocolAt // one byte too few to tell
	if n := tcp.Recv(make([]fabric.Desc, fabric.MaxBufs)); n != 0 {
		t.Errorf("a short frame is TCP: %d buffers", n)
	}
	if n := rest.Recv(make([]fabric.Desc, fabric.MaxBufs)); n != 1 {
		t.Errorf("a short frame is lost: %d buffers", n)
	}
}

// Every frame arrives at its side, once and in order, whoever asks when.
func TestRecv_keepsOrder(t *testing.T) {
	const frames = 64
	rng := rand.New(rand.NewPCG(1, 1))
	p := newTape(t, frames)
	tcp, rest := New(p)
	var sent, got [2][]byte
	number := byte(0)
	for range 2000 {
		if rng.IntN(3) > 0 {
			side, bufs := rng.IntN(2), 1+rng.IntN(4)
			if p.pool.Free() >= bufs {
				number++
				p.frame(0x0800, [2]byte{6, 17}[side], bufs, number)
				sent[side] = append(sent[side], number)
			}
			continue
		}
		if side := rng.IntN(2); side == 0 {
			got[0] = append(got[0], p.drain(t, tcp, fabric.MaxBufs+rng.IntN(40))...)
		} else {
			got[1] = append(got[1], p.drain(t, rest, fabric.MaxBufs+rng.IntN(40))...)
		}
	}
	got[0] = append(got[0], p.drain(t, tcp, 100)...)
	got[1] = append(got[1], p.drain(t, rest, 100)...)
	for i := range sent {
		if !slices.Equal(sent[i], got[i]) {
			t.Errorf("side %d: got %v, want %v", i, got[i], sent[i])
		}
	}
	if p.pool.Free() != frames {
		t.Errorf("%d of %d buffers came back", p.pool.Free(), frames)
	}
}

func TestClose_closesThePortOnce(t *testing.T) {
	p := newTape(t, 8)
	tcp, rest := New(p)
	p.frame(0x0800, 6, 2, 1)
	p.drain(t, rest, fabric.MaxBufs) // two buffers wait for tcp
	if err := tcp.Close(); err != nil || p.closed != 0 || p.pool.Free() != 8 {
		t.Errorf("first side: %v, port closed %d times, %d buffers free", err, p.closed, p.pool.Free())
	}
	p.frame(0x0800, 6, 2, 2)
	p.drain(t, rest, fabric.MaxBufs)
	if p.pool.Free() != 8 {
		t.Error("buffers for a side that is closed are kept")
	}
	if err := rest.Close(); !errors.Is(err, errTape) || p.closed != 1 {
		t.Errorf("second side: %v, port closed %d times", err, p.closed)
	}
	if err := errors.Join(tcp.Close(), rest.Close()); err != nil || p.closed != 1 {
		t.Errorf("again: %v, %d times", err, p.closed)
	}
}

func TestAllocs_recv(t *testing.T) {
	p := newTape(t, 8)
	tcp, rest := New(p)
	dst := make([]fabric.Desc, fabric.MaxBufs)
	var frames [8]fabric.Desc
	p.frame(0x0800, 6, 1, 1)
	p.frame(0x0800, 17, 1, 2)
	copy(frames[:], p.rx)
	if n := testing.AllocsPerRun(100, func() {
		p.rx = frames[:2]
		if tcp.Recv(dst)+rest.Recv(dst) != 2 {
			t.Fatal("a frame is lost")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
