package netstack

import (
	"testing"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/base/mono"
)

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

// acknowledging makes a packet to a port that acknowledges ack, with size bytes of data.
func acknowledging(port uint16, ack uint32, size int) *stack.PacketBuffer {
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{ReserveHeaderBytes: 40, Payload: buffer.MakeWithData(make([]byte, size))})
	p.TransportProtocolNumber = header.TCPProtocolNumber
	header.TCP(p.TransportHeader().Push(header.TCPMinimumSize)).Encode(&header.TCPFields{
		SrcPort: 1, DstPort: port, AckNum: ack, DataOffset: header.TCPMinimumSize, Flags: header.TCPFlagAck,
	})
	header.IPv4(p.NetworkHeader().Push(header.IPv4MinimumSize)).Encode(&header.IPv4Fields{
		Protocol: protoTCP, SrcAddr: tcpip.AddrFrom4(addrA.As4()), DstAddr: tcpip.AddrFrom4(addrB.As4()),
	})
	return p
}

// An acknowledgement waits until there are more bytes to acknowledge, or for its time; not if it repeats one.
func TestAck_waitsForMore(t *testing.T) {
	type step struct {
		port  uint16
		ack   uint32
		size  int
		waits bool
	}
	for _, c := range []struct {
		name  string
		steps []step
		due   uint32 // acknowledged when the time has come; 0: nothing waits
	}{
		{"the first", []step{{1, 100, 0, true}}, 100},
		{"more than that", []step{{1, 100, 0, true}, {1, 200, 0, true}, {1, 300, 0, true}}, 300},
		{"much", []step{{1, 100, 0, true}, {1, 100 + ackEvery, 0, false}, {1, 101 + ackEvery, 0, true}}, 101 + ackEvery},
		{"much in small steps", []step{{1, 100, 0, true}, {1, ackEvery, 0, true}, {1, 100 + ackEvery, 0, false}, {1, 2*ackEvery - 1, 0, true}}, 2*ackEvery - 1},
		{"many", []step{{1, 100, 0, true}, {1, 101, 0, true}, {1, 102, 0, true}, {1, 103, 0, false}, {1, 104, 0, true}, {1, 105, 0, true}}, 105},
		{"over the end of the numbers", []step{{1, 1<<32 - 100, 0, true}, {1, 100, 0, true}}, 100},
		{"the same again", []step{{1, 100, 0, true}, {1, 100, 0, false}, {1, 100, 0, false}}, 0},
		{"an answer", []step{{1, 100, 0, true}, {1, 200, 8, false}}, 0},
		{"an answer before", []step{{1, 100, 8, false}, {1, 200, 0, true}}, 200},
		{"two streams", []step{{1, 100, 0, true}, {2, 100, 0, false}, {2, 100, 8, false}, {1, 101, 0, true}}, 101},
	} {
		var h heldAck
		for i, s := range c.steps {
			p := acknowledging(s.port, s.ack, s.size)
			if got := h.hold(p, mono.Time(i)); got != s.waits {
				t.Errorf("%s, step %d: waits is %v", c.name, i, got)
			}
		}
		if c.due == 0 {
			if h.packet != nil {
				t.Errorf("%s: something waits", c.name)
			}
			continue
		}
		if p := h.due(h.until - 1); p != nil {
			t.Errorf("%s: it goes too soon", c.name)
		}
		p := h.due(h.until)
		if p == nil || header.TCP(p.TransportHeader().Slice()).AckNumber() != c.due || h.until > mono.Time(len(c.steps)).Add(ackHold) {
			t.Errorf("%s: %v goes, want an acknowledgement of %d", c.name, p, c.due)
		}
		if h.hold(acknowledging(1, c.due+ackEvery-1, 0), h.until) != true || h.hold(acknowledging(1, c.due+ackEvery, 0), h.until) != false {
			t.Errorf("%s: what was acknowledged is not known", c.name)
		}
	}
}
