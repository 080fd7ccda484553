package bench

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/trace"
)

// lossy is a test whose carrier loses.
type lossy struct {
	Bench
	lost trace.Losses
}

func (l lossy) losses() trace.Losses { return l.lost }
func (lossy) detail() string         { return "eth1, 4 queues, multi-buffer" }

// What is lost while a size is measured is in its result, of both ends, and once.
func TestSession_losses(t *testing.T) {
	s := &Session{Carrier: "verbs on xdp/driver/zerocopy", Detail: detailOf(polling{Bench: lossy{}}), Spec: Spec{Test: "send_bw", Transport: "rd", MTU: 1500}}
	s.Case, _ = Find(s.Spec.Test)
	points := []Point{{Gbit: 1, Msgs: 1}}
	measure := func(here trace.Losses, there *trace.Losses) (Result, string) {
		s.note(lossesOf(polling{Bench: lossy{lost: here}}), there)
		r := s.result(Burst{Size: 8, Iters: 1}, points)
		var text bytes.Buffer
		if err := (Row{Results: []Result{r}}).WriteText(&text, []*Session{s}); err != nil {
			t.Fatal(err)
		}
		return r, text.String()
	}
	if r, text := measure(trace.Losses{}, nil); r.Losses != nil || strings.Contains(text, "#") {
		t.Errorf("%+v, %s", r.Losses, text)
	}
	r, text := measure(trace.Losses{NoSocket: 5, NoRoom: 9}, &trace.Losses{Unreachable: 2})
	if r.Losses == nil || r.Losses.Here.NoSocket != 5 || r.Losses.Here.NoRoom != 9 || r.Losses.There.Unreachable != 2 || r.Detail == "" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(text, "\n# here 5 frames came in on a queue of the network card without a socket") ||
		!strings.Contains(text, "\n# at the other end 2 frames were not sent") || strings.Contains(text, "no room") {
		t.Error(text)
	}
	if r, _ := measure(trace.Losses{NoSocket: 5, NoRoom: 9}, &trace.Losses{Unreachable: 2}); r.Losses != nil {
		t.Errorf("told twice: %+v", r.Losses)
	}
	var head bytes.Buffer
	if err := WriteHeader(&head, []*Session{s}); err != nil || !strings.HasPrefix(head.String(), "# send_bw: verbs on xdp/driver/zerocopy on eth1, 4 queues, multi-buffer, transport rd") {
		t.Errorf("%v, %s", err, head.String())
	}
}

func TestExplain(t *testing.T) {
	why := errors.New("silence")
	if err := explain(why, lossy{}); err != why {
		t.Error(err)
	}
	if err := explain(nil, lossy{lost: trace.Losses{NoSocket: 1}}); err != nil {
		t.Error(err)
	}
	if err := explain(why, lossy{lost: trace.Losses{NoSocket: 1}}); !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "silence; here 1 frames came in on a queue") {
		t.Error(err)
	}
}
