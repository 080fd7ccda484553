package launch

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

func TestRankTable_fenceSpreadsWhatWasPut(t *testing.T) {
	l := newRankTable(3, 0)
	ask := func(rank int, r boot.Request, complete bool) []boot.Value {
		t.Helper()
		values, done, err := l.request(rank, r)
		if err != nil || done != complete {
			t.Fatalf("rank %d %s: complete %v, %v", rank, r.Op, done, err)
		}
		return values
	}
	for rank := range 3 {
		ask(rank, boot.Request{Op: boot.OpHello}, false)
	}
	ask(0, boot.Request{Op: boot.OpPut, Key: "a", Value: []byte("0")}, false)
	ask(0, boot.Request{Op: boot.OpFence}, false)
	ask(2, boot.Request{Op: boot.OpFence}, false)
	if got := l.missing(); !reflect.DeepEqual(got, []int{1}) || l.begun {
		t.Errorf("missing %v, begun %v", got, l.begun)
	}
	ask(1, boot.Request{Op: boot.OpPut, Key: "b", Value: []byte("1")}, false)
	got := ask(1, boot.Request{Op: boot.OpFence}, true)
	if want := []boot.Value{{Rank: 0, Key: "a", Value: []byte("0")}, {Rank: 1, Key: "b", Value: []byte("1")}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if l.fenced != 0 || len(l.missing()) != 3 || !l.begun {
		t.Errorf("after the fence: %+v", l)
	}
	ask(1, boot.Request{Op: boot.OpFence}, false)
	ask(0, boot.Request{Op: boot.OpFence}, false)
	if got := ask(2, boot.Request{Op: boot.OpFence}, true); len(got) != 0 {
		t.Errorf("the second fence spread %v again", got)
	}
}

func TestRankTable_requestOutOfPlace(t *testing.T) {
	for name, requests := range map[string][]boot.Op{
		"before hello": {boot.OpPut},
		"hello twice":  {boot.OpHello, boot.OpHello},
		"in a fence":   {boot.OpHello, boot.OpFence, boot.OpPut},
		"fence twice":  {boot.OpHello, boot.OpFence, boot.OpFence},
	} {
		l := newRankTable(2, 0)
		for i, o := range requests {
			_, _, err := l.request(1, boot.Request{Op: o})
			if (err != nil) != (i == len(requests)-1) {
				t.Errorf("%s, request %d: %v", name, i, err)
			}
		}
	}
}

func TestRankTable_deserter(t *testing.T) {
	l := newRankTable(3, 0)
	l.exit(2)
	l.exit(2)
	if l.alive != 2 {
		t.Errorf("%d alive", l.alive)
	}
	if r, ok := l.deserter(); ok {
		t.Errorf("rank %d, but nobody waits", r)
	}
	_, _, _ = l.request(0, boot.Request{Op: boot.OpHello})
	_, _, _ = l.request(0, boot.Request{Op: boot.OpFence})
	if r, ok := l.deserter(); !ok || r != 2 {
		t.Errorf("%d, %v; want rank 2", r, ok)
	}
}

func TestRankTable_putsWithoutEnd(t *testing.T) {
	l := newRankTable(100, 0)
	value := make([]byte, boot.MaxValue)
	var errs [2]error
	for rank := range 100 {
		_, _, _ = l.request(rank, boot.Request{Op: boot.OpHello})
		for err := error(nil); err == nil; {
			_, _, err = l.request(rank, boot.Request{Op: boot.OpPut, Key: "k", Value: value})
			errs[min(rank, 1)] = err
		}
	}
	for i, want := range []string{"rank 0: the table of the job takes no more: a rank may put 1024 KiB in all", "rank 99: the table of the job takes no more: the ranks of a job may put 48 MiB together"} {
		if !errors.Is(errs[i], boot.ErrQuota) || !strings.Contains(errs[i].Error(), want) {
			t.Errorf("%v, want %q", errs[i], want)
		}
	}
	if n := len(l.staged) * boot.MaxValue; n > boot.MaxTable {
		t.Errorf("%d bytes are kept", n)
	}
}

// Ghosts take part in fences, but nobody is told to hurry because of them alone, and the job
// is over without them.
func TestRankTable_ghosts(t *testing.T) {
	l := newRankTable(2, 1)
	ask := func(rank int, op boot.Op, complete bool) {
		t.Helper()
		if _, done, err := l.request(rank, boot.Request{Op: op}); err != nil || done != complete {
			t.Fatalf("rank %d, %s: complete %v, %v", rank, op, done, err)
		}
	}
	for rank := range 3 {
		ask(rank, boot.OpHello, false)
	}
	ask(2, boot.OpFence, false)
	if l.fenced != 0 {
		t.Error("a ghost that waits is taken for a rank")
	}
	l.exit(1)
	if rank, ok := l.deserter(); ok {
		t.Errorf("rank %d is missed by a ghost", rank)
	}
	ask(0, boot.OpFence, false)
	if rank, ok := l.deserter(); !ok || rank != 1 {
		t.Errorf("rank %d is missed, want 1", rank)
	}
	l.ranks[1].exited = false
	ask(1, boot.OpFence, true)
	if l.exit(0); l.alive != 0 {
		t.Errorf("%d ranks are left, and want none", l.alive)
	}
}
