package p2p

import (
	"reflect"
	"testing"
)

// What short messages touch of a request lies in few cache lines.
func TestRequest_lines(t *testing.T) {
	const line = 64
	if n := reflect.TypeFor[requestLines]().Size(); n%line != 0 {
		t.Errorf("requests have %d bytes, which are no whole cache lines", n)
	}
	for name, want := range map[string]uintptr{"asked": 0, "waiter": 1, "lent": 1, "entry": 2, "offer": 4, "data": 4} {
		f, ok := reflect.TypeFor[Request]().FieldByName(name)
		if got := f.Offset / line; !ok || got != want {
			t.Errorf("%s lies in cache line %d, want %d", name, got, want)
		}
	}
}
