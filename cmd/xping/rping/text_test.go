package rping

import (
	"errors"
	"strings"
	"testing"
)

// What rping sends, from a capture of it on Linux' siw.
func TestFill_siw(t *testing.T) {
	const first = "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\x00"
	const fifth = "rdma-ping-4: EFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuv\x00"
	for ping, want := range map[int]string{0: first, 4: fifth} {
		b := make([]byte, 64)
		if Fill(b, ping); string(b) != want {
			t.Errorf("ping %d: %q, want %q", ping, b, want)
		}
	}
}

func TestFill(t *testing.T) {
	b := make([]byte, 10000)
	for _, ping := range []int{0, 57, 58, 59, 12345, 1<<31 - 1} {
		Fill(b, ping)
		_, rest, _ := strings.Cut(string(b), ": ")
		for i := range len(rest) - 1 {
			if want := byte('A' + (ping%58+i)%58); rest[i] != want {
				t.Fatalf("ping %d, letter %d is %q, want %q", ping, i, rest[i], want)
			}
		}
		if string(text(b)) != string(b[:len(b)-1]) {
			t.Errorf("ping %d: the text has %d bytes", ping, len(text(b)))
		}
	}
	least := make([]byte, MinSize) // holds the longest number
	if Fill(least, 1<<31-1); !strings.HasPrefix(string(least), "rdma-ping-2147483647: ") {
		t.Errorf("%q", least)
	}
}

func TestText_withoutZero(t *testing.T) {
	if got := text([]byte("abc")); string(got) != "abc" {
		t.Errorf("%q", got)
	}
}

func TestMismatch(t *testing.T) {
	if err := mismatch([]byte("abc"), []byte("abc"), 1); err != nil {
		t.Error(err)
	}
	if err := mismatch([]byte("abc"), []byte("abd"), 1); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "byte 2 is 0x64, 0x63 was sent") {
		t.Error(err)
	}
}
