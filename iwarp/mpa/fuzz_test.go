package mpa

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/iwarp/ddp"
)

func addFrames(f *testing.F) {
	for _, reply := range []bool{false, true} {
		for _, fr := range []Frame{
			{Revision: 1, CRC: true, Private: []byte("private")},
			{Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRWrite, IRD: 4, ORD: 4},
			{Revision: 2, Reject: reply, Enhanced: true, Private: make([]byte, 508)},
			{Revision: 2, Markers: true, Enhanced: true, IRD: DepthUnlimited},
		} {
			fr.Reply = reply
			b := fr.Append(nil)
			f.Add(b)
			f.Add(b[:len(b)-1])
			f.Add(append(b, 0, 14))
		}
	}
	f.Add(Frame{Reply: true, Revision: 2, Enhanced: false}.bytesWithS())
}

// bytesWithS returns a frame with flag S and without the data for it.
func (f Frame) bytesWithS() []byte {
	b := f.Append(nil)
	b[keyLen] |= flagEnhanced
	return b
}

// What is taken is a frame, and goes out again as it came but for reserved
// flags; no byte that is not there is read, and no error is taken back when
// more bytes come.
func FuzzFrame(f *testing.F) {
	addFrames(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, reply := range []bool{false, true} {
			var fr Frame
			n, err := fr.Parse(b, reply)
			if n > len(b) || n > FrameMax || n > 0 && err != nil {
				t.Fatal(n, err)
			}
			for k := range min(len(b), FrameMax) {
				var part Frame
				if m, partErr := part.Parse(b[:k], reply); m > 0 && m != n || partErr != nil && err == nil {
					t.Fatalf("%d bytes: %d, %v; all: %d, %v", k, m, partErr, n, err)
				}
			}
			if n == 0 {
				return
			}
			out := fr.Append(nil)
			same := bytes.Clone(b[:n])
			same[keyLen] = same[keyLen]&0xe0 | out[keyLen]&0x1f
			if !bytes.Equal(out, same) {
				t.Fatalf("% x went out as % x", b[:n], out)
			}
		}
	})
}

// Whatever answers, the initiator gets an error or an agreement that it can
// keep.
func FuzzInitiator(f *testing.F) {
	addFrames(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []Config{{Revision: 1, CRC: true}, {IRD: 4, ORD: 4}, {IRD: 1, RTR: rtrAll, Markers: true}} {
			var i Initiator
			if _, err := i.Start(c, nil); err != nil {
				t.Fatal(err)
			}
			n, a, err := i.Reply(b)
			var perr *ProtocolError
			var rejected *RejectedError
			switch {
			case err != nil && (n != 0 || !errors.As(err, &perr) && !errors.As(err, &rejected)):
				t.Fatal(n, err)
			case n == 0:
				continue
			case a.Revision != i.c.Revision || a.IRD > i.c.IRD || a.ORD > i.c.ORD || c.CRC && !a.CRC || a.RecvMarkers != c.Markers:
				t.Fatalf("%+v", a)
			case (a.RTR != 0) != (c.RTR != 0) || a.RTR&(a.RTR-1) != 0 || len(a.Private) > MaxPrivate:
				t.Fatalf("%+v", a)
			}
		}
	})
}

// Whoever asks, the responder's answer is one that an initiator can read.
func FuzzResponder(f *testing.F) {
	addFrames(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Responder
		n, reply, err := r.Request(b)
		if n != 0 && n != len(b) || n > 0 && (err != nil || reply != nil) {
			t.Fatal(n, reply, err)
		}
		var back Frame
		if reply != nil {
			if m, err := back.Parse(reply, true); m != len(reply) || err != nil || !back.Reject || back.Enhanced {
				t.Fatalf("% x: %v", reply, err)
			}
		}
		if n == 0 {
			return
		}
		c := Config{IRD: 4, ORD: 4}
		accept, a, err := r.Accept(c, make([]byte, 252))
		if err != nil {
			t.Fatal(err)
		}
		m, err := back.Parse(accept, true)
		if m != len(accept) || err != nil || back.Reject || m > frameLen+MaxPrivateSent || a.IRD != c.IRD || a.ORD > c.ORD || back.Revision != b[keyLen+1] {
			t.Fatalf("% x: %+v, %v", accept, a, err)
		}
		reject, err := r.Reject(nil)
		if m, perr := back.Parse(reject, true); err != nil || perr != nil || m != len(reject) || !back.Reject {
			t.Fatalf("% x: %v %v", reject, err, perr)
		}
	})
}

// Any bytes, cut anywhere: the ULPDUs are those of the stream in one piece, and
// lie in it.
func FuzzRx(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, m := range modes {
		f.Add(encode(&Tx{CRC: m.crc, Markers: m.markers}, segments(rng, 4, 1200)), m.crc, m.markers, uint16(100))
	}
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff}, false, true, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, crc, markers bool, step uint16) {
		whole, cause, ok := receive(t, &Rx{CRC: crc, Markers: markers}, b, func() int { return len(b) })
		pieces, cause2, ok2 := receive(t, &Rx{CRC: crc, Markers: markers}, b, func() int { return int(step) })
		if !equal(whole, pieces) || cause != cause2 || ok != ok2 {
			t.Fatalf("%d ULPDUs, %v, %v; in pieces %d, %v, %v", len(whole), cause, ok, len(pieces), cause2, ok2)
		}
		for _, u := range whole {
			if len(u) < ddp.TaggedLen {
				t.Fatalf("% x", u)
			}
		}
	})
}
