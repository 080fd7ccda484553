package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		var out strings.Builder
		err := mpi.Run(n, func(p *mpi.Proc) error {
			return run(p.World(), options{megabytes: 1, top: 5}, &out)
		})
		if err != nil || strings.Count(out.String(), "\n") != 6 {
			t.Errorf("%d ranks: %v, %q", n, err, out.String())
		}
	}
}

func TestRun_file(t *testing.T) {
	name := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(name, []byte("The cat, the dog;\nTHE end. \xff Ähre ähre"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 4, 9} { // more ranks than there are words
		var out strings.Builder
		err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), options{file: name, top: 2}, &out) })
		want := "wordcount: 8 words, 5 different ones\n        3 the\n        2 ähre\n"
		if err != nil || out.String() != want {
			t.Errorf("%d ranks: %v\n%s, want\n%s", n, err, out.String(), want)
		}
	}
}

func TestJudge_noticesWrongAnswers(t *testing.T) {
	text := []byte("a b b c c c")
	if why := judge(text, []int64{3, 6}, []entry{{"c", 3}}, 1); why != "" {
		t.Errorf("the right answer: %s", why)
	}
	for name, wrong := range map[string]string{
		"totals": judge(text, []int64{3, 5}, []entry{{"c", 3}}, 1),
		"count":  judge(text, []int64{3, 6}, []entry{{"c", 2}}, 1),
		"short":  judge(text, []int64{3, 6}, nil, 1),
	} {
		if wrong == "" {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestParse_refuses(t *testing.T) {
	for _, b := range []string{"\x01", "\x01\x05ab", "\xff\xff"} {
		if _, err := parse([]byte(b)); err == nil {
			t.Errorf("%q was accepted", b)
		}
	}
}
