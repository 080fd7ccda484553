package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every command of xperf in the documentation is one that it takes.
func TestParse_documentation(t *testing.T) {
	cores := regexp.MustCompile(`--cores [0-9,]+`) // those of another machine
	for _, name := range []string{"PERFORMANCE.md", "TESTING.md", "wireshark/README.md", "../README.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range strings.Lines(string(text)) {
			_, command, isCall := strings.Cut(line, "bin/xperf ")
			if !isCall || !strings.HasPrefix(line, "    ") {
				continue
			}
			command, _, _ = strings.Cut(command, "  ") // behind it stands what it does
			command = cores.ReplaceAllString(command, "--cores "+anyCore(t))
			found++
			if _, err := parse(words(command)); err != nil {
				t.Errorf("%s: %s: %v", name, strings.TrimSpace(line), err)
			}
		}
		if name == "PERFORMANCE.md" && found < 20 {
			t.Errorf("%s has %d commands of xperf: are they written in another way now?", name, found)
		}
	}
}

// words splits a command as a shell does whose only quotes are double ones.
func words(command string) (args []string) {
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			args = append(args, part)
			continue
		}
		args = append(args, strings.Fields(part)...)
	}
	return args
}
