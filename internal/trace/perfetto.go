package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Track is one line of a trace file: an engine.
type Track struct {
	Name string // "rank 3"
	ID   int    // unique among the tracks of a file; ranks are good
	Ring *Ring
}

// WritePerfetto writes the events of all tracks in the JSON form of the Chrome
// trace format, which ui.perfetto.dev opens. All tracks must have the same
// clock. The error is w's.
func WritePerfetto(w io.Writer, tracks ...Track) error {
	b := []byte(`{"displayTimeUnit":"ns","traceEvents":[`)
	for i, t := range tracks {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTrack(b, t)
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("trace: track %s: %w", t.Name, err)
		}
		b = b[:0]
	}
	if _, err := w.Write(append(b, "\n]}\n"...)); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

func appendTrack(b []byte, t Track) []byte {
	name, _ := json.Marshal(fmt.Sprintf("%s (%d events lost)", t.Name, t.Ring.Lost())) // a string always can
	b = fmt.Appendf(b, "\n"+`{"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}}`, t.ID, name)
	depth := 0
	for _, e := range t.Ring.Append(nil) {
		d := describe(e.ID)
		switch d.kind {
		case begin:
			depth++
		case end:
			if depth == 0 { // its beginning was lost
				continue
			}
			depth--
		}
		b = appendEvent(b, t.ID, e, d)
	}
	return b
}

func describe(id ID) def {
	if id > 0 && id < idEnd {
		return table[id]
	}
	return def{name: fmt.Sprintf("event %d", id), kind: instant, args: []string{"a", "b", "c", "d"}}
}

func appendEvent(b []byte, pid int, e Event, d def) []byte {
	b = append(b, ",\n"+`{"name":`...)
	b = strconv.AppendQuote(b, d.name)
	b = append(b, `,"ph":"`...)
	b = append(b, byte(d.kind))
	b = append(b, `","ts":`...) // microseconds
	b = strconv.AppendFloat(b, float64(e.At)/1000, 'f', 3, 64)
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(pid), 10)
	b = append(b, `,"tid":0`...)
	if d.kind == instant {
		b = append(b, `,"s":"t"`...) // scope: thread
	}
	b = append(b, `,"args":{`...)
	for i, name := range d.args {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, name)
		b = append(b, ':')
		b = strconv.AppendUint(b, uint64(e.Args[i]), 10)
	}
	return append(b, "}}"...)
}
