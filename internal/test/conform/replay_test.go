package conform

import (
	"math"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
)

// TestStrangers_replay: somebody on the path records all frames of a job that encrypts, and
// sends them again, over and over and to both ends, while the job runs, and to the next job at
// the same addresses. Messages arrive as they should, what is refused is counted, and nothing
// is remembered of it.
func TestStrangers_replay(t *testing.T) {
	onLANs(t, []bool{false}, func(t *testing.T, xdpCarrier, ipv6 bool) { // the tap is of IPv4
		w := newLAN(t, xdpCarrier, ipv6)
		w.encrypt()
		w.must(hosttest.FloodBridge(w.bed.Name))
		tap, err := hosttest.OpenTap(w.forger.Name, w.forger.Dev)
		w.must(err)
		testenv.Closing(t, tap)
		w.meetAll()
		w.talk(100, func(int) {})
		w.large(200_000)
		recorded, err := tap.Datagrams(strangePort, strangePort)
		w.must(err)
		if len(recorded) < 200 {
			t.Fatalf("%d frames were recorded of 200 messages", len(recorded))
		}
		w.suffer(tap, recorded)
		if forged, replayed := w.refused(); forged != 0 || replayed == 0 {
			t.Errorf("the job itself counts %d as forged, %d as replayed", forged, replayed)
		}
		for _, h := range w.hosts {
			h.close()
		}
		w.job++
		for _, h := range w.hosts {
			h.open()
		}
		w.must(tap.Send(recorded...))
		w.meetAll()
		w.suffer(tap, recorded)
		if forged, replayed := w.refused(); forged == 0 || replayed != 0 {
			t.Errorf("the next job counts %d as forged, %d as replayed", forged, replayed)
		}
	})
}

// encrypt opens the hosts anew, with encryption.
func (w *lan) encrypt() {
	w.config.Secure = true
	for _, h := range w.hosts {
		h.close()
	}
	for _, h := range w.hosts {
		h.open()
	}
}

// refused returns what the hosts have refused.
func (w *lan) refused() (forged, replayed uint64) {
	for _, h := range w.hosts {
		_, d := h.ctx.Stats()
		forged, replayed = forged+d.RxForged, replayed+d.RxReplayed
	}
	return forged, replayed
}

// suffer exchanges messages while frames are played again, more than once each.
func (w *lan) suffer(tap *hosttest.Tap, frames [][]byte) {
	w.t.Helper()
	const burst = 200
	play := func(i int) {
		for k := range burst {
			w.must(tap.Send(frames[(burst*i+k)%len(frames)]))
		}
	}
	rounds := 2*len(frames)/50 + 1
	w.talk(rounds, play)
	w.large(200_000)
	grown := func(lie func(int)) int64 {
		held := heap()
		w.talk(rounds, lie)
		return int64(heap() - held)
	}
	before := w.refusals()
	limit, more := int64(18*burst*rounds), int64(math.MaxInt64) // to remember a frame takes 36 bytes
	for tries := 0; more > limit && tries < 10; tries++ {       // others allocate, and buffers may grow once
		without := grown(func(int) {}) // the rig remembers messages, too
		more = grown(play) - without
	}
	if n := w.refusals() - before; n == 0 {
		w.t.Error("nothing is refused")
	}
	if more > limit {
		w.t.Errorf("%d bytes are remembered of %d frames", more, burst*rounds)
	}
	w.large(200_000)
}

func (w *lan) refusals() uint64 {
	forged, replayed := w.refused()
	return forged + replayed
}

// heap returns how many bytes Go's memory holds.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what has finalizers, and pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
