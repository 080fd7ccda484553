package verbs

import (
	"errors"
	"strings"
	"testing"
)

func TestRegMR_keysChange(t *testing.T) {
	pd := newPD(t, newContext())
	seen := map[uint32]bool{}
	for range 3 * restMax {
		m := newMR(t, pd, 8, LocalWrite)
		if seen[m.RKey()] || m.LKey() != m.RKey() {
			t.Fatalf("key %#x was used before, or is not both keys", m.RKey())
		}
		seen[m.RKey()] = true
		ok(t, m.Dereg())
	}
}

func TestDereg(t *testing.T) {
	c := newContext()
	pd := newPD(t, c)
	m := newMR(t, pd, 100, LocalWrite)
	s := m.SGE(0, 100)
	if _, err := c.resolve(pd, &s, LocalWrite); err != nil {
		t.Error(err)
	}
	ok(t, m.Dereg())
	if _, err := c.resolve(pd, &s, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("a deregistered key names memory: %v", err)
	}
	if err := m.Dereg(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "before") {
		t.Errorf("Dereg twice: %v", err)
	}
	if m.RKey() != 0 || m.Bytes() != nil {
		t.Error("a deregistered region still has a key or memory")
	}
}

func TestResolve(t *testing.T) {
	c := newContext()
	pd := newPD(t, c)
	m := newMR(t, pd, 100, 0)
	w := newMW(t, pd)
	bindable := newMR(t, pd, 8, MWBind|LocalWrite)
	ok(t, (&Bind{MW: w, MR: bindable, Length: 8, Access: RemoteRead}).do(newQP(pd)))
	for _, x := range []struct {
		name string
		pd   *PD
		sge  SGE
		need Access
		want string // of the error; empty: none
	}{
		{"all", pd, m.SGE(0, 100), 0, ""},
		{"none of it", pd, m.SGE(100, 0), 0, ""},
		{"one too many", pd, m.SGE(0, 101), 0, "not inside"},
		{"behind", pd, m.SGE(101, 0), 0, "not inside"},
		{"before", pd, SGE{Addr: m.Addr() - 1, Length: 1, LKey: m.LKey()}, 0, "not inside"},
		{"wraps", pd, SGE{Addr: ^uint64(0), Length: 4, LKey: m.LKey()}, 0, "not inside"},
		{"may not write", pd, m.SGE(0, 1), LocalWrite, "LocalWrite"},
		{"other domain", newPD(t, c), m.SGE(0, 1), 0, "protection domain"},
		{"no key", pd, SGE{Addr: m.Addr(), Length: 1}, 0, "names no region"},
		{"key of a window", pd, SGE{Addr: bindable.Addr(), Length: 1, LKey: w.RKey()}, 0, "names no region"},
	} {
		b, err := c.resolve(x.pd, &x.sge, x.need)
		switch {
		case x.want == "" && (err != nil || len(b) != int(x.sge.Length)):
			t.Errorf("%s: %d bytes, %v", x.name, len(b), err)
		case x.want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: %v, want a word on %q", x.name, err, x.want)
		}
	}
}

func TestAllocs_regDereg(t *testing.T) {
	pd := newPD(t, newContext())
	buf := make([]byte, 8)
	cycle := func() {
		m, err := pd.RegMR(buf, LocalWrite)
		ok(t, err)
		ok(t, m.Dereg())
	}
	for range 2 * restMax {
		cycle()
	}
	if n := testing.AllocsPerRun(1000, cycle); n != 0 {
		t.Errorf("%v allocations to register and deregister", n)
	}
}

func BenchmarkResolve(b *testing.B) {
	c := newContext()
	pd := newPD(b, c)
	m := newMR(b, pd, 4096, LocalWrite)
	s := m.SGE(64, 1024)
	for b.Loop() {
		if _, err := c.resolve(pd, &s, LocalWrite); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRegDereg(b *testing.B) {
	pd := newPD(b, newContext())
	buf := make([]byte, 8)
	for b.Loop() {
		m, err := pd.RegMR(buf, LocalWrite)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Dereg(); err != nil {
			b.Fatal(err)
		}
	}
}
