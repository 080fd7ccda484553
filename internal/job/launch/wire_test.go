package launch

import (
	"reflect"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

var someStart = startOrder{
	Version: wireVersion, Host: 1, jobSize: jobSize{Size: 4}, JobKey: 1<<64 - 1, Job: "j", Fabric: "udp", Device: "lo", Dir: "/",
	Apps: []App{{Program: "p", Args: []string{"a", "b\n"}}, {Program: "q", Env: []string{"C=D"}}}, Env: []string{"A=B"}, Bind: Binding{To: BindUser, Places: [][]int{{0, 1}, {2}}}, Processors: []int{0, 1, 2}, Ranks: []rankPlan{{2, 0, -1, 1}, {3, 1, 7, 0}},
}

func TestParseOrder_roundTrip(t *testing.T) {
	for _, want := range []order{
		{Op: opStart, Start: &someStart},
		{Op: opRoute, Peers: []string{"a", "fd00::1"}, IPv6: true},
		{Op: opRoute, Device: "eth1"},
		{Op: opFenced, Values: []boot.Value{{Rank: 1, Key: "k", Value: []byte("\x00\xff")}}},
		{Op: opSignal, Signal: 15},
		{Op: opStdin, Data: []byte("x\ny")},
		{Op: opStdin},
		{Op: opState},
		{Op: opKill},
		{Op: opFinish},
	} {
		line, err := boot.AppendLine(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseOrder(line[:len(line)-1]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}

func TestParseReport_roundTrip(t *testing.T) {
	for _, want := range []report{
		{Op: opReady, Version: wireVersion},
		{Op: opStarted, Rank: 3, PID: 99},
		{Op: opFailed, Rank: 2, NotFound: true, Why: "gone"},
		{Op: opDevice, Found: &hostDevice{Device: "eth1", Unsure: "u", NoXDP: "x", IPv6: true}},
		{Op: opBoot, Rank: 1, PMI: true, Request: &boot.Request{Op: boot.OpFence}},
		{Op: opOutput, Stderr: true, Length: maxData},
		{Op: opDoing, Rank: 1, Length: 7},
		{Op: opStdinRoom},
		{Op: opStdinShut},
		{Op: opStopped},
		{Op: opExit, Rank: 3, Status: 255},
		{Op: opExit, Rank: 3, Signal: 11, Core: true},
		{Op: opBye},
	} {
		line, err := boot.AppendLine(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseReport(line[:len(line)-1], 4); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
}

func TestParse_refusesNonsense(t *testing.T) {
	for _, line := range []string{
		"", "x", "{}", "null", "[]", `{"op":7}`, `{"op":"sing"}`, `{"op":"kill"`, `{"op":"kill"}x`,
		`{"op":"start"}`, `{"op":"start","start":{"version":2}}`, `{"op":"start","start":{"version":1,"job_key":"1","size":1,"program":"p","ranks":[{}]}}`,
		`{"op":"start","start":{"version":2,"job_key":"1","size":1,"program":"p","ranks":[{"rank":1}]}}`,
		`{"op":"start","start":{"version":2,"job_key":"1","size":1,"program":"p","ranks":[{"rank":0,"slot":-2}]}}`,
		`{"op":"signal"}`, `{"op":"signal","signal":-9}`, `{"op":"signal","signal":99}`,
		`{"op":"ready"}`, `{"op":"exit","rank":9}`, `{"op":"exit","rank":-1}`, `{"op":"exit","status":256}`, `{"op":"exit","signal":65}`,
		`{"op":"output","length":-1}`, `{"op":"output","length":1048577}`, `{"op":"route"}`, `{"op":"device"}`, `{"op":"device","found":{}}`,
	} {
		if o, err := parseOrder([]byte(line)); err == nil {
			t.Errorf("order %q: %+v", line, o)
		}
		if r, err := parseReport([]byte(line), 4); err == nil {
			t.Errorf("report %q: %+v", line, r)
		}
	}
}

func FuzzParseOrder(f *testing.F) {
	line, err := boot.AppendLine(nil, order{Op: opStart, Start: &someStart})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`{"op":"signal","signal":15}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := parseOrder(line)
		if err != nil || o.Op != opStart {
			return
		}
		for _, r := range o.Start.Ranks {
			if r.Rank < 0 || r.Rank >= o.Start.Size || r.Slot < -1 {
				t.Errorf("%q: %+v", line, o.Start)
			}
		}
	})
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"op":"exit","rank":3,"signal":11,"core":true}`))
	f.Add([]byte(`{"op":"boot","rank":1,"request":{"op":"put","key":"k","value":"AA=="}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseReport(line, 4)
		if err == nil && (r.Rank < 0 || r.Rank > 3 || r.Status > 255) {
			t.Errorf("%q: %+v", line, r)
		}
	})
}
