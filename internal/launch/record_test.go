package launch

import (
	"bytes"
	"io"
	"testing"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/trace"
)

// The longest record, and full, reaches the controller.
func TestRank_sendRecordLongest(t *testing.T) {
	want := bytes.Repeat([]byte{1}, trace.RecordSize(MaxRecordEvents))
	record, err := newRecord(MaxRecordEvents)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.WriteAt(want, 0); err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	go func() {
		out := newOutbox(write)
		(&rank{number: 1, record: record}).sendRecord(out)
		out.close()
	}()
	j := &job{left: map[int][]byte{}}
	lines := boot.NewLineReader(read)
	for {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseReport(line, 2)
		if err != nil {
			t.Fatal(err)
		}
		j.handleReport(nil, r)
	}
	if !bytes.Equal(j.left[1], want) {
		t.Errorf("%d bytes of %d, or others", len(j.left[1]), len(want))
	}
}
