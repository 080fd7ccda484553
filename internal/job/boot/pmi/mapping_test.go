package pmi

import (
	"slices"
	"testing"
)

func TestParseMapping(t *testing.T) {
	for s, want := range map[string][]int{
		"(vector,(0,1,1))":         {0, 0, 0, 0, 0, 0, 0},
		"(vector,(0,1,16))":        {0, 0, 0, 0, 0, 0, 0},
		"(vector,(0,7,1))":         {0, 1, 2, 3, 4, 5, 6},
		"(vector,(0,2,1))":         {0, 1, 0, 1, 0, 1, 0},
		"(vector,(0,2,3),(2,1,8))": {0, 0, 0, 1, 1, 1, 2},
		"(vector,(4,1,2),(0,2,1))": {4, 4, 0, 1, 4, 4, 0},
	} {
		if got, err := parseMapping(s, 7); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", s, got, err, want)
		}
	}
}

func TestParseMapping_refuses(t *testing.T) {
	for _, s := range []string{
		"", "unknown", "(vector)", "(vector,)", "(vector,())", "(vector,(0,1))", "(vector,(0,0,1))", "(vector,(0,1,0))",
		"(vector,(-1,1,1))", "(vector,(0,1,1)", "(vector,(0,1,1)) ", "(vector,(0,99999999999999999999,1))", "(vector,(0,1,1)(1,1,1))",
	} {
		if got, err := parseMapping(s, 3); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestFormatMapping(t *testing.T) {
	for want, hosts := range map[string][]int{
		"(vector,(0,1,4))":         {0, 0, 0, 0},
		"(vector,(0,3,2))":         {0, 0, 1, 1, 2, 2},
		"(vector,(0,2,1))":         {0, 1, 0, 1, 0, 1},
		"(vector,(0,2,2),(2,1,3))": {0, 0, 1, 1, 2, 2, 2},
		"(vector,(0,2,1),(0,1,1))": {0, 1, 0},
		"(vector,(2,1,1),(0,1,2))": {2, 0, 0, 2},
	} {
		if got := FormatMapping(hosts); got != want {
			t.Errorf("%v: %s, want %s", hosts, got, want)
		}
	}
}

func FuzzMapping(f *testing.F) {
	f.Add("(vector,(0,2,3),(2,1,8))", 20)
	f.Add("(vector,(4,1,2),(0,2,1))", 3)
	f.Fuzz(func(t *testing.T, s string, size int) {
		if size < 1 || size > 1<<12 {
			return
		}
		hosts, err := parseMapping(s, size)
		if err != nil {
			return
		}
		if again, err := parseMapping(FormatMapping(hosts), size); err != nil || !slices.Equal(again, hosts) {
			t.Errorf("%q: %v became %s", s, hosts, FormatMapping(hosts))
		}
	})
}
