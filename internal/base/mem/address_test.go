package mem

import (
	"testing"
)

func TestFind(t *testing.T) {
	whole := make([]byte, 300)
	a := Over(whole[100:200])
	for _, c := range []struct {
		from, to int
		addr     Addr
		ok       bool
	}{
		{100, 200, 0, true},
		{100, 101, 0, true},
		{199, 200, 99, true},
		{150, 160, 50, true},
		{99, 101, 0, false},
		{199, 201, 0, false},
		{0, 300, 0, false},
		{200, 210, 0, false},
		{0, 50, 0, false},
		{150, 150, 0, false}, // empty
	} {
		if addr, ok := a.Find(whole[c.from:c.to]); addr != c.addr || ok != c.ok {
			t.Errorf("Find of [%d:%d] in [100:200] = %d, %v", c.from, c.to, addr, ok)
		}
	}
	if _, ok := a.Find(nil); ok {
		t.Error("nil was found")
	}
	if AddressOf(nil) != 0 || AddressOf(whole[1:]) != AddressOf(whole)+1 {
		t.Error("addresses do not count bytes")
	}
}

func TestScalars(t *testing.T) {
	f := []float64{1, 2, 3}
	b := BytesOf(f)
	if len(b) != 24 {
		t.Fatalf("%d bytes of 3 float64", len(b))
	}
	back := ScalarsOf[float64](b)
	back[1] = 7
	if len(back) != 3 || f[1] != 7 {
		t.Errorf("%v and %v are not of the same memory", f, back)
	}
	if BytesOf([]int32{}) != nil || ScalarsOf[int32](nil) != nil {
		t.Error("nothing became something")
	}
	type rank int32
	if got := len(BytesOf([]rank{1, 2})); got != 8 {
		t.Errorf("%d bytes of two named int32", got)
	}
}

func TestScalarsOf_panics(t *testing.T) {
	b := BytesOf(make([]uint64, 4))
	for name, bad := range map[string][]byte{"not whole": b[:9], "not aligned": b[1:9]} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			ScalarsOf[uint64](bad)
		}()
	}
}

func TestAllocs_Find(t *testing.T) {
	buf := make([]byte, 4096)
	a := Over(buf)
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := a.Find(buf[7:9]); !ok {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestJoined(t *testing.T) {
	b := []byte("abcdefgh")
	for _, c := range []struct {
		a, b []byte
		want string
		ok   bool
	}{
		{b[:3:3], b[3:5:5], "abcde", true}, {b[:3], b[4:5], "abc", false}, {b[3:5], b[:3], "de", false}, {nil, b[:3], "", false}, {b[:3], b[3:3], "abc", false},
	} {
		if both, ok := Joined(c.a, c.b); string(both) != c.want || ok != c.ok {
			t.Errorf("%q and %q: %q, %v", c.a, c.b, both, ok)
		}
	}
}
