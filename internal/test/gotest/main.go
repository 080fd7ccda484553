// Command gotest runs go test and says how far it is, which go test does not: that
// shows nothing of a package before all before it have ended.
//
//	go run ./internal/test/gotest [FLAGS OF GO TEST] ./...
//
// Failures are shown in full. In the end comes what was left out, and why.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// tellEvery is how often it is said what runs when no package ends.
const tellEvery = 30 * time.Second

func main() {
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run runs go test with these arguments and returns its exit status.
func run(args []string, out io.Writer) (int, error) {
	list := []string{"list"}
	for _, a := range args {
		if strings.HasPrefix(a, "./") {
			list = append(list, a)
		}
	}
	if len(list) == 1 {
		return 1, errors.New("no package: name folders, such as ./... for all")
	}
	packages, err := exec.Command("go", list...).Output()
	if err != nil {
		return 1, fmt.Errorf("go %s: %w", strings.Join(list, " "), err)
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(stdout); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	s := newStory(out, strings.Count(string(packages), "\n"))
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for open := true; open; {
		select {
		case line, ok := <-lines:
			if open = ok; ok {
				s.hear(line)
			}
		case <-tick.C:
			s.tell()
		}
	}
	s.end()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// event is a line of go test -json; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

func parse(line string) (event, bool) {
	var e event
	err := json.Unmarshal([]byte(line), &e)
	return e, err == nil && e.Action != ""
}
