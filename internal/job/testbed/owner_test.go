package testbed

import (
	"os"
	"testing"
)

func TestOwner_nameRoundTrip(t *testing.T) {
	o := owner{pid: 4711, start: 123456789}
	got, ok := ownerFromName(o.prefix() + "-7-h0")
	if !ok || got != o {
		t.Errorf("%v, %v; want %v", got, ok, o)
	}
}

func TestOwnerFromName_foreignNames(t *testing.T) {
	for _, name := range []string{"", "blue", "xwarp-", "xwarp-12", "xwarp-12-h0", "xwarp-x-1-2-h0", "xwarp--1-1-h0", "xwarp-0-1-h0", "xwarp-12-!-1-h0"} {
		if o, ok := ownerFromName(name); ok {
			t.Errorf("%q is owned by %v", name, o)
		}
	}
}

func TestOwner_alive(t *testing.T) {
	self, err := ownerOf(os.Getpid())
	if err != nil || !self.alive() {
		t.Fatalf("this process is dead: %v, %v", self, err)
	}
	if (owner{self.pid, self.start + 1}).alive() {
		t.Error("a later process with the same number counts as the same")
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 1 2"
	for in, want := range map[string]uint64{
		"1 (a) S" + rest:        987,
		"1 (a b) (c)) S" + rest: 987,
		"1 (a) Z" + rest:        0,
		"1 (a) S 1 2":           0,
		"":                      0,
	} {
		o, err := parseStat(1, []byte(in))
		if o.start != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v, %v", in, o, err)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (a b) (c)) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 1 2"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := parseStat(3, b); err == nil && o.pid != 3 {
			t.Errorf("%v", o)
		}
	})
}
