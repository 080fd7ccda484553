// Package trace has what a rank leaves behind of its calls of MPI, and what a launcher makes of
// that: sums for people, and a time line for ui.perfetto.dev.
package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Record is what a rank leaves behind for its launcher: counters of its calls,
// and the last of these as events. It lies in memory that outlives the rank, so
// that it is there also when the rank was killed, and is written with a few plain
// stores per call. One goroutine at a time writes it.
//
// Layout, all numbers little-endian: a header of headLen bytes; maxOps operations
// of opLen bytes, each its name and its counters; MaxComms communicators of commLen
// bytes, likewise; MaxWindows windows of windowLen bytes (window.go); then events of eventLen bytes,
// which are overwritten in turn.
type Record struct {
	b    []byte
	mask uint64 // events are as many as it says, and one
	none bool   // no room for events
	next uint64
	ops  map[string]int
}

const (
	headLen  = 576
	maxOps   = 256
	opLen    = 64
	nameLen  = 40
	eventLen = 48

	// MaxEvents is the most events that there may be room for.
	MaxEvents = 1 << 20

	// MaxComms is of how many communicators a record has counters.
	MaxComms = 32
	commLen  = 128

	// MaxNetworks is of how many networks a record has counters.
	MaxNetworks = 4

	magic = 0x3563727470726177 // "warptrc5"

	offMagic    = 0
	offRank     = 8
	offOrigin   = 16
	offNext     = 24
	offEvents   = 32
	offTotals   = 64
	offQueues   = 192
	offLimits   = 256
	offLosses   = 320
	offCarrier  = 384
	offNetworks = 512
)

// RecordSize returns how many bytes a Record with room for events takes, a power
// of two or 0.
func RecordSize(events int) int {
	return headLen + maxOps*opLen + MaxComms*commLen + MaxWindows*windowLen + events*eventLen
}

// Errors of records.
var (
	ErrRecordSize = errors.New("trace: memory is of no size that a record has")
	ErrNoRecord   = errors.New("trace: no record was made there")
)

// NewRecord makes a record in b, whose length RecordSize has given. origin is the
// time of day, in ns since 1970, to which the times of events are relative.
func NewRecord(b []byte, rank int, origin int64) (*Record, error) {
	events := (len(b) - RecordSize(0)) / eventLen
	if len(b) < RecordSize(0) || RecordSize(events) != len(b) || bits.OnesCount(uint(events)) > 1 {
		return nil, fmt.Errorf("%w: %d bytes", ErrRecordSize, len(b))
	}
	r := &Record{b: b, mask: uint64(events) - 1, none: events == 0, ops: map[string]int{}}
	r.put(offRank, uint64(rank))
	r.put(offOrigin, uint64(origin))
	r.put(offEvents, uint64(events))
	r.put(offMagic, magic)
	return r, nil
}

func (r *Record) put(at int, v uint64) { binary.LittleEndian.PutUint64(r.b[at:], v) }
func (r *Record) get(at int) uint64    { return binary.LittleEndian.Uint64(r.b[at:]) }

// putWords writes numbers one behind the other.
func putWords(b []byte, words []*uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[8*i:], *w)
	}
}

// getWords reads them.
func getWords(b []byte, words []*uint64) {
	for i, w := range words {
		*w = binary.LittleEndian.Uint64(b[8*i:])
	}
}

// Op returns the number of an operation, for Count and CallEvent. There is one
// number for all operations beyond the first 255.
func (r *Record) Op(name string) int {
	if op, ok := r.ops[name]; ok {
		return op
	}
	op := min(len(r.ops), maxOps-1)
	if op == maxOps-1 {
		name = "others"
	}
	r.ops[name] = op
	copy(r.b[headLen+op*opLen:][:nameLen], name)
	return op
}

// Count adds a call of an operation: the bytes of its message, and how long it
// took in ns.
func (r *Record) Count(op int, bytes, ns uint64) {
	at := headLen + op*opLen + nameLen
	r.put(at, r.get(at)+1)
	r.put(at+8, r.get(at+8)+bytes)
	r.put(at+16, r.get(at+16)+ns)
}

// Totals are counters of a rank besides those of its calls.
type Totals struct {
	SentMessages, SentBytes         uint64 // those of collectives included
	ReceivedMessages, ReceivedBytes uint64
	Eager, Rendezvous, Near         uint64 // of the messages sent to others: whole, after the receiver was asked, and of the whole ones those through shared memory
	Unexpected, Queued              uint64 // messages that came before their receive; sends that waited for room
	CallNanoseconds                 uint64 // in calls
}

func (t *Totals) words() []*uint64 {
	return []*uint64{
		&t.SentMessages, &t.SentBytes, &t.ReceivedMessages, &t.ReceivedBytes,
		&t.Eager, &t.Rendezvous, &t.Near, &t.Unexpected, &t.Queued, &t.CallNanoseconds,
	}
}

// SetTotals writes the totals of now.
func (r *Record) SetTotals(t Totals) { putWords(r.b[offTotals:], t.words()) }

// Limits are the lengths in bytes up to which a rank sends messages whole: through the
// network; through the network while little is under way; and through shared memory, the
// lowest and the highest of all neighbours.
type Limits struct {
	Eager     uint64 `json:"eager"`
	Idle      uint64 `json:"idle"`
	NearLeast uint64 `json:"near_least"`
	NearMost  uint64 `json:"near_most"`
}

func (l *Limits) words() []*uint64 { return []*uint64{&l.Eager, &l.Idle, &l.NearLeast, &l.NearMost} }

// SetLimits writes the limits of now.
func (r *Record) SetLimits(l Limits) { putWords(r.b[offLimits:], l.words()) }

// SetCarrier says what carries the messages to other hosts, in 128 bytes at most.
// It may be said again when more is known.
func (r *Record) SetCarrier(text string) {
	at := r.b[offCarrier:offNetworks]
	clear(at[copy(at, text):])
}

// NetworkCount is what a rank has sent on one of several networks, in bytes of UDP payload.
type NetworkCount struct {
	Datagrams uint64 `json:"datagrams"`
	Bytes     uint64 `json:"bytes"`
}

// SetNetwork writes what was sent on network i, below MaxNetworks, up to now.
func (r *Record) SetNetwork(i int, n NetworkCount) {
	r.put(offNetworks+16*i, n.Datagrams)
	r.put(offNetworks+16*i+8, n.Bytes)
}

// networks reads what was sent on each network, up to the last on which anything was.
func (r *Record) networks() (all []NetworkCount) {
	for i := range MaxNetworks {
		n := NetworkCount{r.get(offNetworks + 16*i), r.get(offNetworks + 16*i + 8)}
		if n == (NetworkCount{}) {
			break
		}
		all = append(all, n)
	}
	return all
}

// SetLosses writes what the carrier has lost up to now.
func (r *Record) SetLosses(l Losses) { putWords(r.b[offLosses:], l.Words()) }

// SetArrivals writes what has come in up to now.
func (r *Record) SetArrivals(a Arrivals) {
	for i, n := range a {
		r.put(offQueues+8*i, n)
	}
}

func (r *Record) arrivals() (a Arrivals) {
	for i := range a {
		a[i] = r.get(offQueues + 8*i)
	}
	return a
}

// AddLosses adds to the losses in b, the memory of a record, what the rank does not
// know of.
func AddLosses(b []byte, l Losses) {
	if len(b) < headLen {
		return
	}
	var known Losses
	getWords(b[offLosses:], known.Words())
	l = l.Plus(known)
	putWords(b[offLosses:], l.Words())
}

// CommCount is what a rank has sent and received in a communicator.
type CommCount struct {
	Name             string `json:"name"`
	Context          uint32 `json:"context"`
	Ranks            int    `json:"ranks"`
	SentMessages     uint64 `json:"sent_messages"` // as in Totals
	SentBytes        uint64 `json:"sent_bytes"`
	ReceivedMessages uint64 `json:"received_messages"`
	ReceivedBytes    uint64 `json:"received_bytes"`
	Eager            uint64 `json:"eager"`
	Rendezvous       uint64 `json:"rendezvous"`
	Near             uint64 `json:"near"`
}

func (c *CommCount) words() []*uint64 {
	return []*uint64{&c.SentMessages, &c.SentBytes, &c.ReceivedMessages, &c.ReceivedBytes, &c.Eager, &c.Rendezvous, &c.Near}
}

// commAt returns where the communicator with a number below MaxComms is.
func commAt(i int) int { return headLen + maxOps*opLen + i*commLen }

// SetComm writes the counters of a communicator, by a number below MaxComms. Of its
// name the first 40 bytes are kept.
func (r *Record) SetComm(i int, c CommCount) {
	at := r.putName(commAt(i), c.Name, c.Context, c.Ranks)
	putWords(r.b[at:], c.words())
}

// comm reads what SetComm wrote. false means that nothing was.
func (r *Record) comm(i int) (c CommCount, ok bool) {
	at := 0
	c.Name, c.Context, c.Ranks, at = r.nameAt(commAt(i))
	getWords(r.b[at:], c.words())
	return c, c.Ranks > 0
}

// putName writes what counters are of, and returns where they begin.
func (r *Record) putName(at int, name string, context uint32, ranks int) (end int) {
	field := r.b[at : at+nameLen]
	clear(field)
	copy(field, name)
	r.put(at+nameLen, uint64(ranks)<<32|uint64(context))
	return at + nameLen + 8
}

// nameAt reads what putName wrote.
func (r *Record) nameAt(at int) (name string, context uint32, ranks, end int) {
	both := r.get(at + nameLen)
	return cString(r.b[at : at+nameLen]), uint32(both), int(both >> 32), at + nameLen + 8
}

// EventKind says what a call event is.
type EventKind uint8

// Kinds of call events.
const (
	CallBegun   EventKind = iota + 1 // a call that has not ended
	CallEnded                        // a call, with its end
	MessageSent                      // a message was sent inside the call under way
	MessageGot                       // a message was received inside the call under way
)

// CallEvent is a call, or a message that went or came in one. Fields that mean
// nothing for its kind are 0.
type CallEvent struct {
	Kind       EventKind
	Failed     bool // the call returned an error
	Op         uint8
	Begin, End int64 // ns since the record's origin; of a message Begin only
	Context    uint32
	Peer       int32 // rank of the job, or negative
	Tag        int32
	Bytes      uint64
	Number     uint64 // of a message among those of the same ranks, context and tag, from 1; 0: unknown. Of an operation on a window 1 more than the server that does it: see ServerName
}

// Add adds an event and returns its number, for End.
func (r *Record) Add(e CallEvent) uint64 {
	n := r.next
	if r.none {
		return n
	}
	b := r.event(n)
	failed := byte(0)
	if e.Failed {
		failed = 1
	}
	b[0], b[1], b[2] = byte(e.Kind), failed, e.Op
	binary.LittleEndian.PutUint32(b[4:], e.Context)
	binary.LittleEndian.PutUint64(b[8:], uint64(e.Begin))
	binary.LittleEndian.PutUint64(b[16:], uint64(e.End))
	binary.LittleEndian.PutUint32(b[24:], uint32(e.Peer))
	binary.LittleEndian.PutUint32(b[28:], uint32(e.Tag))
	binary.LittleEndian.PutUint64(b[32:], e.Bytes)
	binary.LittleEndian.PutUint64(b[40:], e.Number)
	r.next++
	r.put(offNext, r.next)
	return n
}

// End ends the call with a number of Add, unless newer events have replaced it.
func (r *Record) End(n uint64, at int64, failed bool) {
	if r.none || r.next-n > r.mask+1 {
		return
	}
	b := r.event(n)
	if failed {
		b[1] = 1
	}
	binary.LittleEndian.PutUint64(b[16:], uint64(at))
	b[0] = byte(CallEnded)
}

func (r *Record) event(n uint64) []byte {
	at := RecordSize(int(n & r.mask))
	return r.b[at : at+eventLen]
}

// OpCount is what a rank has done with an operation.
type OpCount struct {
	Name               string
	Calls, Bytes, Time uint64 // number, bytes of the messages, ns
}

// Report is a record that was read.
type Report struct {
	Rank     int
	Host     string // for people; set by the reader
	Origin   int64  // ns since 1970
	Ops      []OpCount
	Totals   Totals
	Limits   Limits
	Losses   Losses
	Carrier  string // what carries the messages to other hosts, for people
	Queues   Arrivals
	Networks []NetworkCount // nil: there is one
	Comms    []CommCount
	Windows  []WindowCount
	Events   []CallEvent // the oldest first
	Lost     uint64      // events that newer ones have replaced
}

// Name returns the name of the operation of an event.
func (r *Report) Name(op uint8) string {
	if int(op) < len(r.Ops) {
		return r.Ops[op].Name
	}
	return fmt.Sprintf("operation %d", op)
}

// ReadRecord reads a record. What is in the memory may be anything: the program
// that wrote it may have been corrupted. It returns ErrNoRecord for memory that was never
// written to.
func ReadRecord(b []byte) (*Report, error) {
	r := &Record{b: b}
	if len(b) < RecordSize(0) {
		return nil, fmt.Errorf("%w: %d bytes", ErrRecordSize, len(b))
	}
	if r.get(offMagic) != magic {
		return nil, ErrNoRecord
	}
	events := r.get(offEvents)
	if uint64(len(b)-RecordSize(0))/eventLen < events || bits.OnesCount64(events) > 1 {
		return nil, fmt.Errorf("%w: %d bytes for %d events", ErrRecordSize, len(b), events)
	}
	out := &Report{Rank: int(int32(r.get(offRank))), Origin: int64(r.get(offOrigin))}
	getWords(b[offTotals:], out.Totals.words())
	getWords(b[offLimits:], out.Limits.words())
	getWords(b[offLosses:], out.Losses.Words())
	out.Queues, out.Carrier = r.arrivals(), cString(b[offCarrier:offNetworks])
	out.Networks = r.networks()
	for op := range maxOps {
		at := headLen + op*opLen
		name := b[at : at+nameLen]
		if name[0] == 0 {
			break
		}
		at += nameLen
		out.Ops = append(out.Ops, OpCount{cString(name), r.get(at), r.get(at + 8), r.get(at + 16)})
	}
	for i := range MaxComms {
		if c, ok := r.comm(i); ok {
			out.Comms = append(out.Comms, c)
		}
	}
	out.Windows = r.windows()
	if events == 0 {
		return out, nil
	}
	r.mask = events - 1
	next := r.get(offNext)
	first := uint64(0)
	if next > events {
		first = next - events
	}
	out.Lost = first
	for n := first; n < next; n++ {
		out.Events = append(out.Events, readEvent(r.event(n)))
	}
	return out, nil
}

func readEvent(b []byte) CallEvent {
	return CallEvent{
		Kind: EventKind(b[0]), Failed: b[1] != 0, Op: b[2],
		Context: binary.LittleEndian.Uint32(b[4:]),
		Begin:   int64(binary.LittleEndian.Uint64(b[8:])),
		End:     int64(binary.LittleEndian.Uint64(b[16:])),
		Peer:    int32(binary.LittleEndian.Uint32(b[24:])),
		Tag:     int32(binary.LittleEndian.Uint32(b[28:])),
		Bytes:   binary.LittleEndian.Uint64(b[32:]),
		Number:  binary.LittleEndian.Uint64(b[40:]),
	}
}

// cString returns the bytes before the first zero.
func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}
