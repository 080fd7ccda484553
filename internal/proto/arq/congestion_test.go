package arq

import (
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

// A segment of these tests takes exactly this much of the window.
const testSegment = 8000

// path is a sender on a path without bandwidth limits whose round trip and
// losses the test decides.
type path struct {
	*script
}

func newPath(t *testing.T) *path {
	sh := NewShared(Config{}, 1000)
	p := &path{script: &script{T: t, cfg: sh.Config()}}
	p.snd.Init(sh, start)
	p.snd.SetSegment(testSegment)
	p.rcv.Init(sh, start)
	p.now = mono.Time(mono.Second) // not at the origin of time
	return p
}

// segments returns the congestion window in segments, in parts of 1000.
func (p *path) segments() int { return int(int64(p.snd.cwnd) * 1000 / testSegment) }

func (p *path) setSegments(n int) {
	p.snd.cwnd = int32(n * testSegment)
	p.snd.beganCwnd = p.snd.cwnd
}

// warm returns a path whose round trip of 20 us is known, with a window of n
// segments and nothing in flight.
func warm(t *testing.T, n int) *path {
	p := newPath(t)
	for range 3 {
		p.round(20 * mono.Microsecond)
	}
	p.setSegments(n)
	p.snd.arrivedBytes = 0
	return p
}

// fill sends until the window is full.
func (p *path) fill() (n int) {
	for p.snd.CanPush(testSegment - lengthLen) {
		p.snd.Push(p.now, 0, 0, testSegment-unitOverhead, true)
		n++
		if n > WindowMax {
			p.Fatal("the window has no end")
		}
	}
	return n
}

// round fills the window, lets a round trip pass, and acknowledges everything.
func (p *path) round(rtt mono.Duration) {
	p.Helper()
	p.pass(1)
	if p.fill() == 0 {
		p.Fatalf("nothing may be sent: %d in flight, %d bytes of window, pause until %v", p.snd.InFlight(), p.snd.cwnd, p.snd.paceAt)
	}
	p.pass(rtt)
	p.snd.OnAck(p.now, p.snd.Next(), 256, 0)
	p.snd.Detect(p.now)
	for p.snd.paceAt != mono.Never {
		p.now = max(p.now, p.snd.Deadline())
		p.snd.OnTimer(p.now)
	}
}

// roundLosing does the same and loses the last n but two.
func (p *path) roundLosing(n int, rtt mono.Duration) {
	p.Helper()
	p.pass(1)
	sent := p.fill()
	p.pass(rtt)
	first := p.snd.una.Add(int32(sent - 2 - n))
	p.snd.OnAck(p.now, first, 256, 0)
	p.snd.OnSack(p.now, first.Add(int32(n)), 3)
	p.snd.Detect(p.now)
	if p.snd.loss.reorderAt != mono.Never {
		p.now = max(p.now, p.snd.loss.reorderAt)
		p.snd.OnTimer(p.now)
	}
	if got := int(p.snd.loss.lost); got != n {
		p.Fatalf("%d count as lost, want %d", got, n)
	}
}

func TestCongestion_growsFastOnACalmPath(t *testing.T) {
	p := newPath(t)
	p.setSegments(4)
	rounds := 0
	for ; p.segments() < 128_000; rounds++ {
		p.round(20 * mono.Microsecond)
	}
	if rounds > 20 {
		t.Errorf("%d rounds from 4 to 128 segments", rounds)
	}
}

func TestCongestion_growsByStepsNearTheTarget(t *testing.T) {
	p := warm(t, 10)
	for range 16 {
		p.round(100 * mono.Microsecond)
	}
	if got := p.segments(); got < 11_000 || got > 13_000 {
		t.Errorf("10 segments grew to %d/1000 in 16 rounds", got)
	}
}

// Who does not use the window cannot know whether it could be larger, and is
// not to blame for a delay.
func TestCongestion_staysWhenItIsNotUsed(t *testing.T) {
	p := newPath(t)
	before := p.segments()
	for i := range 100 {
		p.pass(1)
		p.snd.Push(p.now, 0, 0, 8, true)
		p.pass(mono.Duration(20+100*(i%20)) * mono.Microsecond)
		p.snd.OnAck(p.now, p.snd.Next(), 256, 0)
	}
	if got := p.segments(); got != before {
		t.Errorf("the window went from %d/1000 to %d/1000", before, got)
	}
}

func TestCongestion_oneDelayedRoundIsForgiven(t *testing.T) {
	p := warm(t, 32)
	for range 3 {
		p.round(20 * mono.Microsecond)
		before := p.segments()
		p.round(5 * mono.Millisecond) // a host has lost its core
		if got := p.segments(); got < before {
			t.Errorf("the window went from %d/1000 to %d/1000", before, got)
		}
	}
}

func TestCongestion_delayThatLastsShrinks(t *testing.T) {
	p := warm(t, 32)
	p.round(200 * mono.Microsecond)
	p.round(200 * mono.Microsecond)
	// The target is 125 us and a bit; 0.6 of that over 200.
	if got := p.segments(); got < 16_000 || got > 18_000 {
		t.Errorf("32 segments shrank to %d/1000", got)
	}
	p.round(10 * mono.Millisecond)
	if got := p.segments(); got < 8_000 || got > 9_000 {
		t.Errorf("a very long delay took more than half: %d/1000 are left", got)
	}
}

func TestCongestion_smallWindowReactsAtOnce(t *testing.T) {
	p := warm(t, 2)
	p.round(300 * mono.Microsecond)
	if got := p.segments(); got > 1_400 {
		t.Errorf("2 segments became %d/1000", got)
	}
}

func TestCongestion_smallWindowsAimHigher(t *testing.T) {
	p := newPath(t)
	last := mono.Duration(1 << 40)
	for _, n := range []int{1, 4, 16, 64} {
		p.setSegments(n)
		target, _ := p.snd.target()
		if target >= last || target <= p.cfg.DelayTarget {
			t.Errorf("%d segments aim at %v, fewer at %v", n, target, last)
		}
		last = target
	}
}

// Less than a segment in a round trip: there is a pause after each.
func TestCongestion_pauses(t *testing.T) {
	p := newPath(t)
	p.round(100 * mono.Microsecond)
	p.snd.cwnd = testSegment / 4
	begin := p.now
	for range 10 {
		if p.fill() != 1 {
			t.Fatal("more than one segment, or none")
		}
		sent := p.now
		p.pass(100 * mono.Microsecond)
		p.snd.latest = 100 * mono.Microsecond
		p.snd.limited = false // the window stays as it is
		p.snd.OnAck(p.now, p.snd.Next(), 256, 0)
		p.snd.cwnd = testSegment / 4
		if p.snd.CanPush(0) {
			t.Fatal("no pause")
		}
		if d := p.snd.Deadline().Sub(sent); d != 400*mono.Microsecond {
			t.Fatalf("a pause of %v", d)
		}
		p.snd.OnTimer(p.snd.Deadline() - 1)
		if p.snd.CanPush(0) {
			t.Fatal("the pause ended early")
		}
		p.now = p.snd.Deadline()
		p.snd.OnTimer(p.now)
	}
	if d := p.now.Sub(begin); d != 4*mono.Millisecond {
		t.Errorf("10 segments in %v", d)
	}
}

func TestCongestion_aSegmentPer2msIsAlwaysAllowed(t *testing.T) {
	p := newPath(t)
	p.round(20 * mono.Microsecond)
	for range 100 {
		p.roundTrip(mono.Millisecond)
	}
	if got := p.segments(); got < 300 {
		t.Errorf("with round trips of 1 ms the window shrank to %d/1000 segments", got)
	}
	p.snd.latest = mono.Second
	p.snd.cwnd = 1
	p.fill()
	if d := p.snd.paceAt.Sub(p.now); d > cwndPer {
		t.Errorf("a pause of %v", d)
	}
}

// roundTrip is a round on a path that never proves to be a long one.
func (p *path) roundTrip(rtt mono.Duration) {
	p.Helper()
	p.round(rtt)
	p.snd.highs = 0
}

func TestCongestion_longPathIsFound(t *testing.T) {
	p := newPath(t)
	p.round(20 * mono.Microsecond)
	for range 2 * longAfter {
		p.round(400 * mono.Microsecond)
	}
	if got := p.snd.rtt.lowest; got != 400*mono.Microsecond {
		t.Errorf("shortest round trip %v", got)
	}
	for range 200 {
		p.round(400 * mono.Microsecond)
	}
	if got := p.segments(); got < 32_000 {
		t.Errorf("the window is %d/1000 segments on a long path", got)
	}
	p.round(30 * mono.Microsecond) // short again
	if got := p.snd.flatTarget(); got != p.cfg.DelayTarget {
		t.Errorf("the target is %v", got)
	}
}

func TestCongestion_lossWithoutDelayMayBeBadLuck(t *testing.T) {
	p := warm(t, 50)
	p.snd.highAt = p.now // no fast growth
	p.roundLosing(5, 20*mono.Microsecond)
	if got := p.segments(); got < 45_000 || got > 49_000 { // about half of 10 to 20 %: older arrivals count half
		t.Errorf("50 segments shrank to %d/1000", got)
	}
	p = warm(t, 5)
	p.roundLosing(1, 20*mono.Microsecond)
	if got := p.segments(); got < cwndSmall*1000 {
		t.Errorf("5 segments shrank to %d/1000 for one loss", got)
	}
}

func TestCongestion_lossWithDelayShrinks(t *testing.T) {
	p := warm(t, 50)
	p.roundLosing(1, 110*mono.Microsecond)
	if got := p.segments(); got < 34_000 || got > 36_000 {
		t.Errorf("50 segments shrank to %d/1000", got)
	}
}

func TestCongestion_losingMostShrinksToTheRest(t *testing.T) {
	p := newPath(t)
	p.setSegments(50)
	p.roundLosing(45, 20*mono.Microsecond)
	if got := p.segments(); got > 10_000 {
		t.Errorf("losing 45 of 50 leaves a window of %d/1000", got)
	}
}

// What has arrived shows that nothing was lost: a host had lost its core.
func TestCongestion_timeoutIsUndone(t *testing.T) {
	p := newPath(t)
	p.round(20 * mono.Microsecond)
	before := p.segments()
	p.fill()
	n := p.snd.InFlight()
	for p.snd.prior == 0 {
		p.now = max(p.now, p.snd.Deadline())
		p.snd.OnTimer(p.now)
		if lsn, ok := p.snd.NextLost(); ok {
			p.snd.Resent(p.now, lsn)
		}
	}
	if got := p.segments(); got != 1000 {
		t.Fatalf("after a time-out the window is %d/1000", got)
	}
	p.snd.OnAck(p.now, p.snd.una.Add(int32(n/2)), 256, 0)
	p.snd.Detect(p.now)
	if got := p.segments(); got < before || p.snd.HasLost() {
		t.Errorf("the window is %d/1000, before the time-out it was %d/1000; lost %d", got, before, p.snd.loss.lost)
	}
}

func TestCongestion_timeoutStands(t *testing.T) {
	p := newPath(t)
	p.round(20 * mono.Microsecond)
	p.fill()
	for p.snd.prior == 0 {
		p.now = max(p.now, p.snd.Deadline())
		p.snd.OnTimer(p.now)
	}
	lsn, _ := p.snd.NextLost()
	p.snd.Resent(p.now, lsn)
	p.pass(20 * mono.Microsecond)
	p.snd.OnAck(p.now, lsn+1, 256, 0)
	if got := p.segments(); got > 3000 || p.snd.prior != 0 {
		t.Errorf("the window is %d/1000", got)
	}
}

func TestCongestion_restartsModestly(t *testing.T) {
	p := newPath(t)
	p.setSegments(200)
	p.round(20 * mono.Microsecond)
	p.pass(mono.Second)
	p.snd.Push(p.now, 0, 0, 8, true)
	if got := p.segments(); got != 1000*cwndInitial {
		t.Errorf("after a second without traffic the window is %d/1000", got)
	}
	p = newPath(t)
	p.setSegments(3)
	p.pass(mono.Second)
	p.snd.Push(p.now, 0, 0, 8, true)
	if got := p.segments(); got != 3000 {
		t.Errorf("a small window became %d/1000", got)
	}
}

func TestSender_segmentScalesTheWindow(t *testing.T) {
	p := newPath(t)
	before := p.segments()
	p.snd.SetSegment(testSegment / 4)
	if got := p.segments(); got != before/4 {
		t.Errorf("a quarter of the segment: %d/1000 became %d/1000", before, got)
	}
	p.snd.SetSegment(testSegment)
	if got := p.segments(); got != before {
		t.Errorf("and back: %d/1000 became %d/1000", before, got)
	}
}

// The acknowledgement is asked for with each datagram until the round trip is
// known, and then four times per window.
func TestSender_asksFourTimesPerWindow(t *testing.T) {
	p := newPath(t)
	p.snd.Push(p.now, 0, 0, testSegment-unitOverhead, true)
	if !p.snd.AckSoon() {
		t.Error("the first datagram does not ask")
	}
	p.pass(20 * mono.Microsecond)
	p.snd.OnAck(p.now, p.snd.Next(), 256, 0)
	asked := 0
	for range cwndInitial {
		p.snd.Push(p.now, 0, 0, testSegment-unitOverhead, true)
		if p.snd.AckSoon() {
			asked++
		}
	}
	if asked != 4 {
		t.Errorf("asked %d times in a window", asked)
	}
}

func TestSender_heldIsNoRoundTrip(t *testing.T) {
	p := newPath(t)
	send := func(after, held mono.Duration) {
		p.pass(1)
		p.snd.Push(p.now, 0, 0, 8, true)
		p.pass(after)
		p.snd.OnAck(p.now, p.snd.Next(), 256, held)
	}
	send(100*mono.Microsecond, 80*mono.Microsecond)
	if got := p.snd.rtt.smoothed; got != 20*mono.Microsecond {
		t.Errorf("round trip %v", got)
	}
	send(20*mono.Millisecond, HeldUnknown)
	if got := p.snd.rtt.smoothed; got != 20*mono.Microsecond {
		t.Errorf("round trip %v after a unit was held for nobody knows how long", got)
	}
	send(20*mono.Microsecond, 50*mono.Microsecond) // a lie
	if got := p.snd.rtt.lowest; got != 1 {
		t.Errorf("shortest round trip %v", got)
	}
}

// A reorder timer that finds everything there is no time-out.
func TestSender_reorderTimerIsNoTimeout(t *testing.T) {
	p := newPath(t)
	p.round(20 * mono.Microsecond)
	for range 50 {
		p.pass(1)
		p.snd.Push(p.now, 0, 0, 8, true)
		p.snd.Push(p.now, 0, 0, 8, true)
		p.pass(20 * mono.Microsecond)
		p.snd.OnSack(p.now, p.snd.una+1, 1) // the second is there first
		p.snd.Detect(p.now)
		if p.snd.loss.reorderAt == mono.Never {
			t.Fatal("no reorder timer")
		}
		p.snd.OnAck(p.now, p.snd.una+1, 256, 0)
		p.snd.Push(p.now, 0, 0, 8, true)
		p.pass(21 * mono.Microsecond)
		p.snd.OnTimer(p.now)
		if p.snd.probed || p.snd.loss.backoff != 0 || p.snd.HasLost() {
			t.Fatal("the reorder timer led to a probe or a time-out")
		}
		p.snd.OnAck(p.now, p.snd.Next(), 256, 0)
		p.snd.Detect(p.now)
	}
}

// What arrives after it was given up makes the sender wait longer, until many
// losses were real.
func TestSender_reorderShift(t *testing.T) {
	p := newPath(t)
	p.round(100 * mono.Microsecond)
	p.snd.SetSegment(testSegment)
	before := p.snd.reorder()
	p.roundLosing(1, 100*mono.Microsecond)
	p.snd.OnAck(p.now, p.snd.Next(), 256, 0) // it was not lost at all
	p.snd.Detect(p.now)
	if p.snd.reorderShift != 1 || p.snd.reorder() < 2*before {
		t.Errorf("the reorder window went from %v to %v", before, p.snd.reorder())
	}
	for range reorderShiftKept {
		p.snd.cwnd = cwndInitial * testSegment
		p.pass(mono.Millisecond)
		p.roundLosing(1, 100*mono.Microsecond)
		lsn, _ := p.snd.NextLost()
		p.snd.Resent(p.now, lsn)
		p.pass(100 * mono.Microsecond)
		p.snd.OnAck(p.now, p.snd.Next(), 256, 0)
		p.snd.Detect(p.now)
	}
	if got := p.snd.reorderShift; got != 0 {
		t.Errorf("the shift is %d after %d real losses", got, reorderShiftKept)
	}
}

func TestShared_idlePeersHoldNothing(t *testing.T) {
	sh := NewShared(Config{Window: 64}, 1000)
	pairs := make([]pair, 100)
	for i := range pairs {
		pairs[i].snd.Init(sh, start)
		pairs[i].rcv.Init(sh, start)
	}
	for i := range pairs {
		p := &pairs[i]
		p.burst(t, 3, 8)
		p.rcv.Mark(p.rcv.Next() + 1) // out of order
		p.rcv.Mark(p.rcv.Next())
		p.snd.Rest()
		p.rcv.Rest()
		if p.snd.recs != nil || p.rcv.bits != nil {
			t.Fatal("an idle peer holds memory")
		}
	}
	if len(sh.rings) != 1 || len(sh.bits) != 1 {
		t.Errorf("%d rings and %d bit rings for one peer at a time", len(sh.rings), len(sh.bits))
	}
	p := &pairs[0]
	p.snd.Push(p.now, 0, 0, 8, true)
	p.rcv.Mark(p.rcv.Next() + 5)
	p.snd.Rest()
	p.rcv.Rest()
	if p.snd.recs == nil || p.rcv.bits == nil {
		t.Fatal("memory was taken away from a peer that needs it")
	}
	p.snd.Init(sh, 7) // another association: nothing of the old one is left
	p.rcv.Init(sh, 7)
	if len(sh.rings) != 1 || len(sh.bits) != 1 {
		t.Error("Init loses memory")
	}
	for i := range uint32(63) {
		if !p.rcv.Fresh(7 + serial.U32(i)) {
			t.Fatalf("unit %d of a new association is not fresh", i)
		}
	}
	p.rcv.Mark(8)
	for i := range uint32(60) {
		if got := p.rcv.Fresh(9 + serial.U32(i)); !got {
			t.Fatalf("unit %d of a new association is not fresh", i+2)
		}
	}
}

func TestNewShared_refusesOddWindows(t *testing.T) {
	for _, w := range []int{-1, 3, 100, 2 * WindowMax} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a window of %d was taken", w)
				}
			}()
			NewShared(Config{Window: w}, 1000)
		}()
	}
}
