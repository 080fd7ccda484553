package trace

import "testing"

func TestLosses(t *testing.T) {
	old, l := Losses{1, 2, 3, 4, 5, 6, 7}, Losses{11, 22, 3, 0, 5, 6, 8}
	if got := l.Since(old); got != (Losses{NoSocket: 10, NoRoom: 20, Replayed: 1}) {
		t.Errorf("%+v", got)
	}
	if got := l.Plus(old); got != (Losses{12, 24, 6, 4, 10, 12, 15}) {
		t.Errorf("%+v", got)
	}
	if text := (Losses{}).String(); text != "" {
		t.Errorf("%q where nothing was lost", text)
	}
	for i := range (&Losses{}).Words() {
		var l Losses
		*l.Words()[i] = 7
		if text := l.String(); len(text) < 20 || text[:8] != "7 frames" {
			t.Errorf("loss %d: %q", i, text)
		}
	}
}
