package bench

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Carriers without a protocol may lose frames, so the raw tests have a small
// one of their own: every frame starts with a number, streams go on while at
// most a window of frames has not been confirmed, and what was lost is counted
// and not sent again. A frame carries streamHeader bytes:
//
//	number << 1 | confirm     8 bytes, little-endian
//
// and is answered, when confirm is set, with confirmSize bytes:
//
//	highest number + 1        8 bytes
//	frames received           8 bytes
//
// Numbers and counts go on from burst to burst, so that what is late from one
// burst does no harm in the next.
const (
	streamHeader = 8
	confirmSize  = 16
	confirmBit   = 1
)

// tailTimeout is how long a stream without confirmations waits before it
// asks again: a frame with the confirm bit, or the answer, was lost.
const tailTimeout = 10 * mono.Millisecond

// streamSender decides what the sending end of a stream may send.
type streamSender struct {
	next     uint64 // number of the next frame
	end      uint64 // number after the last frame of the burst
	base     uint64 // number of the first frame of the burst
	acked    uint64 // frames below are confirmed, or lost for good
	window   uint64 // most frames between acked and next
	every    uint64 // every that many frames one asks to be confirmed
	received uint64 // frames that the receiver has counted
	counted  uint64 // received when the burst began
	progress mono.Time
}

// start begins a burst of n frames.
func (s *streamSender) start(n, window int, now mono.Time) {
	s.base, s.end = s.next, s.next+uint64(n)
	s.acked, s.window = s.next, uint64(window)
	s.every = max(s.window/4, 1)
	s.counted, s.progress = s.received, now
}

// room returns how many frames may be sent now.
func (s *streamSender) room() int {
	return int(min(s.window-(s.next-s.acked), s.end-s.next))
}

// word returns the header of the i-th frame from now.
func (s *streamSender) word(i int) uint64 {
	n := s.next + uint64(i)
	w := n << 1
	if n+1 == s.end || (n+1)%s.every == 0 {
		w |= confirmBit
	}
	return w
}

// sent says that n frames have gone out.
func (s *streamSender) sent(n int) { s.next += uint64(n) }

// confirm takes an answer of the receiver.
func (s *streamSender) confirm(answer []byte, now mono.Time) {
	if len(answer) < confirmSize {
		return
	}
	highest := binary.LittleEndian.Uint64(answer)
	if highest <= s.acked || highest > s.next {
		return
	}
	s.acked, s.received, s.progress = highest, binary.LittleEndian.Uint64(answer[8:]), now
}

// done reports whether all frames of the burst are confirmed or lost.
func (s *streamSender) done() bool { return s.acked == s.end }

// lost returns how many frames of the burst did not arrive.
func (s *streamSender) lost() int { return int((s.end - s.base) - (s.received - s.counted)) }

// repeat reports whether the last frame must be sent once more, because
// nothing was confirmed for long, and returns its header.
func (s *streamSender) repeat(now mono.Time) (word uint64, ok bool) {
	if s.next == s.acked || now.Sub(s.progress) < tailTimeout {
		return 0, false
	}
	s.progress = now
	return (s.next-1)<<1 | confirmBit, true
}

// streamReceiver counts at the receiving end of a stream.
type streamReceiver struct {
	highest  uint64 // number after the highest one seen
	received uint64
}

// frame takes the header of a frame and reports whether it is to be answered.
func (r *streamReceiver) frame(header []byte) (confirm bool) {
	if len(header) < streamHeader {
		return false
	}
	word := binary.LittleEndian.Uint64(header)
	if n := word >> 1; n >= r.highest {
		r.highest = n + 1
		r.received++
	}
	return word&confirmBit != 0
}

// answer writes the confirmation into b, which has confirmSize bytes.
func (r *streamReceiver) answer(b []byte) {
	binary.LittleEndian.PutUint64(b, r.highest)
	binary.LittleEndian.PutUint64(b[8:], r.received)
}
