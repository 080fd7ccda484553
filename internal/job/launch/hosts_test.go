package launch

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestParseHostfile(t *testing.T) {
	for text, want := range map[string][]Host{
		"a\n":                              {{"a", 0, 0, nil}},
		"# all of them\n\na:2 # old\nb\n":  {{"a", 2, 0, nil}, {"b", 0, 0, nil}},
		"a slots=4\r\n\tb  slots=1":        {{"a", 4, 0, nil}, {"b", 1, 0, nil}},
		"a\nb:3\na\nb slots=2\n# a\n  a:2": {{"a", 4, 0, nil}, {"b", 5, 0, nil}},
		"a slots=2 max_slots=4":            {{"a", 2, 4, nil}},
		"a max-slots=3\nb slots=1\na":      {{"a", 2, 4, nil}, {"b", 1, 0, nil}},
		"n[09-10,2]:8\nn2":                 {{"n09", 8, 0, nil}, {"n10", 8, 0, nil}, {"n2", 9, 0, nil}},
		"r[1-2]n[1,2] slots=2":             {{"r1n1", 2, 0, nil}, {"r1n2", 2, 0, nil}, {"r2n1", 2, 0, nil}, {"r2n2", 2, 0, nil}},
		"fd00::1\n[fd00::0:2]:3 # as an address is written most\nfd00::1": {{"fd00::1", 2, 0, nil}, {"fd00::2", 3, 0, nil}},
		"[fd00::1] slots=2 max_slots=4":                                   {{"fd00::1", 2, 4, nil}},
		"a:2 binding=user:0,1\nb binding=core:2 user=alice":               {{"a", 2, 0, &Binding{To: BindUser, Places: [][]int{{0}, {1}}}}, {"alice@b", 0, 0, &Binding{To: BindCore, Cores: 2}}},
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
		"a binding=board":           "cannot bind to \"board\"",
		"a binding=rr binding=rr":   "binding=rr\": want",
		"a user=":                   "user=",
		"a user=-oProxyCommand=x":   "user=-oProxyCommand",
		"[fd00::1]2":                "want an IPv6 address as in fd00::1 or",
		"[fd00::1]:0":               "no number of ranks",
		"[fd00:1]:2":                "want an IPv6 address",
		"fd00:1:2":                  "neither an IPv6 address nor a name",
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
			if h.Name == "" || h.Name[0] == '-' || !isAddress(h.Name) && strings.ContainsAny(h.Name, ":[]") || h.Slots < 0 || h.Slots > MaxRanks || h.Max < 0 || h.Max > MaxRanks || seen[h.Name] {
				t.Errorf("%q: %+v", text, hosts)
			}
			seen[h.Name] = true
		}
	})
}

// isAddress reports whether a host has an IPv6 address for a name, or its login.
func isAddress(name string) bool {
	_, err := netip.ParseAddr(name[strings.LastIndexByte(name, '@')+1:])
	return err == nil
}
