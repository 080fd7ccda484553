package launch

import (
	"slices"
	"strconv"
	"testing"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Ranks learn how many of them share the machine: in a testbed all.
func TestPlan_neighbors(t *testing.T) {
	p, err := makePlan(Config{Program: "a", Testbed: 2, Ranks: 6, Fabric: "udp"}, machine{root: true, cpus: 4})
	if err != nil || p.neighbors(p.agents[0]) != 6 {
		t.Errorf("in a testbed: %v, %v, want 6", p.neighbors(p.agents[0]), err)
	}
	p, err = makePlan(Config{Program: "a", Hosts: hosts("a,b"), Ranks: 6}, machine{})
	if err != nil || p.neighbors(p.agents[0]) != 3 {
		t.Errorf("on hosts: %v, %v, want 3", p.neighbors(p.agents[0]), err)
	}
	env := (&startOrder{Apps: []App{{}}, Neighbors: 6}).environment(rankPlan{})
	if cpus, err := AllowedCPUs(); err != nil || !slices.Contains(env, config.EnvMachine+"=6/"+strconv.Itoa(len(cpus))) {
		t.Errorf("the environment does not say %d ranks on %d processors: %q, %v", 6, len(cpus), env, err)
	}
}
