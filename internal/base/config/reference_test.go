package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const root = "../../.."

var write = flag.Bool("write", false, "write docs/CONFIG.md")

// TestReference compares docs/CONFIG.md with the table. With -write, as go generate calls it,
// it writes the page.
func TestReference(t *testing.T) {
	const path = root + "/docs/CONFIG.md"
	want := reference()
	if *write {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // all may read it
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("docs/CONFIG.md is not what internal/base/config says (%v): go generate ./internal/base/config", err)
	}
}

// reference returns docs/CONFIG.md.
func reference() string {
	var b strings.Builder
	b.WriteString(`<!-- Made by go generate ./internal/base/config; do not edit. -->
# Configuration

The variables of the environment, and the flags that mean the same. ` + "`xrun -x NAME=VALUE`" + ` sets a
variable for all ranks, on all hosts. A value that makes no sense is an error that says what
is wanted; so is a name that is nearly one of these. What a program says in ` + "`mpi.Config`" + ` counts
more. Sizes are bytes, or 1024 (` + "`k`" + `), its square (` + "`m`" + `) or its cube (` + "`g`" + `) of them. All
variables are read when MPI is initialized or a launcher starts, and not again.
[RUNNING.md](RUNNING.md) says how to start programs, [PERFORMANCE.md](PERFORMANCE.md) what the
defaults come from.
`)
	for _, g := range Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| variable | flag | values | default | what it sets | read by |\n|---|---|---|---|---|---|\n", g.Title)
		for _, v := range g.Vars {
			flags := ""
			if v.Flag != "" {
				flags = v.Of + ": `" + v.Flag + "`"
			}
			what := v.Doc
			if v.Switch() && v.set != nil {
				what = fmt.Sprintf("`%s`: %s", v.Other(), what)
			}
			if len(v.words) > 0 && v.words.explained() != v.words.String() {
				what += ": " + v.words.explained()
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", v.Name, flags, v.Want, v.Default, what, v.By)
		}
	}
	return b.String()
}
