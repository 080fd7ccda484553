package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseHostfile(t *testing.T) {
	for text, want := range map[string][]Host{
		"a\n":                              {{"a", 0, 0}},
		"# all of them\n\na:2 # old\nb\n":  {{"a", 2, 0}, {"b", 0, 0}},
		"a slots=4\r\n\tb  slots=1":        {{"a", 4, 0}, {"b", 1, 0}},
		"a\nb:3\na\nb slots=2\n# a\n  a:2": {{"a", 4, 0}, {"b", 5, 0}},
		"a slots=2 max_slots=4":            {{"a", 2, 4}},
		"a max-slots=3\nb slots=1\na":      {{"a", 2, 4}, {"b", 1, 0}},
		"n[09-10,2]:8\nn2":                 {{"n09", 8, 0}, {"n10", 8, 0}, {"n2", 9, 0}},
		"r[1-2]n[1,2] slots=2":             {{"r1n1", 2, 0}, {"r1n2", 2, 0}, {"r2n1", 2, 0}, {"r2n2", 2, 0}},
	} {
		if got, err := ParseHostfile(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseHostfile_refuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "no host in it",
		"# nothing\n\n":             "no host in it",
		"a\nb:x\n":                  "line 2",
		"a slots=0":                 "slots=0",
		"a slots=x":                 "slots=x",
		"a 4":                       "\"4\": want",
		"a:2 slots=2":               "want a number",
		"a slots=4 max_slots=2":     "less than",
		"a max_slots=0":             "max_slots=0",
		"a max_slots=1 max_slots=2": "max_slots=2",
		"a rack=2":                  "rack=2",
		"n[1-":                      "not closed",
		"n[]":                       "want numbers",
		"n[2-1]":                    "want numbers",
		"n[1-x]":                    "want numbers",
		"n]1[":                      "not closed",
		"n[0-70000]":                "want numbers",
		"n[0-999][0-999]":           "more than 65536 hosts",
		"a,b":                       "one host per line",
		"-oProxyCommand=x":          "line 1",
		"a:65536\na":                "more than",
	} {
		if got, err := ParseHostfile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseHostfile(f *testing.F) {
	f.Add("# all\na:2\nb slots=3\n")
	f.Add("a\nb\na")
	f.Add("n[1-3,07]m[2] slots=1 max_slots=2\n")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := ParseHostfile(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, h := range hosts {
			if h.Name == "" || h.Name[0] == '-' || strings.ContainsAny(h.Name, ":[]") || h.Slots < 0 || h.Slots > MaxRanks || h.Max < 0 || h.Max > MaxRanks || seen[h.Name] {
				t.Errorf("%q: %+v", text, hosts)
			}
			seen[h.Name] = true
		}
	})
}
