package verbs

import (
	"errors"
	"strings"
	"testing"
)

func TestBind_refuses(t *testing.T) {
	c := newContext()
	pd, other := newPD(t, c), newPD(t, c)
	q := newQP(pd)
	m := newMR(t, pd, 100, MWBind|LocalWrite)
	gone := newMR(t, pd, 100, MWBind)
	ok(t, gone.Dereg())
	bound, dead := newMW(t, pd), newMW(t, pd)
	ok(t, (&Bind{MW: bound, MR: m, Length: 1}).do(q))
	ok(t, dead.Dealloc())
	free := newMW(t, pd)
	for _, x := range []struct {
		name string
		bind *Bind
		is   error
		want string
	}{
		{"nothing", nil, ErrInvalid, "needs Bind"},
		{"no window", &Bind{MR: m, Length: 1}, ErrInvalid, "needs Bind"},
		{"no region", &Bind{MW: free, Length: 1}, ErrInvalid, "needs Bind"},
		{"window deallocated", &Bind{MW: dead, MR: m, Length: 1}, ErrInvalid, "deallocated"},
		{"region deregistered", &Bind{MW: free, MR: gone, Length: 1}, ErrInvalid, "deregistered"},
		{"window of another domain", &Bind{MW: newMW(t, other), MR: m, Length: 1}, ErrInvalid, "one protection domain"},
		{"region of another domain", &Bind{MW: free, MR: newMR(t, other, 9, MWBind), Length: 1}, ErrInvalid, "one protection domain"},
		{"bound", &Bind{MW: bound, MR: m, Length: 1}, ErrBusy, "LOCAL_INV"},
		{"region without MWBind", &Bind{MW: free, MR: newMR(t, pd, 9, LocalWrite), Length: 1}, ErrInvalid, "MWBind"},
		{"local rights", &Bind{MW: free, MR: m, Length: 1, Access: LocalWrite}, ErrInvalid, "only"},
		{"write to what is read-only", &Bind{MW: free, MR: newMR(t, pd, 9, MWBind), Length: 1, Access: RemoteWrite}, ErrInvalid, "LocalWrite"},
		{"atomics on what is read-only", &Bind{MW: free, MR: newMR(t, pd, 9, MWBind), Length: 1, Access: RemoteAtomic}, ErrInvalid, "LocalWrite"},
		{"before", &Bind{MW: free, MR: m, Offset: -1, Length: 2}, ErrInvalid, "offset -1"},
		{"behind", &Bind{MW: free, MR: m, Offset: 50, Length: 51}, ErrInvalid, "region of 100"},
		{"far behind", &Bind{MW: free, MR: m, Offset: 1 << 62, Length: 1 << 62}, ErrInvalid, "region of 100"},
		{"empty", &Bind{MW: free, MR: m}, ErrInvalid, "window of 0"},
	} {
		if err := x.bind.do(q); !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want a word on %q", x.name, err, x.want)
		}
	}
	if free.RKey() != 0 || m.windows != 1 {
		t.Error("a refused bind bound something")
	}
}

// A window's life: each bind gives a new key, its end by whichever way takes
// it, and the region is busy in between.
func TestBind_life(t *testing.T) {
	pd := newPD(t, newContext())
	q := newQP(pd)
	m := newMR(t, pd, 100, MWBind)
	w := newMW(t, pd)
	ends := map[string]func() bool{
		"LOCAL_INV":            func() bool { _, ok := q.invalidate(w.RKey(), false); return ok },
		"Send with Invalidate": func() bool { _, ok := q.invalidate(w.RKey(), true); return ok },
		"Dealloc":              func() bool { return w.Dealloc() == nil },
	}
	seen := map[uint32]bool{0: true}
	for _, name := range []string{"LOCAL_INV", "Send with Invalidate", "LOCAL_INV", "Dealloc"} {
		ok(t, (&Bind{MW: w, MR: m, Offset: 10, Length: 20, Access: RemoteRead}).do(q))
		key := w.RKey()
		if seen[key] {
			t.Errorf("before %s: key %#x was given before", name, key)
		}
		seen[key] = true
		if err := m.Dereg(); !errors.Is(err, ErrBusy) {
			t.Errorf("before %s: Dereg: %v", name, err)
		}
		if b, _ := q.grant(key, m.Addr()+10, 20, RemoteRead); len(b) != 20 {
			t.Errorf("before %s: the window cannot be read", name)
		}
		if !ends[name]() {
			t.Errorf("%s failed", name)
		}
		if b, _ := q.grant(key, m.Addr()+10, 20, RemoteRead); b != nil || w.RKey() != 0 {
			t.Errorf("after %s: the window can be read", name)
		}
	}
	if err := w.Dealloc(); !errors.Is(err, ErrInvalid) {
		t.Errorf("Dealloc twice: %v", err)
	}
	ok(t, m.Dereg())
}
