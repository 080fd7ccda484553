package launch

import (
	"io"
	"os"
	"strings"
	"testing"
)

func TestOutbox_keepsOrderAndCloses(t *testing.T) {
	r, w := io.Pipe()
	o := newOutbox(w)
	go func() {
		for i := range 3 * outboxBulk {
			if i%2 == 0 {
				o.post(i)
			} else {
				o.postBulk(i)
			}
		}
		o.close()
	}()
	b, err := io.ReadAll(r)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if err != nil || len(lines) != 3*outboxBulk || lines[1] != "1" || lines[len(lines)-1] != "191" {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	<-o.done
}

// Posting never blocks, also when nobody reads; bulk is let go when the reader
// is gone.
func TestOutbox_readerIsGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := newOutbox(w)
	for range 10 * outboxBulk {
		o.post(strings.Repeat("x", 1000))
	}
	r.Close()
	o.postBulk("x")
	<-o.done
	o.post("y")
	o.postBulk("z")
	o.close()
}
