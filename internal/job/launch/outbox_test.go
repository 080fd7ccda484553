package launch

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOutbox_keepsOrderAndCloses(t *testing.T) {
	r, w := io.Pipe()
	o := newOutbox(w)
	go func() {
		for i := range 3 * outboxOutput {
			if i%2 == 0 {
				o.post(i)
			} else {
				b := o.lend()
				o.postOutput(report{Op: opOutput}, b, copy(b.data(), fmt.Sprintln(i)))
			}
		}
		o.close()
	}()
	want := ""
	for i := range 3 * outboxOutput {
		if i%2 != 0 {
			want += fmt.Sprintf(`{"op":"output","length":%d}`, len(fmt.Sprintln(i))) + "\n"
		}
		want += fmt.Sprintln(i)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != want {
		t.Errorf("%q, %v", b, err)
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
	for range 10 * outboxOutput {
		o.post(strings.Repeat("x", 1000))
	}
	r.Close()
	o.postOutput(report{}, o.lend(), 1)
	o.post("y")
	o.postOutput(report{}, o.lend(), 1)
	o.close()
	<-o.done
}

// What a reader has said before it went away is still there to be read: a rank
// says that it has finished and ends, while it is being told about another one.
func TestOutbox_lastWordsOfTheReader(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	o := newOutbox(ours)
	if _, err := theirs.WriteString("finalize\n"); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	o.post("somebody has ended")
	for failed := false; !failed; runtime.Gosched() {
		o.mu.Lock()
		failed = o.failed
		o.mu.Unlock()
	}
	if b, err := io.ReadAll(ours); err != nil || string(b) != "finalize\n" {
		t.Errorf("%q, %v", b, err)
	}
	o.close()
	<-o.done
}
