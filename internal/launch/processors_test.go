package launch

import (
	"slices"
	"strconv"
	"testing"

	"github.com/xwarp/xwarp/internal/boot"
)

// A second queue is for who asks for it, where there is a processor for it.
func TestMakePlan_bulkQueue(t *testing.T) {
	ask := []string{boot.EnvBulkQueue + "=1"}
	for _, c := range []struct {
		name   string
		c      Config
		cpus   int
		queues int
		bulk   int
	}{
		{"asked for", Config{Testbed: 2, Env: ask}, 4, bulkQueues, bulkQueue},
		{"not asked for", Config{Testbed: 2}, 4, 0, 0},
		{"refused", Config{Testbed: 2, Env: append(ask, boot.EnvBulkQueue+"=0")}, 4, 0, 0},
		{"no processor for it", Config{Testbed: 2, Env: ask}, 3, 0, 0},
		{"ranks that share a queue", Config{Testbed: 2, Ranks: 4, Queues: QueuesShared, Env: ask}, 8, 0, 0},
		{"kernel UDP", Config{Testbed: 2, Fabric: "udp", Env: ask}, 4, 0, 0},
		{"no steering there", Config{Testbed: 2, Fabric: "xdp:driver", Env: ask}, 4, 0, 0},
		{"ranks wander", Config{Testbed: 2, Bind: BindNone, Env: ask}, 4, 0, 0},
	} {
		c.c.Program = "a"
		p, err := makePlan(c.c, machine{root: true, cpus: c.cpus})
		if err != nil || p.testbed.Queues != c.queues || p.bulk() != c.bulk {
			t.Errorf("%s: %d queues, bulk %d, %v; want %d, %d", c.name, p.testbed.Queues, p.bulk(), err, c.queues, c.bulk)
		}
	}
	p, err := makePlan(Config{Program: "a", Env: ask}, machine{})
	if err != nil || p.bulk() != -1 {
		t.Errorf("devices that are there: bulk %d, %v, want -1", p.bulk(), err)
	}
}

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
	env := (&startOrder{Apps: []App{{}}, Neighbors: 6, Bulk: -1}).environment(rankPlan{})
	if cpus, err := allowedCPUs(); err != nil || !slices.Contains(env, boot.EnvMachine+"=6/"+strconv.Itoa(len(cpus))) {
		t.Errorf("the environment does not say %d ranks on %d processors: %q, %v", 6, len(cpus), env, err)
	}
}
