package p2p

import "github.com/xwarp/xwarp/internal/base/mono"

// Whether the data of an eager message is faster over the connection than in datagrams is
// timed with the messages of the program, as that of large ones is (link_tune.go): a run
// begins with a message that is sent while no other is under way, and ends when all has
// arrived that was sent to the peer meanwhile, or, if it is not timed, with a word of the
// peer. All of a run goes one way.
type laneTuner struct {
	classes [len(laneTops)][2]choice // the second for runs of several messages
	fixed   bool                     // all goes over the connection
	open    bool                     // a run is under way
	timed   bool
	class   uint8
	several uint8 // 1: the last run was of several messages
	way     wayOf
	count   int32 // messages of the run
	bytes   int
	began   mono.Time
}

// laneTops are the longest messages that are compared with one another, in bytes.
var laneTops = [...]int{3 << 10, 6 << 10, 12 << 10, 24 << 10, 48 << 10, laneMost}

// begin says which way a message of n bytes goes.
func (t *laneTuner) begin(now mono.Time, n int, answered bool) wayOf {
	if t.fixed {
		return overLink
	}
	class := uint8(0)
	for n > laneTops[class] {
		class++
	}
	if t.open && !t.timed && answered {
		t.finish(now)
	}
	switch {
	case !t.open || t.bytes >= linkRun:
		t.open, t.class, t.began, t.bytes, t.count = true, class, now, 0, 0
		t.way, t.timed = t.classes[class][t.several].choose()
	case class != t.class:
		t.timed = false
		t.way = t.classes[class][t.several].usual
	}
	t.count++
	t.bytes += n
	return t.way
}

// finish ends a run: all has arrived.
func (t *laneTuner) finish(now mono.Time) {
	was := t.several
	if t.several = 0; t.count > 1 {
		t.several = 1
	}
	if t.open = false; t.timed && was == t.several {
		t.classes[t.class][was].took(t.way, float64(now.Sub(t.began))/float64(t.bytes))
	}
}
