package arq

import (
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

const start = serial.U32(0xfffffff8) // every test crosses the wrap

// script drives a Sender and a Receiver by hand; its steps read like a ladder
// diagram.
type script struct {
	*testing.T
	cfg *Config
	now mono.Time
	snd Sender
	rcv Receiver
}

func newScript(t *testing.T) *script {
	sh := NewShared(Config{Window: 64}, 1000)
	s := &script{T: t, cfg: sh.Config()}
	s.snd.Init(sh, start)
	s.rcv.Init(sh, start)
	return s
}

func (s *script) send(n int) {
	s.Helper()
	for range n {
		if !s.snd.CanPush(0) {
			s.Fatalf("the window is full with %d in flight", s.snd.InFlight())
		}
		s.snd.Push(s.now, 0, 0, 0, true)
	}
}

func (s *script) pass(d mono.Duration) { s.now = s.now.Add(d) }

// arrive gives the receiver the i-th units.
func (s *script) arrive(is ...int) {
	s.Helper()
	for _, i := range is {
		lsn := start.Add(int32(i))
		if !s.rcv.Fresh(lsn) {
			s.Fatalf("unit %d is not fresh", i)
		}
		s.rcv.Mark(lsn)
	}
}

// ack takes the receiver's acknowledgement to the sender.
func (s *script) ack() {
	s.Helper()
	if _, ok := s.snd.OnAck(s.now, s.rcv.Next(), 64, 0); !ok {
		s.Fatal("acknowledgement was not taken")
	}
	for w := range s.rcv.SackWords() {
		s.snd.OnSack(s.now, s.rcv.Next().Add(int32(1+64*w)), s.rcv.Sack(w))
	}
	s.snd.Detect(s.now)
	s.rcv.Acked(true)
}

// resends sends what is lost again and checks which that is.
func (s *script) resends(want ...int) {
	s.Helper()
	var got []int
	for {
		lsn, ok := s.snd.NextLost()
		if !ok {
			break
		}
		s.snd.Resent(s.now, lsn)
		got = append(got, int(int32(lsn-start)))
	}
	if len(got) != len(want) {
		s.Fatalf("sent %v again, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			s.Fatalf("sent %v again, want %v", got, want)
		}
	}
}

// timer lets the sender's deadline pass.
func (s *script) timer() {
	s.Helper()
	if s.snd.Deadline() == mono.Never {
		s.Fatal("no timer is set")
	}
	s.now = max(s.now, s.snd.Deadline())
	s.snd.OnTimer(s.now)
}

func TestSender_inOrder(t *testing.T) {
	s := newScript(t)
	for range 100 {
		s.send(10)
		s.pass(10 * mono.Microsecond)
		for i := range 10 {
			s.rcv.Mark(s.rcv.Next())
			_ = i
		}
		s.ack()
		s.resends()
	}
	if s.snd.InFlight() != 0 || s.snd.Deadline() != mono.Never {
		t.Errorf("%d in flight, timer %v", s.snd.InFlight(), s.snd.Deadline())
	}
	if got := s.snd.rtt.smoothed; got != 10*mono.Microsecond {
		t.Errorf("round trip %v", got)
	}
}

func TestSender_gapIsSentAgainAfterTheReorderWindow(t *testing.T) {
	s := newScript(t)
	s.send(1)
	s.pass(10 * mono.Microsecond)
	s.arrive(0)
	s.ack() // the round trip is known: 10 us
	s.send(1)
	s.pass(mono.Microsecond)
	s.send(2)
	s.pass(10 * mono.Microsecond)
	s.arrive(2, 3)
	s.ack()
	s.resends() // 1 may just be late
	s.timer()
	s.resends(1)
	s.pass(10 * mono.Microsecond)
	s.arrive(1)
	s.ack()
	if s.snd.InFlight() != 0 {
		t.Errorf("%d in flight", s.snd.InFlight())
	}
}

func TestSender_reorderingCostsNothing(t *testing.T) {
	s := newScript(t)
	s.send(1)
	s.pass(100 * mono.Microsecond)
	s.arrive(0)
	s.ack()
	s.send(4)
	s.pass(100 * mono.Microsecond)
	s.arrive(2, 3, 4)
	s.ack()
	s.pass(10 * mono.Microsecond)
	s.arrive(1)
	s.ack()
	s.resends()
}

func TestSender_tailIsProbedThenTimedOut(t *testing.T) {
	s := newScript(t)
	s.send(1)
	s.pass(10 * mono.Microsecond)
	s.arrive(0)
	s.ack()
	s.send(3) // all lost
	s.timer()
	s.resends(3) // the probe is the last one
	s.timer()
	s.resends(1, 2, 3) // then everything
	var waits []mono.Duration
	for range 20 {
		before := s.now
		s.timer()
		s.resends(1, 2, 3)
		waits = append(waits, s.now.Sub(before))
	}
	if waits[0] < s.cfg.RTOMin || waits[0] > 2*s.cfg.RTOMin || waits[3] < 3*waits[0]/2 || waits[19] > 5*s.cfg.RTOMax/4 || waits[19] < s.cfg.RTOMax {
		t.Errorf("intervals between time-outs: %v", waits)
	}
}

// A peer that says of each unit that it has arrived, and does not acknowledge the first,
// has lost them or never had them.
func TestSender_allSackedIsSentAgain(t *testing.T) {
	s := newScript(t)
	s.send(3)
	s.pass(10 * mono.Microsecond)
	s.snd.OnAck(s.now, s.snd.una, 64, 0)
	s.snd.OnSack(s.now, s.snd.una, 7)
	s.snd.Detect(s.now)
	s.resends()
	s.timer()
	s.timer()
	s.resends(0, 1, 2)
	if s.snd.TimeOuts() == 0 {
		t.Error("the silence of the peer is no time-out")
	}
}

func TestSender_lostResendIsFoundByTime(t *testing.T) {
	s := newScript(t)
	s.send(1)
	s.pass(10 * mono.Microsecond)
	s.arrive(0)
	s.ack()
	s.send(5)
	s.pass(10 * mono.Microsecond)
	s.arrive(2)
	s.ack()
	s.timer()
	s.resends(1) // and this is lost as well
	s.pass(mono.Millisecond)
	s.send(1)
	s.pass(10 * mono.Microsecond)
	s.arrive(6)
	s.ack()
	s.resends(1, 3, 4, 5)
}

func TestSender_window(t *testing.T) {
	s := newScript(t)
	s.send(64)
	if s.snd.CanPush(0) {
		t.Error("more in flight than the window")
	}
	s.arrive(0)
	s.snd.OnAck(s.now, s.rcv.Next(), 10, 0) // the peer takes 10 from here on
	if s.snd.CanPush(0) {
		t.Error("more in flight than the peer takes")
	}
	for i := 1; i < 60; i++ {
		s.arrive(i)
	}
	s.snd.OnAck(s.now, s.rcv.Next(), 10, 0)
	s.send(6)
	if s.snd.CanPush(0) {
		t.Error("more in flight than the peer takes")
	}
}

func TestSender_oldAndForeignAcksChangeNothing(t *testing.T) {
	s := newScript(t)
	s.send(10)
	s.arrive(0, 1, 2, 3)
	s.ack()
	for _, d := range []int32{-1, 3, 11, 1000, 1 << 30, -1 << 31} {
		if _, ok := s.snd.OnAck(s.now, start.Add(d), 0, 0); ok {
			t.Errorf("took an acknowledgement of %d", d)
		}
	}
	s.snd.OnSack(s.now, start.Add(10), ^uint64(0)) // beyond what was sent
	s.snd.OnSack(s.now, start.Add(-64), ^uint64(0))
	if s.snd.InFlight() != 6 || s.snd.loss.sacked != 0 || !s.snd.CanPush(0) {
		t.Errorf("%d in flight, %d sacked", s.snd.InFlight(), s.snd.loss.sacked)
	}
}

// A peer that has no receive for longer than PeerLost is asked again and again,
// at most RTOMax apart.
func TestSender_neverStopsAsking(t *testing.T) {
	s := newScript(t)
	s.send(1)
	last := s.now
	for s.now < mono.Time(3*s.cfg.PeerLost) {
		s.now = max(s.now, s.snd.Deadline())
		s.snd.OnTimer(s.now)
		if lsn, ok := s.snd.NextLost(); ok {
			s.snd.Resent(s.now, lsn)
			last = s.now
		}
		if s.now.Sub(last) > 2*s.cfg.RTOMax {
			t.Fatalf("nothing was sent since %v, and it is %v", mono.Duration(last), mono.Duration(s.now))
		}
	}
}

func TestReceiver_ackTiming(t *testing.T) {
	s := newScript(t)
	s.now = 1000
	s.arrive(0)
	s.rcv.AckDue(s.now, false, false)
	if got := s.rcv.Deadline().Sub(s.now); got != s.cfg.AckDelay {
		t.Errorf("one unit: acknowledged after %v", got)
	}
	s.rcv.AckDue(s.now, false, true)
	if got := s.rcv.Deadline().Sub(s.now); got != s.cfg.AckSoon {
		t.Errorf("the sender waits: acknowledged after %v", got)
	}
	s.rcv.Acked(false) // rode on data
	if s.rcv.Deadline() != mono.Never {
		t.Error("still due after it rode on data")
	}
	for i := range s.cfg.AckEvery {
		s.arrive(1 + i)
		s.rcv.AckDue(s.now, false, false)
	}
	if s.rcv.Deadline() != s.now {
		t.Error("many units are not acknowledged at once")
	}
	s.rcv.Acked(false)
	s.arrive(40)
	s.rcv.AckDue(s.now, true, false)
	s.rcv.Acked(false)
	if s.rcv.Deadline() != s.now {
		t.Error("data took away an acknowledgement that has gaps to report")
	}
}

func TestReceiver_windowAndDuplicates(t *testing.T) {
	s := newScript(t)
	for _, d := range []int32{-1, 64, 65, 1 << 30, -1 << 31} {
		if s.rcv.Fresh(start.Add(d)) {
			t.Errorf("unit %d is outside of the window and fresh", d)
		}
	}
	s.arrive(5, 63)
	for _, i := range []int32{5, 63} {
		if s.rcv.Fresh(start.Add(i)) {
			t.Errorf("unit %d is fresh twice", i)
		}
	}
	if s.rcv.Sack(0) != 1<<4|1<<62 || s.rcv.SackWords() != 1 {
		t.Errorf("SACK %#x in %d words", s.rcv.Sack(0), s.rcv.SackWords())
	}
	s.arrive(0, 1, 2, 3, 4)
	if s.rcv.Next() != start.Add(6) {
		t.Errorf("next is %d", int32(s.rcv.Next()-start))
	}
}

// Against a map: whatever order units come in, Fresh, Next and Sack agree
// with what has arrived.
func TestReceiver_random(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newScript(t)
		have := map[serial.U32]bool{}
		next := start
		for range 500 {
			lsn := next.Add(int32(rng.IntN(80)) - 8)
			fresh := lsn.In(next, 64) && !have[lsn]
			if s.rcv.Fresh(lsn) != fresh {
				t.Fatalf("seed %d: Fresh(%d) is %v", seed, lsn, !fresh)
			}
			if !fresh {
				continue
			}
			s.rcv.Mark(lsn)
			have[lsn] = true
			for have[next] {
				next++
			}
			if s.rcv.Next() != next {
				t.Fatalf("seed %d: next is %d, want %d", seed, s.rcv.Next(), next)
			}
			for w := range s.rcv.SackWords() {
				word := s.rcv.Sack(w)
				for i := range 64 {
					at := next.Add(int32(1 + 64*w + i))
					if want := have[at] && at.In(next, 64); (word>>i&1 == 1) != want {
						t.Fatalf("seed %d: SACK says %v of %d", seed, !want, at)
					}
				}
			}
		}
	}
}
