package mem

import "testing"

func TestPlain(t *testing.T) {
	type point struct {
		x float64
		n int32
	}
	points := []point{{1, 2}, {3, 4}}
	b := PlainBytes(points)
	if len(b) != 32 {
		t.Fatalf("%d bytes, want 32", len(b))
	}
	PlainOf[point](b)[1].n = 9
	if points[1] != (point{3, 9}) {
		t.Errorf("%v: not the same memory", points)
	}
	if PlainBytes[point](nil) != nil || PlainOf[point](nil) != nil {
		t.Error("nothing became something")
	}
}

func TestPlainOf_panics(t *testing.T) {
	words := BytesOf(make([]uint64, 4))
	for _, b := range [][]byte{words[:7], words[1:9]} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes did not panic", len(b))
				}
			}()
			PlainOf[uint64](b)
		}()
	}
}
