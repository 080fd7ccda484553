package mpi

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SplitType is what ranks have in common in SplitType.
type SplitType int

// Kinds of SplitType.
const (
	// TypeShared is memory: ranks of one host (MPI_COMM_TYPE_SHARED). Ranks of a
	// testbed with a network namespace each have none in common, though their host is one.
	TypeShared SplitType = iota
	// TypeHWGuided is the piece of hardware that the key mpi_hw_resource_type
	// names (MPI_COMM_TYPE_HW_GUIDED): "mpi_shared_memory" or "host", and
	// "numanode". Ranks that are bound to no single one get nil.
	TypeHWGuided
	// TypeHWUnguided is the next smaller piece of hardware (MPI_COMM_TYPE_HW_UNGUIDED):
	// the host if there are several, else the NUMA node. Ranks get nil when no piece
	// has fewer ranks than the communicator.
	TypeHWUnguided
)

// hwResource is the key that guides TypeHWGuided.
const hwResource = "mpi_hw_resource_type"

// SplitType makes a communicator of the ranks that have something in common,
// ordered by key (MPI_Comm_split_type). Kind Undefined gets nil.
func (c *Comm) SplitType(kind SplitType, key int) (*Comm, error) {
	return c.SplitTypeWithInfo(kind, key, nil)
}

// SplitTypeWithInfo is SplitType with an info that guides it, and that the ranks of
// a group must agree on.
func (c *Comm) SplitTypeWithInfo(kind SplitType, key int, info *Info) (*Comm, error) {
	const op = "Comm.SplitType"
	if err := c.live(op); err != nil {
		return nil, c.report(err)
	}
	if c.Inter() {
		return nil, c.report(fail(ErrComm, op, "it is not for intercommunicators: Merge first"))
	}
	host, _ := c.p.job.Host()
	switch kind {
	case TypeShared:
		return c.split(op, c.p.sharing(host), key)
	case Undefined:
		return c.split(op, Undefined, key)
	case TypeHWUnguided:
		return c.splitSmaller(op, key, host)
	case TypeHWGuided:
		return c.split(op, guided(info, host, c.p.sharing(host)), key)
	}
	return nil, c.report(fail(ErrArg, op, "there is no kind %d; there is TypeShared, TypeHWGuided and TypeHWUnguided", kind))
}

// hwResources are the pieces of hardware that a process may be bound to, and how
// those of all hosts are told apart: Undefined for a process that is bound to none.
var hwResources = [...]struct {
	name  string
	color func(host, sharing int) int
}{
	{"mpi_shared_memory", func(_, sharing int) int { return sharing }},
	{"host", func(host, _ int) int { return host }},
	{"numanode", func(host, _ int) int { return numaColor(host) }},
}

// sharing returns what ranks of this host have in common that can have memory in common: the
// lowest of them in World. Where shared memory is turned off they are those of the host.
func (p *Proc) sharing(host int) (lowest int) {
	lowest = p.rank
	off := p.job.Size() == 1 || !p.ep.Shared()
	p.ep.Enter()
	defer p.ep.Leave()
	for r := p.rank - 1; r >= 0; r-- {
		if off && p.hosts[r] == host || p.ep.Inside().Segments().With(int32(r)) {
			lowest = r
		}
	}
	return lowest
}

// guided returns the color of the piece of hardware that info names.
func guided(info *Info, host, sharing int) int {
	resource, _ := info.Get(hwResource)
	for _, kind := range hwResources {
		if kind.name == resource {
			return kind.color(host, sharing)
		}
	}
	return Undefined
}

// splitSmaller splits by hosts, or by NUMA nodes if that makes nothing smaller. It
// meets the other ranks as split does, for some of them may want no communicator, and
// do not know what the others want.
func (c *Comm) splitSmaller(op string, key, host int) (*Comm, error) {
	t := c.p.watch.begin(op, c, Undefined, Undefined, 0)
	all, err := c.gatherInts(op, int64(host*pieces+1+max(numaColor(0), noNode)), int64(key))
	if err != nil {
		t.end(err)
		return nil, c.report(err)
	}
	smaller(all)
	n, err := c.parted(op, all)
	t.end(err)
	return n, err
}

// A piece of hardware of all hosts is host*pieces + 1 + NUMA node, which may be noNode.
const (
	noNode = -1
	pieces = nodesMax + 1
)

// smaller makes the colors of all ranks, which name pieces of hardware and are followed
// by keys each, those of their hosts if there are several, else those of their NUMA
// nodes, or Undefined when all are on the same.
func smaller(all []int64) {
	hosts, nodes := map[int64]bool{}, map[int64]bool{}
	for i := 0; i < len(all); i += 2 {
		if all[i] != Undefined {
			hosts[all[i]/pieces], nodes[all[i]] = true, true
		}
	}
	for i := 0; i < len(all); i += 2 {
		switch {
		case all[i] == Undefined:
		case len(hosts) > 1:
			all[i] /= pieces
		case len(nodes) == 1 || all[i]%pieces == 0:
			all[i] = Undefined
		}
	}
}

// nodesMax is how many NUMA nodes a host has at most.
const nodesMax = 1 << 10

// numaColor tells the NUMA nodes of all hosts apart. It is Undefined for a process
// that may run on several of them.
func numaColor(host int) int {
	if node, ok := numaNode("/"); ok {
		return host*nodesMax + node
	}
	return Undefined
}

// numaNode returns the NUMA node that this process is bound to, as the kernel tells
// under root: in proc where it may run, in sys which processors a node has.
func numaNode(root string) (node int, ok bool) {
	status, err := os.ReadFile(filepath.Join(root, "proc/self/status"))
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	allowed, _, _ := strings.Cut(rest, "\n")
	mine := cpuList(allowed)
	dirs, err := filepath.Glob(filepath.Join(root, "sys/devices/system/node/node*"))
	if err != nil || len(mine) == 0 {
		return 0, false
	}
	for _, dir := range dirs {
		cpus, err := os.ReadFile(filepath.Join(dir, "cpulist"))
		if err != nil {
			continue
		}
		has := cpuList(string(cpus))
		outside := slices.ContainsFunc(mine, func(c int) bool { return !slices.Contains(has, c) })
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err == nil && !outside && n < nodesMax {
			return n, true
		}
	}
	return 0, false
}

// cpuList reads a list like 0-3,8.
func cpuList(s string) (cpus []int) {
	for _, part := range strings.Split(strings.TrimSpace(s), ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(high)
		}
		if err != nil || first < 0 || last > 1<<16 {
			return nil
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}
