package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func newRecord(t testing.TB, events, rank int) ([]byte, *Record) {
	t.Helper()
	b := make([]byte, RecordSize(events))
	r, err := NewRecord(b, rank, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return b, r
}

func read(t testing.TB, b []byte) *Report {
	t.Helper()
	r, err := ReadRecord(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecord_roundTrip(t *testing.T) {
	b, r := newRecord(t, 8, 3)
	op := r.Op("Send")
	n := r.Add(CallEvent{Kind: CallBegun, Op: uint8(op), Begin: 10, Peer: 1, Tag: -7, Bytes: 5, Context: 4})
	r.Add(CallEvent{Kind: MessageSent, Begin: 11, Peer: 1, Number: 9})
	r.End(n, 20, true)
	r.Count(op, 5, 10)
	r.Count(op, 7, 30)
	r.SetTotals(Totals{SentMessages: 2, CallNanoseconds: 40})
	got := read(t, b)
	want := CallEvent{Kind: CallEnded, Failed: true, Op: uint8(op), Begin: 10, End: 20, Peer: 1, Tag: -7, Bytes: 5, Context: 4}
	if got.Rank != 3 || got.Origin != 1_000_000 || len(got.Events) != 2 || got.Events[0] != want || got.Events[1].Number != 9 {
		t.Errorf("%+v", got)
	}
	if len(got.Ops) != 1 || got.Ops[0] != (OpCount{"Send", 2, 12, 40}) || got.Totals.SentMessages != 2 || got.Totals.CallNanoseconds != 40 {
		t.Errorf("%+v", got)
	}
}

func TestRecord_communicators(t *testing.T) {
	b, r := newRecord(t, 2, 0)
	first := CommCount{"MPI_COMM_WORLD", 0, 4, 1, 2, 3, 4, 5, 6, 7}
	last := CommCount{Name: strings.Repeat("x", nameLen), Context: 1<<16 - 2, Ranks: 1 << 24, Near: 1 << 60}
	r.SetComm(0, CommCount{Name: "a name that is longer than the next", Ranks: 1})
	r.SetComm(0, first)
	r.SetComm(MaxComms-1, last)
	r.SetLimits(Limits{1, 2, 3, 4})
	r.SetLosses(Losses{1, 2, 3, 4, 5, 6, 7})
	r.SetArrivals(Arrivals{1: 20, 7: 30})
	r.SetCarrier(strings.Repeat("c", 1000))
	r.SetNetwork(0, NetworkCount{1, 2})
	r.SetNetwork(1, NetworkCount{3, 4})
	AddLosses(b, Losses{NoSocket: 10})
	AddLosses(b[:8], Losses{NoSocket: 10}) // of a rank that has left nothing
	r.Add(CallEvent{Kind: MessageSent, Begin: 5})
	got := read(t, b)
	if got.Losses != (Losses{11, 2, 3, 4, 5, 6, 7}) || got.Queues != (Arrivals{1: 20, 7: 30}) || got.Carrier != strings.Repeat("c", 128) {
		t.Errorf("%+v, carrier %q", got.Losses, got.Carrier)
	}
	if !slices.Equal(got.Networks, []NetworkCount{{1, 2}, {3, 4}}) {
		t.Errorf("networks %v", got.Networks)
	}
	if len(got.Comms) != 2 || got.Comms[0] != first || got.Comms[1] != last || got.Limits != (Limits{1, 2, 3, 4}) || len(got.Events) != 1 || got.Events[0].Begin != 5 {
		t.Errorf("%+v", got)
	}
}

func TestRecord_keepsTheLast(t *testing.T) {
	b, r := newRecord(t, 4, 0)
	first := r.Add(CallEvent{Kind: CallBegun})
	for i := range 9 {
		r.Add(CallEvent{Kind: MessageSent, Begin: int64(i)})
	}
	r.End(first, 99, false) // it was replaced long ago
	got := read(t, b)
	if got.Lost != 6 || len(got.Events) != 4 || got.Events[0].Begin != 5 || got.Events[3].Begin != 8 || got.Events[3].End != 0 {
		t.Errorf("%+v", got)
	}
}

func TestRecord_withoutEvents(t *testing.T) {
	b, r := newRecord(t, 0, 0)
	r.End(r.Add(CallEvent{Kind: CallBegun}), 5, false)
	r.Count(r.Op("Barrier"), 0, 5)
	if got := read(t, b); len(got.Events) != 0 || got.Ops[0].Calls != 1 {
		t.Errorf("%+v", got)
	}
}

func TestRecord_manyOperations(t *testing.T) {
	b, r := newRecord(t, 0, 0)
	for i := range 300 {
		r.Count(r.Op(strings.Repeat("x", i+1)), 0, 1)
	}
	got := read(t, b)
	if last := got.Ops[len(got.Ops)-1]; len(got.Ops) != maxOps || last.Name != "others" || last.Calls != 45 {
		t.Errorf("%d operations, the last one %+v", len(got.Ops), last)
	}
}

func TestRecord_wrongMemory(t *testing.T) {
	for _, n := range []int{0, 100, RecordSize(3), RecordSize(4) + 1} {
		if _, err := NewRecord(make([]byte, n), 0, 0); !errors.Is(err, ErrRecordSize) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := ReadRecord(make([]byte, RecordSize(4))); !errors.Is(err, ErrNoRecord) {
		t.Errorf("nothing written: %v", err)
	}
}

func FuzzReadRecord(f *testing.F) {
	b, r := newRecord(f, 2, 0)
	r.Add(CallEvent{Kind: CallBegun, Begin: 5})
	f.Add(b[:offTotals], b[RecordSize(0):])
	f.Fuzz(func(t *testing.T, head, events []byte) {
		b := make([]byte, RecordSize(2))
		copy(b, head)
		copy(b[RecordSize(0):], events)
		report, err := ReadRecord(b)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteTimeline(&out, []*Report{report}, nil); err != nil || !json.Valid(out.Bytes()) {
			t.Errorf("%v: %.200s", err, out.String())
		}
	})
}

func TestAllocs_record(t *testing.T) {
	_, r := newRecord(t, 64, 0)
	r.Op("Send")
	if n := testing.AllocsPerRun(100, func() {
		op := r.Op("Send")
		k := r.Add(CallEvent{Kind: CallBegun, Op: uint8(op)})
		r.End(k, 7, false)
		r.Count(op, 1, 1)
	}); n > 0 {
		t.Errorf("%v allocations per call", n)
	}
}

// event is one of a trace file, as its readers see it.
type event struct {
	Name, Ph string
	Pid, Tid int
	Ts, Dur  float64
	ID       int
	Args     map[string]any
}

func timelineOf(t *testing.T, shift []int64, reports ...*Report) []event {
	t.Helper()
	var out bytes.Buffer
	if err := WriteTimeline(&out, reports, shift); err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []event }
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return file.TraceEvents
}

func pick(events []event, phase string) (out []event) {
	for _, e := range events {
		if e.Ph == phase {
			out = append(out, e)
		}
	}
	return out
}

// Messages are joined by arrows when both ends are known, in the calls that they
// went and came in.
func TestWriteTimeline_arrows(t *testing.T) {
	a := &Report{Rank: 0, Origin: 1000, Ops: []OpCount{{Name: "Send"}}, Events: []CallEvent{
		{Kind: CallEnded, Begin: 10, End: 20, Peer: 1, Tag: 5},
		{Kind: MessageSent, Begin: 11, Peer: 1, Tag: 5, Number: 1},
		{Kind: MessageSent, Begin: 12, Peer: 1, Tag: 5, Number: 2}, // nobody has received it
		{Kind: MessageSent, Begin: 13, Peer: 1, Tag: 5},            // not counted
	}}
	b := &Report{Rank: 1, Origin: 2000, Ops: []OpCount{{Name: "Recv"}}, Events: []CallEvent{
		{Kind: CallEnded, Begin: 30, End: 50, Peer: 0, Tag: 5},
		{Kind: MessageGot, Begin: 49, Peer: 0, Tag: 5, Number: 1},
		{Kind: MessageGot, Begin: 49, Peer: 0, Tag: 5, Number: 7}, // whose send was dropped
	}, Lost: 3}
	events := timelineOf(t, nil, a, b)
	s, f := pick(events, "s"), pick(events, "f")
	if len(s) != 1 || len(f) != 1 || s[0].ID != f[0].ID || s[0].Pid != 0 || f[0].Pid != 1 {
		t.Fatalf("arrows %+v %+v", s, f)
	}
	x := pick(events, "X")
	if len(x) != 2 || x[0].Name != "Send" || x[0].Ts != 0 || x[0].Dur != 0.010 || x[1].Ts != 1.020 {
		t.Errorf("calls %+v", x)
	}
	if s[0].Ts != 0.001 || f[0].Ts != 1.039 {
		t.Errorf("times %v %v", s[0].Ts, f[0].Ts)
	}
	if names := pick(events, "M"); names[2].Args["name"] != "rank 1 (3 earlier events dropped)" {
		t.Errorf("%+v", names)
	}
}

// A message between two calls has a slice of its own, for viewers want one.
func TestWriteTimeline_between(t *testing.T) {
	a := &Report{Rank: 0, Ops: []OpCount{{Name: "Ibcast"}}, Events: []CallEvent{
		{Kind: CallEnded, Begin: 10, End: 20},
		{Kind: MessageSent, Begin: 30, Peer: 1, Number: 1},
		{Kind: MessageSent, Begin: 31, Peer: 1, Number: 2}, // which nobody has received
		{Kind: CallEnded, Begin: 40, End: 50},
	}}
	b := &Report{Rank: 1, Ops: []OpCount{{Name: "Bcast"}}, Events: []CallEvent{
		{Kind: CallEnded, Begin: 30, End: 50},
		{Kind: MessageGot, Begin: 49, Peer: 0, Number: 1},
	}}
	x := pick(timelineOf(t, nil, a, b), "X")
	if len(x) != 4 || x[1].Name != "progress" || x[1].Ts != 0.020 || x[1].Dur != 0 || x[1].Pid != 0 {
		t.Errorf("%+v", x)
	}
}

// Calls of several goroutines overlap; on one thread of the file they must not.
// One that death has cut off ends with the record.
func TestWriteTimeline_threads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := &Report{Ops: []OpCount{{Name: "Recv"}}}
	for range 200 {
		begin := rnd.Int64N(1000)
		r.Events = append(r.Events, CallEvent{Kind: CallEnded, Begin: begin, End: begin + rnd.Int64N(100)})
	}
	r.Events = append(r.Events, CallEvent{Kind: CallBegun, Begin: 1000})
	calls := pick(timelineOf(t, nil, r), "X")
	if len(calls) != 201 {
		t.Fatalf("%d calls", len(calls))
	}
	for i, a := range calls {
		for _, b := range calls[:i] {
			apart := a.Ts >= b.Ts+b.Dur-1e-9 || b.Ts >= a.Ts+a.Dur-1e-9
			inside := a.Ts >= b.Ts && a.Ts+a.Dur <= b.Ts+b.Dur+1e-9 || b.Ts >= a.Ts && b.Ts+b.Dur <= a.Ts+a.Dur+1e-9
			if a.Tid == b.Tid && !apart && !inside {
				t.Fatalf("%+v and %+v cross", a, b)
			}
		}
	}
	if last := calls[len(calls)-1]; last.Args["unfinished"] != true || last.Dur <= 0 {
		t.Errorf("%+v", last)
	}
}

// Two hosts whose clocks are a millisecond apart.
// Calls that all cross one another, as no program makes them, do not each take a look at
// all others.
func TestWriteTimeline_callsThatCross(t *testing.T) {
	r := &Report{Ops: []OpCount{{Name: "Recv"}}}
	for i := range int64(3 * maxThreads) {
		r.Events = append(r.Events, CallEvent{Kind: CallEnded, Begin: i, End: i + 10*maxThreads})
	}
	threads := map[int]bool{}
	for _, c := range pick(timelineOf(t, nil, r), "X") {
		threads[c.Tid] = true
	}
	if len(threads) != maxThreads {
		t.Errorf("%d threads", len(threads))
	}
}

func TestShifts(t *testing.T) {
	const off, wire = 1_000_000, 5_000
	a, b := &Report{Rank: 0, Host: "a"}, &Report{Rank: 1, Host: "b", Origin: off}
	for i := range int64(5) {
		n, at, late := uint64(i+1), 100_000*i, 1000*i
		a.Events = append(a.Events, CallEvent{Kind: MessageSent, Begin: at, Peer: 1, Number: n}, CallEvent{Kind: MessageGot, Begin: at + 50_000 + wire, Peer: 1, Number: n})
		b.Events = append(b.Events, CallEvent{Kind: MessageGot, Begin: at + wire + late, Peer: 0, Number: n}, CallEvent{Kind: MessageSent, Begin: at + 50_000, Peer: 0, Number: n})
	}
	alone := &Report{Rank: 2, Host: "c", Origin: 77}
	got := Shifts([]*Report{a, b, alone})
	if got[0] != 0 || got[1] != -off || got[2] != 0 {
		t.Errorf("%v", got)
	}
}

func TestSummary(t *testing.T) {
	a := &Report{Rank: 0, Host: "a", Carrier: "xdp/driver/copy on eth1, 4 queues, multi-buffer", Losses: Losses{NoSocket: 3}, Queues: Arrivals{5, 0, 6, 7: 1}, Networks: []NetworkCount{{10, 100}, {20, 200}}, Totals: Totals{SentMessages: 3}, Ops: []OpCount{{"Send", 3, 24, 900}, {"Barrier", 1, 0, 5_000_000}},
		Comms:  []CommCount{{Name: "MPI_COMM_WORLD", Ranks: 3, Eager: 5}, {Context: 2, Ranks: 2, Rendezvous: 1}},
		Limits: Limits{Eager: 16384, Idle: 65536, NearLeast: 4096, NearMost: 9000}}
	b := &Report{Rank: 2, Host: "a", Carrier: "xdp/driver/copy on eth1, 4 queues, multi-buffer", Losses: Losses{NoSocket: 1, Unreachable: 2, Forged: 5, Replayed: 6}, Networks: []NetworkCount{{1, 2}, {3, 4}}, Totals: Totals{SentMessages: 4}, Ops: []OpCount{{"Send", 1, 8, 100}},
		Comms:  []CommCount{{Name: "MPI_COMM_WORLD", Ranks: 3, Eager: 7}, {Context: 2, Ranks: 2, Rendezvous: 3}},
		Limits: Limits{Eager: 16384, Idle: 65536, NearLeast: 5000, NearMost: 24000}}
	s := Summarize([]*Report{a, b}, 3)
	if len(s.Calls) != 2 || s.Calls[0].Name != "Barrier" || s.Calls[1] != (CallSummary{"Send", 4, 32, 1000}) || len(s.Missing) != 1 || s.Missing[0] != 1 {
		t.Errorf("%+v", s)
	}
	var table, text bytes.Buffer
	if err := errors.Join(s.WriteTable(&table), s.WriteJSON(&text)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"all     7", "Send      4     32   1µs  250ns", "rank 1 has left no counters",
		"\na: rank 0, 2: xdp/driver/copy on eth1, 4 queues, multi-buffer\n  frames to rank 0: 5 on queue 0, 6 on queue 2, 1 on others\n  sent on network 1: 11 datagrams, 102 bytes\n  sent on network 2: 23 datagrams, 204 bytes\n  4 frames came in on a queue of the network card without a socket (",
		"ethtool -X DEV equal N)\n  2 frames were not sent for want of a next hop",
		"  5 frames or connections came in and were refused, for they are not encrypted with the secret of this job", "  6 frames came in a second time,",
		"eager up to 16384 bytes, to idle ranks 65536, through shared memory 4096 to 24000",
		"MPI_COMM_WORLD      3     0      0         0      0     12           0     0",
		"context 2      2     0      0         0      0      0           4     0"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	var back Summary
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back.Ranks[1].SentMessages != 4 || back.Ranks[1].Losses != b.Losses || back.Ranks[0].Carrier != a.Carrier || back.Ranks[0].Queues != a.Queues || strings.Count(text.String(), "rx_queues") != 1 {
		t.Errorf("%v %+v", err, back)
	}
}

// Who reads the JSON of a job that has left nothing finds lists without entries.
func TestSummary_nothing(t *testing.T) {
	var b strings.Builder
	if err := Summarize(nil, 1).WriteJSON(&b); err != nil || strings.Contains(b.String(), "null") {
		t.Errorf("%v, %s", err, b.String())
	}
}
