package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRun_commandLine(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		out  string // in what is printed
	}{
		{"--help", exitOK, "usage: xcheck"},
		{"--seeds 3 -j 2", exitOK, "3 seeds, "},
		{"--seeds 2 --from 7 --json", exitOK, `"seeds":2,"wrong":0`},
		{"--seed 5", exitOK, "seed 5: "},
		{"--seed 5 --trace", exitOK, "deliver"},
		{"--seed 5 --seeds 3", exitUsage, "--seed is about one seed"},
		{"--trace", exitUsage, "--trace needs --seed"},
		{"-j 0", exitUsage, "want 1 or more"},
		{"5", exitUsage, `"5" is no option`},
		{"--bad", exitUsage, "not defined"},
	} {
		var out strings.Builder
		if code := run(strings.Fields(c.args), &out, &out); code != c.code || !strings.Contains(out.String(), c.out) {
			t.Errorf("xcheck %s: exit code %d, want %d, and %q in %.300s", c.args, code, c.code, c.out, out.String())
		}
	}
}

// A seed does the same each time.
func TestRun_repeats(t *testing.T) {
	one := func() (f finding) {
		var out, errs strings.Builder
		if code := run([]string{"--seed", "11", "--json"}, &out, &errs); code != exitOK {
			t.Fatal(errs.String())
		}
		if err := json.Unmarshal([]byte(out.String()), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	if a, b := one(), one(); a != b || a.Requests == 0 || a.Hash == "" {
		t.Errorf("%+v, then %+v", a, b)
	}
}
