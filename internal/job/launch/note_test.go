package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/xdp"
)

// someFlows are on a device that is not there any more, so that undoing them
// comes to nothing.
var someFlows = xdp.Flows{Device: "gone0", Ifindex: 1 << 30, Filters: []xdp.Filter{
	{Protocol: unix.IPPROTO_UDP, Addr: netip.MustParseAddr("10.0.0.1"), Port: 18700, Mask: 0xffff},
}}

func notes(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// A note is there while its writer is, then its janitor sees to it.
func TestNoteChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notes")
	for name, end := range map[string]func(*note){"dropped": (*note).drop, "left": (*note).leave} {
		n, err := noteChanges(dir, changes{Flows: &someFlows})
		if err != nil {
			t.Fatal(err)
		}
		if done, err := cleanNotes(dir); len(done) > 0 || err != nil || len(notes(t, dir)) != 1 {
			t.Errorf("%s: while its writer lives: %v, %v, %v", name, done, err, notes(t, dir))
		}
		end(n)
		for len(notes(t, dir)) > 0 { // the janitor needs its time
			time.Sleep(time.Millisecond)
		}
	}
}

// Of what was changed in several cards nothing is noted any more when their queues are
// closed, and what does not close is left to the janitors.
func TestQueue_closeNotes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notes")
	for _, fails := range []bool{false, true} {
		card := &slotless{}
		if fails {
			card.err = errors.New("no more")
		}
		q := &queue{xdp: []queueSlots{card, &slotless{}}}
		for range 2 {
			n, err := noteChanges(dir, changes{Flows: &someFlows})
			if err != nil {
				t.Fatal(err)
			}
			q.notes = append(q.notes, n)
		}
		q.close()
		if left := notes(t, dir); !fails && len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		for len(notes(t, dir)) > 0 { // the janitors need their time
			time.Sleep(time.Millisecond)
		}
	}
}

// writeNote writes one whose writer and janitor are dead.
func writeNote(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "device-1.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCleanNotes(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // in the error
	}{
		"nothing left to do": {`{"flows":{"device":"gone0","ifindex":1073741824,"filters":[]},"netns":NETNS}`, ""},
		"unfinished":         {`{"flows":{"dev`, ""},
		"gone with netns":    {`{"napi":{"device":"eth7"},"netns":1}`, ""},
	} {
		dir := t.TempDir()
		ns, err := netnsInode()
		if err != nil {
			t.Fatal(err)
		}
		writeNote(t, dir, strings.ReplaceAll(c.text, "NETNS", fmt.Sprint(ns)))
		done, err := cleanNotes(dir)
		if len(done) > 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, done, err, c.want)
		}
		if left := len(notes(t, dir)); (left > 0) != (c.want != "") {
			t.Errorf("%s: %d notes are left", name, left)
		}
	}
	if done, err := cleanNotes("/nonexistent"); len(done) > 0 || err != nil {
		t.Errorf("without notes: %v, %v", done, err)
	}
}

// Who cleans up beside a writer does not take a note for one that was left behind,
// before that is locked.
func TestNewNote_besideCleanNotes(t *testing.T) {
	dir := t.TempDir()
	end, ended := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-end:
				ended <- nil
				return
			default:
			}
			if _, err := cleanNotes(dir); err != nil {
				ended <- err
				return
			}
		}
	}()
	for i := range 2000 {
		n, err := newNote(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(n.file.Name()); err != nil {
			t.Fatalf("note %d: %v", i, err)
		}
		n.drop()
	}
	close(end)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
