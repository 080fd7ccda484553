package assert

import "testing"

// panics returns the message that f panics with, "" when it does not.
func panics(f func()) (message string) {
	defer func() { message, _ = recover().(string) }()
	f()
	return ""
}

func TestGuard(t *testing.T) {
	var g Guard
	for range 3 {
		g.Enter("engine")
		g.Leave()
	}
	g.Enter("engine")
	if m := panics(func() { g.Enter("engine is in use") }); m != "engine is in use" {
		t.Errorf("second Enter: panic %q", m)
	}
	g.Leave()
	if m := panics(func() { g.Enter("engine") }); m != "" {
		t.Errorf("after Leave: panic %q", m)
	}
}

func TestAllocs_Guard(t *testing.T) {
	var g Guard
	if n := testing.AllocsPerRun(100, func() {
		g.Enter("engine")
		g.Leave()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
