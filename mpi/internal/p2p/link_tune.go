package p2p

import "github.com/xwarp/xwarp/internal/base/mono"

// Whether the data of large messages is faster in datagrams or over the connection beside
// them depends on the card, the MTU, and on what the program does: one message at a time,
// or many. So it is timed with the messages of the program. A run begins with a message
// that may be written while no other is, and ends when the peer has all that began
// meanwhile; all of a run goes one way, and its time by the byte counts. Runs that begin
// with messages of about the same length are compared, those of one message apart from
// those of several: which it will be is taken to be as it was the last time.
type linkTuner struct {
	classes [linkWorks * linkSizes][2]choice // the second for runs of several messages
	fixed   bool                             // all goes over the connection
	under   int32                            // messages that have begun, and not ended
	earlier int32                            // of those, how many began in an earlier run; it counts from their end on
	count   int32                            // messages of the run
	began   mono.Time                        // of the run
	bytes   uint64                           // of the run that have arrived
	class   uint8
	several uint8 // 1: the last run was of several messages
	path    option
	timed   bool
}

// The paths of data. A rank that has made a connection has reason to expect that it is faster.
const (
	overLink    = firstOption
	inDatagrams = secondOption
)

// linkTops are the longest messages that are compared with one another, in bytes; what is
// longer than the last makes one class.
var linkTops = [linkSizes - 1]uint64{24 << 10, 48 << 10, 96 << 10, 192 << 10, 768 << 10}

const linkSizes = 6

// linkWork is what the data is of, which is compared with its like only.
type linkWork uint8

const (
	messageData linkWork = iota
	putData
	getData
	packedData
	linkWorks
)

// linkBurst is after how many bytes a burst ends though there is no pause.
const linkBurst = 32 << 20

// begin says which way a message of n bytes goes.
func (t *linkTuner) begin(now mono.Time, n uint64, w linkWork) option {
	if t.fixed {
		return overLink
	}
	size := uint8(0)
	for int(size) < len(linkTops) && n > linkTops[size] {
		size++
	}
	class := uint8(w)*linkSizes + size
	if t.under > 0 && t.bytes >= linkBurst {
		t.finish(now)
		t.earlier = t.under
	}
	switch {
	case t.under == t.earlier && t.count == 0:
		t.class, t.began, t.bytes = class, now, 0
		t.path, t.timed = t.classes[class][t.several].choose()
	case class != t.class:
		t.timed = false
	}
	t.under++
	t.count++
	return t.path
}

// ended notes that a message of n bytes has arrived, or has failed.
func (t *linkTuner) ended(now mono.Time, n uint64, failed bool) {
	if t.fixed {
		return
	}
	t.under--
	t.timed = t.timed && !failed
	if t.earlier > 0 {
		t.earlier--
		t.began = now
	} else {
		t.bytes += n
	}
	if t.under == 0 {
		t.finish(now)
	}
}

// finish ends a run.
func (t *linkTuner) finish(now mono.Time) {
	was := t.several
	if t.several = 0; t.count > 1 {
		t.several = 1
	}
	if t.timed && was == t.several && t.bytes > 0 {
		t.classes[t.class][was].took(t.path, float64(now.Sub(t.began))/float64(t.bytes))
	}
	t.count, t.earlier = 0, 0
}
