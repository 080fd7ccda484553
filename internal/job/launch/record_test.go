package launch

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/xdp"
)

// slotless are queueSlots of a queue that nothing is known of but what strays past it.
type slotless struct {
	stray uint64
	err   error
}

func (s *slotless) Slot(int) xdp.Slot { return xdp.Slot{} }
func (s *slotless) Vacate(int) error  { return nil }
func (s *slotless) Stray() uint64     { return s.stray }
func (s *slotless) Close() error      { return s.err }

// What ranks cannot see of the queue that they share, their agent tells: when the job
// fails or is asked what it does, and in their counters. What comes when ranks have
// ended is not counted.
func TestAgent_tellsLosses(t *testing.T) {
	for _, o := range []op{opKill, opState} {
		var sent bytes.Buffer
		card, other := &slotless{}, &slotless{}
		a := &agent{out: newOutbox(nopCloser{&sent}), queue: &queue{xdp: []queueSlots{card, other}}, start: &startOrder{Host: 3, Device: "eth1,eth2"}}
		a.queue.living.Store(2)
		a.obey(order{Op: o}) // nothing to tell
		card.stray, other.stray = 4, 1
		a.obey(order{Op: o})
		if err := a.queue.vacate(0); err != nil {
			t.Fatal(err)
		}
		other.stray = 7
		if l := a.queue.losses(); l != (trace.Losses{NoSocket: 5}) {
			t.Errorf("%+v", l)
		}
		a.out.close()
		<-a.out.done
		if text := sent.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "on host 3 (eth1,eth2) 5 frames came in on a queue of the network card without a socket") {
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
	of := &queue{xdp: []queueSlots{&slotless{stray: 2}}}
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

// A rank that has the memory of its record cannot make it larger, which its agent would
// read, or smaller.
func TestNewRecord_keepsItsSize(t *testing.T) {
	f, err := newRecord(8)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int64{0, 1 << 40} {
		if err := f.Truncate(size); err == nil {
			t.Errorf("it has %d bytes now", size)
		}
	}
	if st, err := f.Stat(); err != nil || st.Size() != int64(trace.RecordSize(8)) {
		t.Errorf("%v, %v", st, err)
	}
}
