package arq

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
)

const (
	ms      = mono.Time(mono.Millisecond)
	gigabit = int64(1e9)
	kib     = int64(1024)
)

// period is what the network did in a span of time.
type period struct {
	goodput float64 // part of what the bottleneck can carry
	jain    float64
	shares  []float64 // of the flows; 1 is a fair one
	dropped float64   // part of what came to the queue
	queue   float64   // mean, bytes
}

// watch lets the time pass until end and tells what happened.
func (n *bottleneck) watch(end mono.Time) period {
	had := make([]int64, len(n.flows))
	for i, f := range n.flows {
		had[i] = f.received
	}
	begin := n.now
	n.dropped, n.arrived, n.queueSum = 0, 0, 0
	n.run(end)
	p := period{shares: make([]float64, len(n.flows))}
	sum := 0.0
	for i, f := range n.flows {
		p.shares[i] = float64(f.received - had[i])
		sum += p.shares[i]
	}
	p.jain = jain(p.shares)
	for i := range p.shares {
		p.shares[i] *= float64(len(n.flows)) / sum
	}
	f := n.flows[0]
	most := float64(n.rate) / 8e9 * float64(end-begin) * float64(f.size) / float64(f.wireBytes())
	p.goodput = sum / most
	p.dropped = float64(n.dropped) / float64(n.dropped+n.arrived)
	p.queue = n.queueSum / float64(n.arrived)
	return p
}

func (p period) String() string {
	return fmt.Sprintf("goodput %.3f, Jain %.4f, %.2f %% dropped, queue %.0f KiB", p.goodput, p.jain, 100*p.dropped, p.queue/1024)
}

// Many senders start at once with a full window each, far more than the queue
// takes. Afterwards the bottleneck is busy, shares are equal, and the queue is
// as short as the target says.
func TestIncast(t *testing.T) {
	for _, c := range []struct {
		flows   int
		segment int
		buffer  int64
		queue   float64 // KiB, most on average
		drops   float64 // most, after the start
	}{
		{2, 1472, 256, 160, 0},
		{2, 8972, 256, 160, 0},
		{8, 1472, 256, 160, 0},
		{8, 8972, 256, 160, 0},
		{16, 8972, 256, 160, 0.01},
		{64, 1472, 256, 180, 0},
		{64, 8972, 256, 200, 0.1}, // a third of a datagram in each round trip is a fair share
		{64, 8972, 1024, 250, 0},
	} {
		t.Run(fmt.Sprintf("%d x %d bytes, queue %d KiB", c.flows, c.segment, c.buffer), func(t *testing.T) {
			n := newBottleneck(10*gigabit, c.buffer*kib)
			for range c.flows {
				n.add(Config{}, c.segment, 0)
			}
			first := n.watch(100 * ms)
			t.Log("first 100 ms:", first)
			if first.goodput < 0.85 {
				t.Errorf("it takes too long to recover from the first burst: %v", first)
			}
			then := n.watch(300 * ms)
			t.Log("next 200 ms:", then)
			if then.goodput < 0.93 || then.jain < 0.95 || then.queue > c.queue*1024 || then.dropped > c.drops {
				t.Errorf("%v", then)
			}
		})
	}
}

// A queue that overflows before there is much delay: shares are less equal, but
// the bottleneck is busy and nobody starves.
func TestIncast_shallowQueue(t *testing.T) {
	for _, c := range []struct{ flows, segment int }{{8, 1472}, {8, 8972}, {16, 8972}, {64, 1472}} {
		n := newBottleneck(10*gigabit, 128*kib)
		for range c.flows {
			n.add(Config{}, c.segment, 0)
		}
		n.run(100 * ms)
		p := n.watch(300 * ms)
		t.Logf("%d x %d bytes: %v", c.flows, c.segment, p)
		if p.goodput < 0.93 || p.jain < 0.85 {
			t.Errorf("%d x %d bytes: %v", c.flows, c.segment, p)
		}
		for i, share := range p.shares {
			if share < 0.1 {
				t.Errorf("%d x %d bytes: flow %d has %.2f of a fair share", c.flows, c.segment, i, share)
			}
		}
	}
}

// One that joins late finds a queue, and cannot know that the path is shorter.
func TestIncast_lateJoiner(t *testing.T) {
	for _, c := range []struct{ flows, segment int }{{1, 8972}, {7, 1472}, {7, 8972}, {63, 1472}, {63, 8972}} {
		n := newBottleneck(10*gigabit, 256*kib)
		for range c.flows {
			n.add(Config{}, c.segment, 0)
		}
		n.add(Config{}, c.segment, 100*ms)
		n.run(120 * ms)
		p := n.watch(220 * ms)
		share := p.shares[c.flows]
		t.Logf("1 joins %d, %d bytes: share %.2f, %v", c.flows, c.segment, share, p)
		if share < 0.6 || share > 1.6 || p.jain < 0.95 || p.goodput < 0.93 {
			t.Errorf("1 joins %d, %d bytes: share %.2f, %v", c.flows, c.segment, share, p)
		}
	}
}

// When half of the senders stop, the others take what becomes free.
func TestIncast_othersStop(t *testing.T) {
	n := newBottleneck(10*gigabit, 256*kib)
	for i := range 16 {
		f := n.add(Config{}, 8972, 0)
		if i >= 2 {
			f.stop = 100 * ms
		}
	}
	n.run(105 * ms)
	if p := n.watch(115 * ms); p.goodput < 0.9 {
		t.Errorf("two are left, from 5 ms after the others have stopped: %v", p)
	}
}

// Paths of different length share a queue: the shorter one gets more. The test
// says how much, and that the longer one does not starve within a cluster.
func TestIncast_differentRoundTrips(t *testing.T) {
	for _, c := range []struct {
		longer mono.Duration
		least  float64
	}{
		{2 * mono.Microsecond, 0.9},
		{10 * mono.Microsecond, 0.5},
		{30 * mono.Microsecond, 0.2},
	} {
		n := newBottleneck(10*gigabit, 256*kib)
		n.add(Config{}, 8972, 0)
		n.add(Config{}, 8972, 0).delay += c.longer / 2
		n.run(100 * ms)
		p := n.watch(400 * ms)
		t.Logf("round trip longer by %v: shares %.2f", c.longer, p.shares)
		if p.shares[1] < c.least {
			t.Errorf("round trip longer by %v: shares %.2f", c.longer, p.shares)
		}
	}
}

// A path that is longer than the target of a short one is filled as well.
func TestLongPath(t *testing.T) {
	for _, oneWay := range []mono.Duration{25, 50, 75, 100, 250, 500} {
		n := newBottleneck(10*gigabit, 1024*kib)
		f := n.add(Config{}, 8972, 0)
		f.delay = oneWay * mono.Microsecond
		n.run(100 * ms)
		p := n.watch(200 * ms)
		t.Logf("round trip %v: %v", 2*f.delay, p)
		if p.goodput < 0.93 {
			t.Errorf("round trip %v: %v", 2*f.delay, p)
		}
	}
}

// A route becomes longer, and later short again.
func TestLongPath_routeChanges(t *testing.T) {
	n := newBottleneck(10*gigabit, 1024*kib)
	f := n.add(Config{}, 8972, 0)
	n.run(50 * ms)
	f.delay = 150 * mono.Microsecond
	n.run(100 * ms)
	if p := n.watch(150 * ms); p.goodput < 0.93 {
		t.Errorf("50 ms after the route became longer: %v", p)
	}
	f.delay = 5 * mono.Microsecond
	n.run(160 * ms)
	if p := n.watch(210 * ms); p.goodput < 0.93 || f.snd.rtt.lowest > f.sndSh.Config().DelayTarget {
		t.Errorf("10 ms after it became short again: %v, shortest round trip %v", p, f.snd.rtt.lowest)
	}
}

// A host that loses its core half of the time gets half of the bandwidth, and
// all of it as soon as it keeps its core.
func TestStalls(t *testing.T) {
	for _, every := range []mono.Time{2 * ms, 5 * ms, 10 * ms, 30 * ms} {
		for _, sender := range []bool{false, true} {
			n := newBottleneck(10*gigabit, 256*kib)
			f := n.add(Config{}, 8972, 0)
			n.run(10 * ms)
			had := f.received
			begin := n.now
			for n.now < 310*ms {
				if away := n.now + every/2; sender {
					f.sndAway = away
				} else {
					f.rcvAway = away
				}
				n.run(n.now + every)
			}
			part := float64(f.received-had) * 8e9 / float64(n.now-begin) / float64(n.rate)
			after := n.watch(n.now + 5*ms)
			t.Logf("half of %v, sender %v: %.3f; after: %v", mono.Duration(every), sender, part, after)
			if part < 0.45 || after.goodput < 0.95 {
				t.Errorf("half of %v, sender %v: %.3f; after: %v", mono.Duration(every), sender, part, after)
			}
		}
	}
}

// Two hosts that share one core: when one runs, the other does not, and every
// round trip is as long as a turn. The window must not follow.
func TestStalls_takingTurns(t *testing.T) {
	for _, turn := range []mono.Time{ms / 5, ms, 4 * ms} {
		n := newBottleneck(10*gigabit, 4096*kib)
		f := n.add(Config{}, 8972, 0)
		for n.now < 400*ms {
			f.rcvAway = n.now + turn
			n.run(n.now + turn)
			f.sndAway = n.now + turn
			n.run(n.now + turn)
		}
		perTurn := float64(f.received) / float64(f.size) / (400 / (2 * float64(turn) / float64(ms)))
		t.Logf("turns of %v: %.0f datagrams in each", mono.Duration(turn), perTurn)
		if perTurn < 40 {
			t.Errorf("turns of %v: %.0f datagrams in each", mono.Duration(turn), perTurn)
		}
	}
}

// finish runs until the flow has nothing more to send, and returns when.
func (f *flow) finish(t *testing.T) mono.Time {
	t.Helper()
	for f.acked < int64(f.burst) {
		if len(f.net.events) == 0 {
			t.Fatalf("%d of %d units are acknowledged, and nothing goes on", f.acked, f.burst)
		}
		f.net.step()
	}
	if f.snd.InFlight() != 0 || f.snd.pipe != 0 || f.received != int64(f.burst)*int64(f.size) {
		t.Fatalf("done with %d in flight, %d bytes on the wire, %d bytes received", f.snd.InFlight(), f.snd.pipe, f.received)
	}
	return f.net.now
}

func TestRecovery_partition(t *testing.T) {
	n := newBottleneck(10*gigabit, 256*kib)
	n.cut = [2]mono.Time{50 * ms, 1050 * ms}
	f := n.add(Config{}, 8972, 0)
	n.run(1050 * ms)
	had := f.received
	for f.received == had {
		n.step()
	}
	if late := mono.Duration(n.now - 1050*ms); late > mono.Second {
		t.Errorf("it went on %v after the partition", late)
	}
	n.run(n.now + 10*ms)
	if p := n.watch(n.now + 20*ms); p.goodput < 0.95 {
		t.Errorf("10 ms later: %v", p)
	}
}

// The first time-outs come early and then further apart, so that a partition
// costs few datagrams.
func TestRecovery_partitionCostsLittle(t *testing.T) {
	n := newBottleneck(10*gigabit, 256*kib)
	n.cut = [2]mono.Time{50 * ms, 1050 * ms}
	f := n.add(Config{}, 8972, 0)
	n.run(50 * ms)
	before := f.resent
	n.run(1050 * ms)
	if got := f.resent - before; got < 5 || got > 20 {
		t.Errorf("%d datagrams were sent again into a partition of 1 s", got)
	}
}

// The end of a message is lost: nothing comes back that could show it.
func TestRecovery_tailLoss(t *testing.T) {
	for lost := 1; lost <= 10; lost++ {
		n := newBottleneck(10*gigabit, 256*kib)
		f := n.add(Config{}, 8972, 0)
		f.burst = 100
		f.finish(t)
		f.burst = 110
		f.dropFrom, f.dropTo = f.snd.Next().Add(int32(10-lost)), f.snd.Next().Add(10)
		begin := n.now.Add(mono.Millisecond)
		f.alarmSnd(begin)
		if d := f.finish(t).Sub(begin); d > 1500*mono.Microsecond {
			t.Errorf("last %d of 10 lost: done after %v", lost, d)
		}
	}
}

func TestRecovery_acksAreLost(t *testing.T) {
	for _, loss := range []float64{0.01, 0.1, 0.2} {
		n := newBottleneck(10*gigabit, 256*kib)
		n.ackLoss = loss
		f := n.add(Config{}, 8972, 0)
		p := n.watch(100 * ms)
		t.Logf("%.0f %% of acknowledgements lost: %v, %d sent again", 100*loss, p, f.resent)
		if p.goodput < 0.95 || float64(f.resent) > 0.001*float64(f.pushed) {
			t.Errorf("%.0f %% of acknowledgements lost: %v, %d of %d sent again", 100*loss, p, f.resent, f.pushed)
		}
	}
}

// Some datagrams take a longer way, as when a carrier has two queues: after the
// sender has learned how late they come, nothing is sent again.
func TestRecovery_reordering(t *testing.T) {
	for _, by := range []mono.Duration{10, 30, 100} {
		n := newBottleneck(10*gigabit, 256*kib)
		n.late, n.lateBy = 0.05, by*mono.Microsecond
		f := n.add(Config{}, 8972, 0)
		n.run(50 * ms)
		f.resent, f.pushed = 0, 0
		p := n.watch(150 * ms)
		part := float64(f.resent) / float64(f.pushed)
		t.Logf("5 %% late by %v: %v, %.3f %% sent again", n.lateBy, p, 100*part)
		if p.goodput < 0.93 || part > 0.01 {
			t.Errorf("5 %% late by %v: %v, %.2f %% sent again", n.lateBy, p, 100*part)
		}
	}
}

// Everything at once, to the last byte.
func TestRecovery_storm(t *testing.T) {
	for seed := range uint64(20) {
		n := newBottleneck(10*gigabit, 64*kib)
		n.seed(seed)
		n.loss, n.ackLoss, n.late, n.lateBy = 0.2, 0.2, 0.1, 80*mono.Microsecond
		for range 4 {
			f := n.add(Config{Window: 64}, 1472, 0)
			f.burst = 500
		}
		for _, f := range n.flows {
			f.finish(t)
		}
	}
}

// A sender that does not ask for acknowledgements depends on the receiver's
// delay, and works.
func TestRecovery_withoutAsking(t *testing.T) {
	n := newBottleneck(10*gigabit, 256*kib)
	for range 8 {
		n.add(Config{}, 8972, 0).noAsk = true
	}
	n.run(100 * ms)
	if p := n.watch(200 * ms); p.goodput < 0.9 || p.jain < 0.95 {
		t.Errorf("%v", p)
	}
}

// The first LSN is random, so everything must work where it wraps.
func TestIncast_wraps(t *testing.T) {
	n := newBottleneck(10*gigabit, 256*kib)
	n.loss = 0.01
	f := n.add(Config{}, 8972, 0)
	first := serial.U32(0xffffff00)
	f.snd.Init(f.sndSh, first)
	f.snd.SetSegment(8972 - 36)
	f.rcv.Init(f.rcvSh, first)
	f.burst = 2000
	f.finish(t)
}
