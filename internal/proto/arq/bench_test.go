package arq

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// pair is a sender and the receiver at its other end.
type pair struct {
	snd Sender
	rcv Receiver
	now mono.Time
}

func newPair(c Config) *pair {
	p := &pair{}
	sh := NewShared(c, 1000)
	p.snd.Init(sh, start)
	p.rcv.Init(sh, start)
	return p
}

// burst sends n units, delivers them and acknowledges the last.
func (p *pair) burst(b testing.TB, n int, size uint32) {
	for range n {
		if !p.snd.CanPush(int(size)) {
			b.Fatal("the window is full")
		}
		lsn := p.snd.Push(p.now, 0, 0, size, true)
		soon := p.snd.AckSoon()
		p.now += 1000
		p.rcv.Arrived(p.now)
		if !p.rcv.Fresh(lsn) {
			b.Fatal("not fresh")
		}
		p.rcv.Mark(lsn)
		p.rcv.AckDue(p.now, false, soon)
	}
	held := HeldOf(p.rcv.Held(p.now))
	p.rcv.Acked(false)
	p.now += 1000
	p.snd.OnAck(p.now, p.rcv.Next(), 256, HeldFor(held))
	p.snd.Detect(p.now)
	if p.snd.Deadline() < p.now {
		b.Fatal("a timer is due")
	}
}

// BenchmarkPingPong is one small message and its acknowledgement, both ends.
func BenchmarkPingPong(b *testing.B) {
	p := newPair(Config{})
	for b.Loop() {
		p.burst(b, 1, 8)
	}
}

// BenchmarkBulk is 32 large segments and one acknowledgement, both ends.
func BenchmarkBulk(b *testing.B) {
	p := newPair(Config{})
	p.snd.SetSegment(8100)
	for b.Loop() {
		p.burst(b, 32, 8000)
	}
}
