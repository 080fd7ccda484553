package launch

import (
	"bytes"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
)

// talker is the agent's end of a rank that says what a test wants.
func talker(t *testing.T, out *outbox) (r *rank, theirs *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	r = &rank{socket: ours, boot: newOutbox(ours), asked: make(chan struct{}), doing: make(chan string, 1)}
	t.Cleanup(func() {
		r.boot.close()
		<-r.boot.done
	})
	t.Cleanup(func() { theirs.Close() })
	go r.relayRequests(boot.Reply{Op: boot.OpWelcome, Version: boot.WireVersion}, pmi.NewServer("j", 2, ""), out)
	return r, theirs
}

// A rank that asks and does not listen is not heard any more, so that its agent does not
// grow; and when it ends, the agent does not wait for a child of it that has the socket.
func TestRank_asksAndDoesNotListen(t *testing.T) {
	for name, line := range map[string]string{
		"PMI":  "cmd=get_maxes\n",
		"ours": `{"op":"hello","version":4}` + "\n",
	} {
		out := newOutbox(nopCloser{new(bytes.Buffer)})
		r, theirs := talker(t, out)
		var written atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			text := []byte(strings.Repeat(line, 1000))
			if name == "PMI" {
				_, _ = theirs.WriteString("cmd=init pmi_version=1 pmi_subversion=1\n")
			}
			for written.Load() < 64<<20 {
				n, err := theirs.Write(text)
				if written.Add(int64(n)); err != nil {
					return
				}
			}
		}()
		// It takes no more when nothing changes for a while; whoever is slow sees that too
		// early, and misses a mistake at worst.
		for same, last := 0, int64(-1); same < 100; time.Sleep(time.Millisecond) {
			r.boot.mu.Lock()
			waiting := len(r.boot.lines)
			r.boot.mu.Unlock()
			if waiting > 4*outboxOutput {
				t.Fatalf("%s: %d lines wait for a rank that does not listen", name, waiting)
			}
			if now := written.Load(); now == last && now > 0 {
				same++
			} else {
				same, last = 0, now
			}
		}
		if n := written.Load(); n >= 64<<20 {
			t.Errorf("%s: all of %d bytes were heard", name, n)
		}
		r.finishReports()
		<-done
		out.close()
		<-out.done
	}
}

// A line without an end costs a rank its job, and its agent no memory.
func TestRank_saysALineWithoutEnd(t *testing.T) {
	var sent bytes.Buffer
	out := newOutbox(nopCloser{&sent})
	r, theirs := talker(t, out)
	go func() {
		for piece := make([]byte, 1<<16); ; {
			if _, err := theirs.Write(piece); err != nil {
				return
			}
		}
	}()
	<-r.asked
	theirs.Close()
	out.close()
	<-out.done
	if text := sent.String(); !strings.Contains(text, "line too long: more than 524288 bytes") {
		t.Errorf("it says %q", text)
	}
}
