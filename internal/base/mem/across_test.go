package mem

import (
	"bytes"
	"testing"
)

// CopyAcross copies what copy does, whatever the lengths and where the ranges begin, and nothing
// beside it.
func TestCopyAcross(t *testing.T) {
	const most = 3 * acrossLeast
	src := make([]byte, most+64)
	for i := range src {
		src[i] = byte(i*i>>3 + i)
	}
	for _, n := range []int{0, 1, acrossLeast - 1, acrossLeast, acrossLeast + 1, acrossLeast + 63, most} {
		for _, from := range []int{0, 1, 24} {
			for _, to := range []int{0, 7, 24} {
				for _, room := range []int{n / 2, n, n + 5} {
					got, want := make([]byte, most+64), make([]byte, most+64)
					s := src[from : from+n]
					if have, copied := CopyAcross(got[to:to+room], s), copy(want[to:to+room], s); have != copied || !bytes.Equal(got, want) {
						t.Fatalf("%d bytes from %d to %d, room for %d: %d copied, want %d", n, from, to, room, have, copied)
					}
				}
			}
		}
	}
}
