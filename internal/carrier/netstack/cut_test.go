package netstack

import (
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// What gVisor sends as one segment crosses the link in several, each with headers as if it
// had been sent alone, of which the last one pushes.
func TestSend_cuts(t *testing.T) {
	p := newPair(t, 1500, nil)
	l, err := p.a.Listen(netip.AddrPort{}, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := greet(p, netip.AddrPortFrom(addrA, l.Local().Port()))
	var s *Stream
	for s == nil {
		p.ready = p.a.Poll(mono.Real{}.Now(), p.ready[:0])
		if st := l.Accept(); st != nil {
			s = st.(*Stream)
		}
	}
	defer s.Close(true)
	said := make([]byte, 4*s.MSS()+100)
	for i := range said {
		said[i] = byte(i * 7 >> 3)
	}
	if n := s.Send([][]byte{said[:1001], said[1001:]}); n != len(said) {
		t.Fatalf("%d bytes of %d are taken", n, len(said))
	}
	p.a.Flush()
	if queued := len(p.a.out.packets); queued != 1 {
		t.Errorf("gVisor has sent %d packets, want 1", queued)
	}
	heard := 0
	id := uint16(0)
	for i := range 5 {
		ip := p.get()
		seg := header.TCP(ip.Payload())
		n := min(s.MSS(), len(said)-heard)
		if !ip.IsChecksumValid() || !ip.IsValid(len(ip)) ||
			!seg.IsChecksumValid(ip.SourceAddress(), ip.DestinationAddress(), checksum.Checksum(seg.Payload(), 0), uint16(len(seg.Payload()))) {
			t.Errorf("segment %d: headers %x", i, []byte(ip[:40]))
		}
		if seq := r.ack + uint32(heard); seg.SequenceNumber() != seq || len(seg.Payload()) != n || string(seg.Payload()) != string(said[heard:heard+n]) {
			t.Fatalf("segment %d: %d bytes from %d on, want %d from %d on, or they are others", i, len(seg.Payload()), seg.SequenceNumber(), n, seq)
		}
		if last := i == 4; seg.Flags().Contains(header.TCPFlagPsh) != last {
			t.Errorf("segment %d: flags %v", i, seg.Flags())
		}
		if i > 0 && ip.ID() != id+1 {
			t.Errorf("segment %d has the number %d behind %d", i, ip.ID(), id)
		}
		id = ip.ID()
		heard += n
	}
}

// Send takes little more than may be on its way, and the stream is named when more may be.
func TestSend_takesWhatMayBeSent(t *testing.T) {
	p := newPair(t, 9000, nil)
	a, b := p.connect()
	said := make([]byte, 8<<20)
	most := 2*a.piece() + 10*a.MSS() // the window that a stream begins with
	sent := a.Send([][]byte{said})
	if sent == 0 || sent > most {
		t.Fatalf("%d bytes are taken, want at most %d", sent, most)
	}
	buf := make([]byte, 1<<20)
	for heard := 0; heard < len(said); {
		p.ready = p.a.Poll(mono.Real{}.Now(), p.ready[:0])
		for _, id := range p.ready {
			if id == a.ID() {
				sent += a.Send([][]byte{said[sent:]})
			}
		}
		p.a.Flush()
		p.ready = p.b.Poll(mono.Real{}.Now(), p.ready[:0])
		n, _ := b.Recv(buf)
		heard += n
		p.b.Flush()
	}
}

// A port that has room for a part of what gVisor has sent gets the rest later.
func TestSend_cutsWhatThePortHasRoomFor(t *testing.T) {
	p := newPair(t, 9000, nil)
	a, b := p.connect()
	p.ports[0].depth = 7 // two frames of three buffers
	p.transfer(a, b, 1<<20)
}
