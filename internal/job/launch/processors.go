package launch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lookup returns a variable of the ranks' environment.
func (c *Config) lookup(name string) (string, bool) { return lookupIn(c.Env, name) }

// lookupIn returns a variable that is set in env, or else in this process.
func lookupIn(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if n, value, _ := strings.Cut(env[i], "="); n == name {
			return value, true
		}
	}
	return os.LookupEnv(name)
}

// AllowedCPUs returns the processors that this process may run on.
func AllowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("allowed processors: %w", err)
	}
	var allowed []int
	for cpu := range maxCPUs {
		if set.IsSet(cpu) {
			allowed = append(allowed, cpu)
		}
	}
	return allowed, nil
}

// confine lets this thread, and the ranks that it starts, use only the processors that
// the job may.
func (s *startOrder) confine() error {
	if len(s.Processors) == 0 {
		return nil
	}
	allowed, err := AllowedCPUs()
	if err != nil {
		return err
	}
	if err := within(s.Processors, allowed); err != nil {
		return fmt.Errorf("--cpu-set: %w", err)
	}
	if err := useOnly(s.Processors); err != nil {
		return fmt.Errorf("--cpu-set: %w", err)
	}
	return nil
}

// useOnly ties this thread, and what it will start, to processors.
func useOnly(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return unix.SchedSetaffinity(0, &set)
}

// neighbors returns how many ranks share the machine of an agent: in a testbed
// all of them.
func (p *plan) neighbors(a agentPlan) int {
	if p.remote {
		return len(a.ranks)
	}
	return p.size
}
