package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// core is a core of this machine, with the processors (hardware threads) of it
// that may be used.
type core struct {
	cpus []int
	node int // NUMA node
}

// cores returns the cores of this machine, neighbours together, from what Linux
// tells under sys (/sys/devices/system), as far as their processors are
// allowed. What it does not tell is taken to be simple: every processor is a
// core, all on one node.
func cores(sys fs.FS, allowed []int) []core {
	nodes := nodesOf(sys)
	var list []core
	seen := map[int]bool{}
	for _, cpu := range allowed {
		if seen[cpu] {
			continue
		}
		c := core{node: nodes[cpu]}
		for _, sibling := range readCPUList(sys, fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", cpu), cpu) {
			if slices.Contains(allowed, sibling) && !seen[sibling] {
				seen[sibling] = true
				c.cpus = append(c.cpus, sibling)
			}
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b core) int { return cmp.Compare(a.node, b.node) })
	return list
}

// nodesOf returns the NUMA node of each processor.
func nodesOf(sys fs.FS) map[int]int {
	of := map[int]int{}
	dirs, _ := fs.Glob(sys, "node/node[0-9]*") // the pattern is right
	for _, dir := range dirs {
		node, err := strconv.Atoi(strings.TrimPrefix(dir, "node/node"))
		if err != nil {
			continue
		}
		for _, cpu := range readCPUList(sys, dir+"/cpulist") {
			of[cpu] = node
		}
	}
	return of
}

// readCPUList reads a file with a list of processors, or returns fallback.
func readCPUList(sys fs.FS, name string, fallback ...int) []int {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return fallback
	}
	list, err := parseCPUList(strings.TrimSpace(string(text)))
	if err != nil || len(list) == 0 {
		return fallback
	}
	return list
}

// maxCPUs is the most processors that Linux is built for, and that a CPUSet
// holds at least.
const maxCPUs = 1024

// parseCPUList reads a list as the kernel writes it, such as "0-3,8".
func parseCPUList(s string) ([]int, error) {
	var list []int
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err := errors.Join(err1, err2); err != nil || from < 0 || to < from || to >= maxCPUs {
			return nil, fmt.Errorf("list of processors %.64q", s)
		}
		for cpu := from; cpu <= to; cpu++ {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// bindings returns what ranks are bound to, in the order that they get it: for
// each place the processors. The list repeats when there are more ranks.
func bindings(list []core, bind Bind, order MapBy) [][]int {
	if order == MapNUMA {
		list = dealt(list)
	}
	var out [][]int
	for _, c := range list {
		cpus := c.cpus
		if bind == BindNUMA {
			cpus = nil
			for _, other := range list {
				if other.node == c.node {
					cpus = append(cpus, other.cpus...)
				}
			}
			slices.Sort(cpus)
		}
		out = append(out, cpus)
	}
	return out
}

// dealt orders cores so that neighbours are on different nodes.
func dealt(list []core) []core {
	turn := make([]int, len(list)) // how many of its node are before it
	order := make([]int, len(list))
	count := map[int]int{}
	for i, c := range list {
		order[i], turn[i] = i, count[c.node]
		count[c.node]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	out := make([]core, len(list))
	for i, from := range order {
		out[i] = list[from]
	}
	return out
}

// bindings returns what this agent binds its ranks to, or nil.
func (s *startOrder) bindings() ([][]int, error) {
	if s.Bind != BindCore && s.Bind != BindNUMA {
		return nil, nil
	}
	allowed, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	return bindings(cores(os.DirFS("/sys/devices/system"), allowed), s.Bind, s.Map), nil
}
