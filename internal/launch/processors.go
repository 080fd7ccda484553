package launch

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/testbed"
)

// The queue that large data arrives on, of the devices of a testbed, and how
// many a device must have for it: see xdp.OpenPair.
const (
	bulkQueue  = 1
	bulkQueues = 3
)

// wantBulk says whether the devices of the testbed get a second queue for large
// data. A veth is served on the sender's processor, so that sending costs twice.
// The receive work of a second queue goes to a processor that no rank has, if
// there is one for each host. Where others use that processor too it takes more
// than it gives (docs/PERFORMANCE.md), so somebody has to ask for it.
func (p *plan) wantBulk(c Config, m machine) bool {
	asked, _ := c.lookup(boot.EnvBulkQueue)
	return p.steered == nil && asked != "" && asked != "0" && isXDP(p.fabric) && p.fabric != "xdp:driver" && p.fabric != "xdp:asavie" &&
		p.bind == BindCore && c.Cores <= 1 && len(p.agents) == p.size && 2*p.size <= m.cpus
}

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

// receiveElsewhere makes the processors behind those of the ranks do the receive
// work of the second queues.
func (p *plan) receiveElsewhere(tb *testbed.Testbed, order MapBy) error {
	allowed, err := allowedCPUs()
	if err != nil {
		return err
	}
	places, err := Binding{To: BindCore}.places(cores(os.DirFS("/sys/devices/system"), allowed), order)
	if err != nil {
		return err
	}
	for i, h := range tb.Hosts {
		if err := h.ReceiveOn(bulkQueue, places[(p.size+i)%len(places)]...); err != nil {
			return err
		}
	}
	return nil
}

// allowedCPUs returns the processors that this process may run on.
func allowedCPUs() ([]int, error) {
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
	allowed, err := allowedCPUs()
	if err != nil {
		return err
	}
	if err := within(s.Processors, allowed); err != nil {
		return fmt.Errorf("--cpu-set: %w", err)
	}
	var set unix.CPUSet
	for _, cpu := range s.Processors {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("--cpu-set: %w", err)
	}
	return nil
}

// bulk returns the queue for large data, 0 when the testbed has none, or -1 when
// the devices are not ours.
func (p *plan) bulk() int {
	switch {
	case p.testbed == nil:
		return -1
	case p.steered != nil || p.testbed.Queues != bulkQueues:
		return 0
	}
	return bulkQueue
}

// neighbors returns how many ranks share the machine of an agent: in a testbed
// all of them.
func (p *plan) neighbors(a agentPlan) int {
	if p.remote {
		return len(a.ranks)
	}
	return p.size
}
