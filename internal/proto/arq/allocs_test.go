package arq

import (
	"reflect"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

func TestAllocs_window(t *testing.T) {
	p := newPair(Config{})
	if n := testing.AllocsPerRun(100, func() {
		p.burst(t, 30, 1000)
		p.snd.Rest()
		p.rcv.Rest()
	}); n != 0 {
		t.Errorf("%v allocations for 30 units and their acknowledgement", n)
	}
}

func TestAllocs_loss(t *testing.T) {
	p := newPair(Config{})
	if n := testing.AllocsPerRun(100, func() {
		for range 4 {
			p.snd.Push(p.now, 0, 0, 1000, true)
		}
		p.rcv.Arrived(p.now)
		p.rcv.Mark(p.rcv.Next() + 3) // the others are lost
		p.now = p.now.Add(mono.Millisecond)
		p.snd.OnAck(p.now, p.rcv.Next(), 256, p.rcv.Held(p.now))
		for w := range p.rcv.SackWords() {
			p.snd.OnSack(p.now, p.rcv.Next()+1, p.rcv.Sack(w))
		}
		p.snd.Detect(p.now)
		for p.snd.InFlight() > 0 {
			p.now = max(p.now, p.snd.Deadline())
			p.snd.OnTimer(p.now)
			for lsn, ok := p.snd.NextLost(); ok; lsn, ok = p.snd.NextLost() {
				p.snd.Resent(p.now, lsn)
				p.rcv.Mark(lsn)
			}
			p.snd.OnAck(p.now, p.rcv.Next(), 256, 0)
		}
		p.snd.Rest()
		p.rcv.Rest()
	}); n != 0 {
		t.Errorf("%v allocations for 3 losses", n)
	}
}

// An idle peer takes less than 1 KiB in all (llp and verbs take the rest).
func TestSize_idlePeer(t *testing.T) {
	if n := reflect.TypeFor[Sender]().Size() + reflect.TypeFor[Receiver]().Size(); n > 320 {
		t.Errorf("%d bytes for a peer that is idle", n)
	}
	if n := reflect.TypeFor[Unit]().Size(); n > 24 {
		t.Errorf("%d bytes for a unit in flight", n)
	}
}
