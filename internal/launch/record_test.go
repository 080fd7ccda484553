package launch

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/trace"
)

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
	(&rank{number: 1, record: record}).sendRecord(out)
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
