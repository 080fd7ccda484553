package launch

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/trace"
	"github.com/xwarp/xwarp/xdp"
)

// seatless are seats of a queue that nothing is known of but what strays past it.
type seatless struct{ stray uint64 }

func (s *seatless) Seat(int) xdp.Seat { return xdp.Seat{} }
func (s *seatless) Vacate(int) error  { return nil }
func (s *seatless) Stray() uint64     { return s.stray }
func (s *seatless) Close() error      { return nil }

// What ranks cannot see of the queue that they share, their agent tells: when the job
// fails or is asked what it does, and in their counters. What comes when ranks have
// ended is not counted.
func TestAgent_tellsLosses(t *testing.T) {
	for _, o := range []op{opKill, opState} {
		var sent bytes.Buffer
		seats := &seatless{}
		a := &agent{out: newOutbox(nopCloser{&sent}), queue: &queue{xdp: seats}, start: &startOrder{Host: 3, Device: "eth1"}}
		a.queue.living.Store(2)
		a.obey(order{Op: o}) // nothing to tell
		seats.stray = 5
		a.obey(order{Op: o})
		if err := a.queue.vacate(0); err != nil {
			t.Fatal(err)
		}
		seats.stray = 7
		if l := a.queue.losses(); l != (trace.Losses{NoSocket: 5}) {
			t.Errorf("%+v", l)
		}
		a.out.close()
		<-a.out.done
		if text := sent.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "on host 3 (eth1) 5 frames came in on a queue of the network card without a socket") {
			t.Errorf("%s: %s", o, text)
		}
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A record is sent in pieces, for the longest one is longer than a line may be.
func TestRank_sendRecord(t *testing.T) {
	const events = 1 << 16 // 3 MiB
	want := bytes.Repeat([]byte{1}, trace.RecordSize(events))
	record, err := newRecord(events)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.WriteAt(want, 0); err != nil {
		t.Fatal(err)
	}
	sent, err := os.Create(filepath.Join(t.TempDir(), "sent"))
	if err != nil {
		t.Fatal(err)
	}
	out := newOutbox(sent)
	of := &queue{xdp: &seatless{stray: 2}}
	(&rank{number: 1, record: record, queue: of}).sendRecord(out)
	trace.AddLosses(want, trace.Losses{NoSocket: 2})
	out.close()
	<-out.done
	text, err := os.ReadFile(sent.Name())
	if err != nil {
		t.Fatal(err)
	}
	j := &job{left: map[int][]byte{}}
	lines := boot.NewLineReader(bytes.NewReader(text))
	for {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		var r report
		if err == nil {
			r, err = parseReport(line, 2)
		}
		if err == nil {
			r.Data, err = lines.Piece(r.Length)
		}
		if err != nil {
			t.Fatal(err)
		}
		j.handleReport(nil, r)
	}
	if !bytes.Equal(j.left[1], want) {
		t.Errorf("%d bytes of %d, or others", len(j.left[1]), len(want))
	}
}
