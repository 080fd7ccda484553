package netstack

import "testing"

// An answer takes the acknowledgement along: a round trip is two frames.
func TestAck_goesWithTheAnswer(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	msg := [][]byte{make([]byte, 8)}
	pass := func(from, to *Stream) {
		from.Send(msg)
		from.stack.Flush()
		var buf [8]byte
		p.until(func() bool { n, _ := to.Recv(buf[:]); return n > 0 })
	}
	p.transfer(a, b, 1000)
	const rounds = 200
	before := p.ports[0].stats.TxFrames + p.ports[1].stats.TxFrames
	for range rounds {
		pass(a, b)
		pass(b, a)
	}
	frames := p.ports[0].stats.TxFrames + p.ports[1].stats.TxFrames - before
	if frames > 3*rounds { // some rounds take longer than ackHold on a busy machine
		t.Errorf("%d frames for %d round trips", frames, rounds)
	}
}

// Without an answer it goes alone.
func TestAck_goesAloneInTheEnd(t *testing.T) {
	p := newPair(t, 1500, nil)
	a, b := p.connect()
	p.until(func() bool { return p.a.out.held.packet == nil && p.b.out.held.packet == nil })
	before := p.ports[1].stats.TxFrames
	a.Send([][]byte{make([]byte, 8)})
	var buf [8]byte
	p.until(func() bool { n, _ := b.Recv(buf[:]); return n > 0 })
	p.until(func() bool { return p.ports[1].stats.TxFrames > before })
}
