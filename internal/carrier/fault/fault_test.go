package fault

import (
	"math"
	"testing"
)

func TestNewDice_refuses(t *testing.T) {
	for _, c := range []Config{
		{Loss: -0.1}, {Dup: 1.1}, {Reorder: math.NaN()}, {Corrupt: math.Inf(1)}, {Span: -1},
	} {
		if _, err := newDice(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	d, err := newDice(Config{Loss: 1})
	if err != nil || d.Span != 8 || !d.chance(1) || d.chance(0) {
		t.Errorf("certain loss: %+v, %v", d, err)
	}
}
