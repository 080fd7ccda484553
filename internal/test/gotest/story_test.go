package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// told returns what is told of lines of go test -json over n packages.
func told(n int, lines ...string) string {
	var out strings.Builder
	s := newStory(&out, n)
	var now mono.Time
	s.start, s.now = 0, func() mono.Time { return now }
	for _, l := range lines {
		if l == "tick" {
			now += mono.Time(30 * time.Second)
			s.tell()
			continue
		}
		s.hear(l + "\n")
	}
	s.end()
	return out.String()
}

func TestStory(t *testing.T) {
	const a = `{"Package":"x/a","Action":`
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"passes", []string{
			a + `"start"}`, a + `"run","Test":"TestA"}`, a + `"output","Test":"TestA","Output":"=== RUN   TestA\n"}`,
			a + `"output","Test":"TestA","Output":"    a_test.go:3: chatter\n"}`,
			a + `"pass","Test":"TestA"}`, a + `"output","Output":"PASS\n"}`, a + `"pass","Elapsed":1.5}`,
		}, "ok  \tx/a\t1.500s\t[1 of 2 packages, 0s]\n"},
		{"is as it was", []string{a + `"start"}`, a + `"output","Output":"ok  \tx/a\t(cached)\n"}`, a + `"pass"}`}, "ok  \tx/a\t(cached)\t[1 of 2 packages, 0s]\n"},
		{"has no tests", []string{a + `"start"}`, a + `"output","Output":"?   \tx/a\t[no test files]\n"}`, a + `"skip"}`}, "?   \tx/a\t[no test files]\t[1 of 2 packages, 0s]\n"},
		{"fails", []string{
			a + `"run","Test":"TestA"}`, a + `"output","Test":"TestA/x","Output":"    a_test.go:3: wrong\n"}`,
			a + `"output","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}`, a + `"fail","Test":"TestA/x"}`, a + `"fail","Test":"TestA"}`,
			a + `"output","Test":"TestB","Output":"    a_test.go:9: right\n"}`, a + `"pass","Test":"TestB"}`,
			a + `"output","Output":"FAIL\n"}`, a + `"output","Output":"exit status 1\n"}`, a + `"output","Output":"FAIL\tx/a\t0.1s\n"}`, a + `"fail","Elapsed":0.1}`,
		}, "    a_test.go:3: wrong\n--- FAIL: TestA (0.00s)\nexit status 1\nFAIL\tx/a\t0.100s\t[1 of 2 packages, 0s]\nFAIL: x/a TestA/x, TestA [1 of 2 packages, 0s]\n"},
		{"does not build", []string{
			`{"ImportPath":"x/a","Action":"build-output","Output":"a.go:1: no\n"}`, `{"ImportPath":"x/a","Action":"build-fail"}`,
			a + `"start"}`, a + `"output","Output":"FAIL\tx/a [build failed]\n"}`, a + `"fail","FailedBuild":"x/a"}`,
		}, "a.go:1: no\nFAIL\tx/a\t[build failed]\t[1 of 2 packages, 0s]\nFAIL: x/a [1 of 2 packages, 0s]\n"},
		{"leaves out", []string{
			a + `"run","Test":"TestA"}`, a + `"output","Test":"TestA","Output":"    a_test.go:3: needs luck: find some\n"}`,
			a + `"output","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`, a + `"skip","Test":"TestA"}`,
			a + `"output","Test":"TestB","Output":"    b_test.go:4: needs luck: find some\n"}`, a + `"skip","Test":"TestB"}`, a + `"pass","Elapsed":1}`,
		}, "ok  \tx/a\t1.000s\t[1 of 2 packages, 0s]\nleft out: x/a.TestA: needs luck: find some (and 1 more)\n"},
		{"takes long", []string{
			"tick", a + `"start"}`, a + `"run","Test":"TestA"}`, "tick", a + `"pass","Elapsed":40}`, "tick", "tick",
		}, "...\t[0 of 2 packages, 30s] building\n...\t[0 of 2 packages, 1m0s] running: a TestA\nok  \tx/a\t40.000s\t[1 of 2 packages, 1m0s]\n...\t[1 of 2 packages, 2m0s] building\n"},
		{"stands still", []string{
			a + `"run","Test":"TestA"}`, a + `"output","Test":"TestA","Output":"panic: test timed out after 1s\n"}`, a + `"output","Test":"TestA","Output":"\trunning tests:\n\t\tTestA (1s)\n\n"}`,
			a + `"output","Test":"TestA","Output":"goroutine 7 [IO wait]:\nserve()\n\tlistener.go:9\n\n"}`,
			a + `"output","Test":"TestA","Output":"goroutine 8 [select]:\nTestA()\n\ta_test.go:9\n\n"}`,
			a + `"output","Test":"TestA","Output":"goroutine 9 [IO wait]:\nserve()\n\tlistener.go:9\n"}`, a + `"fail","Test":"TestA"}`, a + `"fail","Elapsed":1}`,
		}, "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n\n" +
			"goroutine 7 [IO wait]:\nserve()\n\tlistener.go:9\n\ngoroutine 8 [select]:\nTestA()\n\ta_test.go:9\n\ngoroutine 9 [IO wait]:\nserve()\n\tlistener.go:9\n" +
			"FAIL\tx/a\t1.000s\t[1 of 2 packages, 0s]\n" +
			"panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n\ngoroutine 8 [select]:\nTestA()\n\ta_test.go:9\n\n" +
			"FAIL: x/a panic: test timed out after 1s, TestA [1 of 2 packages, 0s]\n"},
		{"has a data race", []string{
			a + `"output","Test":"TestA","Output":"==================\nWARNING: DATA RACE\nRead at 0x1 by goroutine 7:\n  a()\n\nPrevious write at 0x1 by goroutine 8:\n  b()\n\n"}`,
			a + `"output","Test":"TestA","Output":"Goroutine 7 (running) created at:\n  c()\n==================\n"}`, a + `"fail","Test":"TestA"}`, a + `"fail","Elapsed":1}`,
		}, "==================\nWARNING: DATA RACE\nRead at 0x1 by goroutine 7:\n  a()\n\nPrevious write at 0x1 by goroutine 8:\n  b()\n\n" +
			"Goroutine 7 (running) created at:\n  c()\n==================\nFAIL\tx/a\t1.000s\t[1 of 2 packages, 0s]\n" +
			"WARNING: DATA RACE\nRead at 0x1 by goroutine 7:\n  a()\n\nPrevious write at 0x1 by goroutine 8:\n  b()\n\nFAIL: x/a TestA [1 of 2 packages, 0s]\n"},
		{"is killed", []string{
			a + `"run","Test":"TestA"}`, a + `"output","Test":"TestA","Output":"fatal error\n"}`, "go: signal: killed",
		}, "go: signal: killed\nfatal error\n"},
	} {
		if got := told(2, c.lines...); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
}

// As it is started by make: the exit status is that of go test.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module x\n",
		"good/g_test.go":   "package good\nimport \"testing\"\nfunc TestG(t *testing.T) { t.Log(\"chatter\") }\n",
		"bad/b_test.go":    "package bad\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Error(\"it is wrong\") }\n",
		"panics/b_test.go": "package panics\nimport \"testing\"\nfunc TestP(t *testing.T) { panic(\"out of luck\") }\n",
		"broken/b_test.go": "package broken\nvar x int = \"\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for pattern, want := range map[string][]string{
		"./good":   {"ok  \tx/good\t", "[1 of 1 packages, "},
		"./bad":    {"it is wrong", "--- FAIL: TestB", "FAIL\tx/bad\t", "FAIL: x/bad TestB ["},
		"./panics": {"panic: out of luck", "FAIL\tx/panics\t", "FAIL: x/panics panic: out of luck", ", TestP ["},
		"./broken": {"cannot use", "FAIL\tx/broken\t[build failed]"},
	} {
		var out strings.Builder
		code, err := run([]string{pattern}, &out)
		if err != nil || (code == 0) != (pattern == "./good") || strings.Contains(out.String(), "chatter") {
			t.Errorf("%s: status %d, %v\n%s", pattern, code, err, out.String())
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s", pattern, w, out.String())
			}
		}
	}
}
