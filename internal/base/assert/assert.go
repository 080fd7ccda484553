// Package assert has the checks of our own invariants that stay on in
// production: they panic, because going on would corrupt memory or hang
// somewhere else. They are never for what a user or the network does.
package assert

// Guard finds two callers inside something that belongs to one at a time, and
// calls that come back into it from within. It is not atomic, which would cost
// more than what it guards: of two goroutines it finds most, and the race
// detector the others. The zero value is ready.
type Guard struct{ inside bool }

// Enter panics with what when another caller is inside already.
func (g *Guard) Enter(what string) {
	if g.inside {
		panic(what)
	}
	g.inside = true
}

// Leave ends what Enter began.
func (g *Guard) Leave() { g.inside = false }
