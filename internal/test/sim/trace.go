package sim

import (
	"fmt"
	"hash/crc32"
	"math/bits"
)

// verb is what an event did, as it goes into the trace.
type verb uint8

const (
	traceSend    verb = iota + 1 // a frame left its TX ring
	traceDeliver                 // a frame reached an RX ring
	traceLost
	traceDup
	traceDelayed
	traceCorrupt
	traceCut     // lost to a partition
	traceQueue   // dropped by a full queue of the switch
	traceNoRoom  // dropped by a receiver without a buffer or ring entry
	traceUnknown // no node has this MAC address, or no port wants it
	traceResume  // a task runs
	traceEnd     // a task ended
	traceTooLarge
	traceConnect // a connection of streams is accepted
	traceSegment // bytes of a stream arrived
	traceFIN
	traceReset
	traceFault // something befalls a stream
)

func (v verb) String() string {
	return [...]string{"?", "send", "deliver", "lost", "dup", "delayed", "corrupt", "cut", "queue-full",
		"no-room", "unknown", "resume", "end", "too-large",
		"connect", "segment", "fin", "reset", "fault"}[v]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // read-only

// trace is the running hash over all events. Frame bytes go in as their
// CRC32C, which the processor computes faster than any hash of ours.
type trace struct{ sum uint64 }

func (t *trace) mix(word uint64) {
	hi, lo := bits.Mul64(t.sum^word^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	t.sum = hi ^ lo
}

// note puts an event into the trace. id is the number of a packet or a task;
// frame may be nil.
func (w *World) note(v verb, id uint64, node int, frame []byte) {
	w.trace.mix(uint64(w.now))
	w.trace.mix(uint64(v)<<56 | uint64(node)<<40 ^ id)
	if frame != nil {
		w.trace.mix(uint64(len(frame))<<32 | uint64(crc32.Update(0, castagnoli, frame)))
	}
	if w.config.Log != nil {
		fmt.Fprintf(w.config.Log, "%12d %-10s #%d node %d len %d\n", int64(w.now), v, id, node, len(frame))
	}
}

// TraceHash returns a hash over everything that has happened so far: times,
// order, faults and all bytes of all frames. Two runs with the same seed and
// the same program have the same hash.
func (w *World) TraceHash() uint64 { return w.trace.sum }
