package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/launch"
)

// Test suites of MPI libraries say how long a job may take, and call the launcher mpiexec.
func TestHarness(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	for _, c := range []struct {
		name, timeout string
		args          []string
		want          time.Duration
		quiet         bool
	}{
		{"xrun", "", nil, 0, false}, {"/opt/bin/mpiexec", "", nil, 0, true},
		{"xrun", "90", nil, 90 * time.Second, true}, {"mpiexec", "90", []string{"--timeout", "5"}, 5 * time.Second, true},
	} {
		os.Args = []string{c.name}
		t.Setenv(envTimeout, c.timeout)
		got, _, err := parse(append(c.args, "-n", "1", "true"))
		if err != nil || got.Timeout != c.want || (got.Notice == nil) != c.quiet {
			t.Errorf("%s with %s=%s, %v: timeout %v, quiet %t, %v", c.name, envTimeout, c.timeout, c.args, got.Timeout, got.Notice == nil, err)
		}
	}
	t.Setenv(envTimeout, "soon")
	var ce *launch.ConfigError
	if _, _, err := parse([]string{"-n", "1", "true"}); !errors.As(err, &ce) {
		t.Errorf("a bad time: %v", err)
	}
}
