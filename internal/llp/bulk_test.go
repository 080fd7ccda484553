package llp

import "testing"

// sendSized sends one ULPDU of n bytes to p and reports whether it goes as bulk.
func (s *side) sendSized(p *Peer, n int) bool {
	s.rig.t.Helper()
	if !s.ep.Begin(p, p.Snd.Next(), n) {
		s.rig.t.Fatal("no room")
	}
	p.Snd.Push(s.rig.now, 0, 0, uint32(n), true)
	s.ep.ULPDU(n, addrLen)
	s.ep.Payload(make([]byte, n-addrLen))
	s.ep.Commit(s.rig.now, p, 63, false)
	return s.ep.tx.Pkts[len(s.ep.tx.Pkts)-1].Bulk
}

// ackAll lets everything that was sent to p arrive.
func (s *side) ackAll(p *Peer) {
	s.ep.tx.Reset()
	p.Snd.OnAck(s.rig.now, p.Snd.Next(), 512, 0)
}

func TestInBulk(t *testing.T) {
	r := newRig(t)
	a, b := r.pair()
	p, _ := r.meet(a, b)
	for range 2 { // the second time like the first
		for i := range bulkDepth - 1 {
			if a.sendSized(p, 4000) {
				t.Fatalf("datagram %d of a message goes as bulk", i+1)
			}
		}
		if !a.sendSized(p, 4000) {
			t.Errorf("with %d on their way the next does not go as bulk", bulkDepth-1)
		}
		if !a.sendSized(p, addrLen) {
			t.Error("a small datagram overtakes those before it")
		}
		if a.ep.Ack(r.now, p, 63); a.ep.tx.Pkts[len(a.ep.tx.Pkts)-1].Bulk {
			t.Error("an acknowledgement waits behind bulk data")
		}
		a.ackAll(p)
		if a.sendSized(p, 4000) {
			t.Error("the first datagram after all have arrived goes as bulk")
		}
		a.ackAll(p)
	}
	for range 4 * bulkDepth {
		if a.sendSized(p, addrLen) {
			t.Fatal("many small messages go as bulk")
		}
		a.ep.tx.Reset()
	}
}
