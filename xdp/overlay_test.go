package xdp

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// The beginning of a line's memory is the receiver's, the rest the sender's; where
// one of them is missing it is all the other's.
func TestOverlay(t *testing.T) {
	const receive, size = 2 << 20, 6 << 20
	var arenas [2]*mem.Arena
	for i := range arenas {
		a, err := mem.New(mem.Config{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for at := range a.Bytes() {
			a.Bytes()[at] = byte('s' - i)
		}
		arenas[i] = a
	}
	s, r := arenas[0], arenas[1]
	for _, c := range []struct {
		sender, receiver *mem.Arena
		front, back      byte
		size             int
	}{{s, r, 'r', 's', size}, {s, s, 's', 's', size}, {nil, r, 'r', 'r', size}, {s, nil, 's', 's', size}, {nil, nil, 0, 0, receive}} {
		b, err := overlay(c.sender, c.receiver, receive)
		if err != nil {
			t.Fatal(err)
		}
		want := append(bytes.Repeat([]byte{c.front}, receive), bytes.Repeat([]byte{c.back}, c.size-receive)...)
		if !bytes.Equal(b, want) {
			t.Errorf("%q in front and %q behind it are not what is there", c.front, c.back)
		}
		if c.sender != nil && c.receiver != nil {
			b[0], b[size-1] = 1, 2
			if c.receiver.Bytes()[0] != 1 || c.sender.Bytes()[size-1] != 2 {
				t.Error("what is written does not reach the arenas")
			}
			b[0], b[size-1] = c.front, c.back
		}
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	}
}
