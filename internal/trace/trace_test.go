package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/mono"
)

func TestRing_keepsTheLast(t *testing.T) {
	r := New(4)
	for n := range 11 {
		want := min(n, 4)
		events := r.Append(nil)
		if len(events) != want || r.Lost() != uint64(max(0, n-4)) {
			t.Fatalf("after %d: %d events, %d lost", n, len(events), r.Lost())
		}
		for i, e := range events {
			if e.At != mono.Time(n-want+i) || e.ID != EngineWork || e.Args != [4]uint32{uint32(e.At), 2, 3, 4} {
				t.Fatalf("after %d: event %d is %+v", n, i, e)
			}
		}
		r.Record(mono.Time(n), EngineWork, uint32(n), 2, 3, 4)
	}
}

func TestRing_nilRecordsNothing(t *testing.T) {
	var r *Ring
	r.Record(1, EngineWork, 1, 0, 0, 0)
	if len(r.Append(nil)) != 0 || r.Lost() != 0 {
		t.Error("a nil ring holds something")
	}
}

func TestNew_panics(t *testing.T) {
	for _, n := range []int{-1, 0, 3, 1000} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("capacity %d was accepted", n)
				}
			}()
			New(n)
		}()
	}
}

func TestTable_isComplete(t *testing.T) {
	for id := ID(1); id < idEnd; id++ {
		d := table[id]
		if d.name == "" || d.kind == 0 || len(d.args) > 4 {
			t.Errorf("event %d: %+v", id, d)
		}
	}
}

// file is what Perfetto sees.
type file struct {
	TraceEvents []struct {
		Name, Ph string
		Ts       float64
		Pid      int
		Args     map[string]any
	}
}

func TestWritePerfetto(t *testing.T) {
	a, b := New(8), New(8)
	a.Record(1000, ParkEnd, 0, 0, 0, 0) // its beginning is lost
	a.Record(1500, ParkBegin, 0, 0, 0, 0)
	a.Record(2001, ParkEnd, 0, 0, 0, 0)
	a.Record(3000, Retransmit, 7, 4294967295, 100, 2)
	b.Record(5000, ID(999), 1, 2, 3, 4)
	b.Record(6000, QueueDepth, 1, 2, 3, 0)
	var out bytes.Buffer
	if err := WritePerfetto(&out, Track{`rank "0"`, 0, a}, Track{"rank 1", 1, b}, Track{"off", 2, nil}); err != nil {
		t.Fatal(err)
	}
	var f file
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		t.Fatalf("%v in:\n%s", err, out.Bytes())
	}
	var got []string
	for _, e := range f.TraceEvents {
		got = append(got, strings.Join([]string{e.Name, e.Ph}, "/"))
	}
	want := "process_name/M park/B park/E retransmit/i process_name/M event 999/i queue/C process_name/M"
	if strings.Join(got, " ") != want {
		t.Errorf("events:\n%v, want\n%v", got, want)
	}
	e := f.TraceEvents[3]
	if e.Ts != 3 || e.Args["peer"] != 7.0 || e.Args["seq"] != 4294967295.0 || f.TraceEvents[2].Ts != 2.001 {
		t.Errorf("retransmission: %+v", e)
	}
	if name := f.TraceEvents[0].Args["name"]; name != `rank "0" (0 events lost)` {
		t.Errorf("track %q", name)
	}
}

func TestWritePerfetto_nothing(t *testing.T) {
	var out bytes.Buffer
	if err := WritePerfetto(&out); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("%v: %s", err, out.Bytes())
	}
}

var errFull = errors.New("disk is full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWritePerfetto_passesErrorsOn(t *testing.T) {
	if err := WritePerfetto(full{}, Track{Name: "rank 0"}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

func TestAllocs_Record(t *testing.T) {
	r := New(64)
	if n := testing.AllocsPerRun(100, func() { r.Record(1, SendPosted, 1, 2, 3, 0) }); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := New(4096)
	for b.Loop() {
		r.Record(1, SendPosted, 1, 2, 3, 0)
	}
}
