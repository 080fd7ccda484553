package reliable

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
)

// abuse gives an endpoint packets that bytes describe, as a peer that has gone
// mad could send them, while it sends messages itself.
func abuse(t *testing.T, b []byte) {
	ch := newChannel(t, 2, 1, 64, arq.Config{PeerLost: mono.Second})
	ch.two()
	x := ch.nodes[0]
	next := func() int {
		if len(b) == 0 {
			return 0
		}
		v := int(b[0])
		b = b[1:]
		return v
	}
	peer := x.peers[1]
	ended, pk := 0, packet{}
	for len(b) > 0 {
		ch.now = ch.now.Add(mono.Duration(next()*next()) * mono.Microsecond)
		switch next() % 8 {
		case 0, 1:
			n := next() % (MaxInline + 1)
			x.post(ch.now, peer, &verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Signaled | verbs.Inline, InlineData: make([]byte, n)}, false)
			for x.nextPacket(ch.now, peer, &pk) {
			}
		case 2:
			x.placed(ch.now, peer, serial.U32(next()*next()))
		case 3:
			ch.now = max(ch.now, min(x.assocs.Deadline(), ch.now.Add(mono.Second)))
			x.timers(ch.now)
		default:
			if len(x.spares) == 0 {
				continue
			}
			slot := x.spares[len(x.spares)-1]
			x.spares = x.spares[:len(x.spares)-1]
			x.spare--
			p := x.slot(slot, x.stride)
			h := header{kind: kind(next()%int(kindEnd) + 1), window: uint16(next() * 3), psn: serial.U32(next() * 3), ack: serial.U32(next()), held: uint16(next())}
			n := HeaderLen + next()%(x.stride-HeaderLen)
			switch h.kind {
			case kindAck:
				h.sack = uint8(next() % 9)
				n = HeaderLen + 8*int(h.sack)
				for w := range int(h.sack) {
					binary.BigEndian.PutUint64(p[HeaderLen+8*w:], uint64(next())<<(next()%57))
				}
			case kindAsk, kindHelloAck:
				n = HeaderLen
			case kindHello:
			default:
				h.flags = uint8(next()) & flagMask
			}
			h.put(p)
			x.arrived(ch.now, peer, slot, n)
		}
		x.giveBack()
		for x.next(ch.now, &pk) {
			if pk.chunk {
				t.Fatal("a chunk, and no Write was posted")
			}
		}
		x.assocs.Date(ch.now)
		for x.done.len() > 0 {
			var wcs [1]verbs.WC
			x.done.read(wcs[:])
			if wcs[0].Opcode == verbs.OpSend {
				ended++
				continue
			}
			if n := len(x.message(&wcs[0])); n > testMost {
				t.Fatalf("a message of %d bytes", n)
			}
			if wcs[0].WRID >= partBase {
				x.parts.give(int32(wcs[0].WRID - partBase))
			} else {
				x.free = append(x.free, int32(wcs[0].WRID))
			}
		}
		x.giveBack()
	}
	// The peer is silent from now on: everything ends.
	for tries := 0; x.assocs.Deadline() != mono.Never; tries++ {
		if tries > 100_000 {
			t.Fatal("the peer is silent, and it does not come to an end")
		}
		ch.now = max(ch.now, x.assocs.Deadline())
		x.timers(ch.now)
		for x.next(ch.now, &pk) {
		}
		for x.done.len() > 0 {
			var wcs [1]verbs.WC
			x.done.read(wcs[:])
		}
	}
	if len(x.requests.free) != len(x.requests.all) {
		t.Fatalf("%d of %d requests have ended", len(x.requests.free), len(x.requests.all))
	}
}

func TestProtocol_abuse(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		b := make([]byte, 3000)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		abuse(t, b)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzProtocol(f *testing.F) {
	f.Add([]byte{0, 0, 4, 0, 100, 1, 1, 0, 20, 0xc0, 0, 0, 3})
	f.Add([]byte{0, 0, 0, 9, 1, 1, 0, 9, 1, 5, 5, 6, 1, 9, 0, 3, 0, 1, 200, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<14 {
			abuse(t, b)
		}
	})
}
