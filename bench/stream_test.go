package bench

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

func header(word uint64) []byte { return binary.LittleEndian.AppendUint64(nil, word) }

func TestStream_withoutLoss(t *testing.T) {
	var s streamSender
	var r streamReceiver
	for burst := range 3 {
		s.start(100, 16, 0)
		answers := 0
		for !s.done() {
			if s.room() == 0 {
				t.Fatal("stuck: no room and nothing to confirm")
			}
			confirm := r.frame(header(s.word(0)))
			s.sent(1)
			if confirm {
				answers++
				var b [confirmSize]byte
				r.answer(b[:])
				s.confirm(b[:], 0)
			}
		}
		if s.lost() != 0 || answers != 25 {
			t.Errorf("burst %d: %d lost, %d answers; want 0 and 25", burst, s.lost(), answers)
		}
	}
}

func TestStream_windowHolds(t *testing.T) {
	var s streamSender
	s.start(100, 16, 0)
	s.sent(s.room())
	if s.next != 16 || s.room() != 0 {
		t.Errorf("%d frames sent, room for %d more; want 16 and 0", s.next, s.room())
	}
}

// Frames and answers are dropped at random; the stream must end all the same,
// and count what was lost.
func TestStream_loss(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		drop := func() bool { return rng.IntN(3) == 0 }
		var s streamSender
		var r streamReceiver
		now := mono.Time(0)
		arrived := map[uint64]bool{}
		deliver := func(word uint64) {
			if drop() {
				return
			}
			arrived[word>>1] = true
			if !r.frame(header(word)) || drop() {
				return
			}
			var b [confirmSize]byte
			r.answer(b[:])
			s.confirm(b[:], now)
		}
		s.start(500, 32, now)
		for !s.done() {
			if s.room() > 0 {
				w := s.word(0)
				s.sent(1)
				deliver(w)
				continue
			}
			now = now.Add(tailTimeout / 2)
			if word, late := s.repeat(now); late {
				deliver(word)
			}
		}
		if want := 500 - len(arrived); s.lost() != want {
			t.Errorf("seed %d: %d lost, want %d", seed, s.lost(), want)
		}
	}
}

func TestStream_ignoresNonsense(t *testing.T) {
	var s streamSender
	s.start(10, 4, 0)
	s.sent(4)
	s.confirm(nil, 0)
	s.confirm(append(header(5), header(5)...), 0) // above what was sent
	s.confirm(append(header(0), header(0)...), 0)
	if s.acked != 0 {
		t.Errorf("%d frames confirmed, want none", s.acked)
	}
	var r streamReceiver
	if r.frame([]byte{1, 2, 3}) || r.received != 0 {
		t.Error("a short frame was counted")
	}
	r.frame(header(7 << 1))
	r.frame(header(7 << 1)) // a duplicate
	r.frame(header(3 << 1)) // late
	if r.received != 1 || r.highest != 8 {
		t.Errorf("%d received, highest %d; want 1 and 8", r.received, r.highest)
	}
}
