package main

import (
	"os"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestGreet(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		if err := mpi.Run(n, func(p *mpi.Proc) error { return greet(p.World()) }); err != nil {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// The README shows this program; it must not show another one.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(code)+"```\n") {
		t.Error("README.md does not show examples/hello/main.go as it is: copy it there")
	}
}
