package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseHostfile(t *testing.T) {
	for text, want := range map[string][]Host{
		"a\n":                              {{"a", 0}},
		"# all of them\n\na:2 # old\nb\n":  {{"a", 2}, {"b", 0}},
		"a slots=4\r\n\tb  slots=1":        {{"a", 4}, {"b", 1}},
		"a\nb:3\na\nb slots=2\n# a\n  a:2": {{"a", 4}, {"b", 5}},
	} {
		if got, err := ParseHostfile(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseHostfile_refuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "no host in it",
		"# nothing\n\n":         "no host in it",
		"a\nb:x\n":              "line 2",
		"a slots=0":             "slots=0",
		"a slots=x":             "slots=x",
		"a 4":                   "\"4\": want",
		"a:2 slots=2":           "want a number",
		"a slots=2 max_slots=4": "max_slots",
		"a,b":                   "one host per line",
		"-oProxyCommand=x":      "line 1",
		"a:65536\na":            "more than",
	} {
		if got, err := ParseHostfile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseHostfile(f *testing.F) {
	f.Add("# all\na:2\nb slots=3\n")
	f.Add("a\nb\na")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := ParseHostfile(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, h := range hosts {
			if h.Name == "" || h.Name[0] == '-' || h.Slots < 0 || h.Slots > MaxRanks || seen[h.Name] {
				t.Errorf("%q: %+v", text, hosts)
			}
			seen[h.Name] = true
		}
	})
}
