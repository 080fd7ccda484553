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
	cpus   []int
	node   int // NUMA node
	socket int
}

// cores returns the cores of this machine, neighbours together, from what Linux
// tells under sys (/sys/devices/system), as far as their processors are
// allowed. What it does not tell is taken to be simple: every processor is a
// core, all on one node of one socket.
func cores(sys fs.FS, allowed []int) []core {
	nodes := nodesOf(sys)
	var list []core
	seen := map[int]bool{}
	for _, cpu := range allowed {
		if seen[cpu] {
			continue
		}
		c := core{node: nodes[cpu], socket: readNumber(sys, fmt.Sprintf("cpu/cpu%d/topology/physical_package_id", cpu))}
		for _, sibling := range readCPUList(sys, fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", cpu), cpu) {
			if slices.Contains(allowed, sibling) && !seen[sibling] {
				seen[sibling] = true
				c.cpus = append(c.cpus, sibling)
			}
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b core) int {
		return cmp.Or(cmp.Compare(a.socket, b.socket), cmp.Compare(a.node, b.node))
	})
	return list
}

// readNumber reads a file with a number, or returns 0.
func readNumber(sys fs.FS, name string) int {
	text, _ := fs.ReadFile(sys, name)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
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

// ParseProcessors reads a list of processors such as "0-3,8", as the kernel writes it.
func ParseProcessors(s string) ([]int, error) {
	list, err := parseCPUList(s)
	if err == nil && len(list) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: want processors as in 0-3,8", err)
	}
	return list, nil
}

// formatCPUList writes a sorted list as parseCPUList reads it.
func formatCPUList(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if end > i {
			fmt.Fprintf(&b, "-%d", list[end])
		}
		i = end + 1
	}
	return b.String()
}

// places returns what ranks are bound to, in the order that they get it: for each
// place the processors. The list repeats when there are more ranks.
func (b Binding) places(list []core, order MapBy) ([][]int, error) {
	switch b.To {
	case BindUser:
		return b.Places, b.checkPlaces(list)
	case BindThread:
		list = threads(list)
	case BindCore:
		if each := max(1, b.Cores); each > len(list) {
			return nil, fmt.Errorf("%s for each rank, and this host has %d to bind to: use --bind-to core:%d or less, or --bind-to none",
				count(each, "core", "cores"), len(list), len(list))
		}
		list = joined(list, max(1, b.Cores))
	}
	switch order {
	case MapNUMA:
		list = dealt(list, nodeOf)
	case MapSocket:
		list = dealt(list, socketOf)
	}
	var out [][]int
	for _, c := range list {
		switch b.To {
		case BindNUMA:
			out = append(out, allOf(list, nodeOf, c.node))
		case BindSocket:
			out = append(out, allOf(list, socketOf, c.socket))
		default:
			out = append(out, c.cpus)
		}
	}
	return out, nil
}

// checkPlaces refuses processors that this host does not have or let us use.
func (b Binding) checkPlaces(list []core) error {
	everywhere := func(core) int { return 0 }
	allowed := allOf(list, everywhere, 0)
	for _, place := range b.Places {
		if err := within(place, allowed); err != nil {
			return fmt.Errorf("--bind-to user: %w", err)
		}
	}
	return nil
}

// within refuses processors that are not among the allowed ones.
func within(cpus, allowed []int) error {
	for _, cpu := range cpus {
		if !slices.Contains(allowed, cpu) {
			return fmt.Errorf("processor %d cannot be used on this host: want some of %s", cpu, formatCPUList(allowed))
		}
	}
	return nil
}

func nodeOf(c core) int   { return c.node }
func socketOf(c core) int { return c.socket }

// allOf returns the processors of the cores that are on the same node or socket.
func allOf(list []core, where func(core) int, at int) []int {
	var cpus []int
	for _, c := range list {
		if where(c) == at {
			cpus = append(cpus, c.cpus...)
		}
	}
	slices.Sort(cpus)
	return cpus
}

// threads returns each hardware thread as if it were a core.
func threads(list []core) []core {
	var out []core
	for _, c := range list {
		for _, cpu := range c.cpus {
			out = append(out, core{cpus: []int{cpu}, node: c.node, socket: c.socket})
		}
	}
	return out
}

// joined returns neighbours on one NUMA node as if they were one core, or, where no
// node has as many, neighbours wherever they are. What is left over is not used.
func joined(list []core, each int) []core {
	if whole := joinedOn(list, each, nodeOf); len(whole) > 0 {
		return whole
	}
	return joinedOn(list, each, func(core) int { return 0 })
}

func joinedOn(list []core, each int, where func(core) int) []core {
	var whole []core
	for i := 0; i < len(list); {
		n := 1
		one := list[i]
		one.cpus = slices.Clone(one.cpus)
		for ; n < each && i+n < len(list) && where(list[i+n]) == where(one); n++ {
			one.cpus = append(one.cpus, list[i+n].cpus...)
		}
		slices.Sort(one.cpus)
		if i += n; n == each {
			whole = append(whole, one)
		}
	}
	return whole
}

// dealt orders cores so that neighbours are on different nodes or sockets.
func dealt(list []core, where func(core) int) []core {
	turn := make([]int, len(list)) // how many of its node are before it
	order := make([]int, len(list))
	count := map[int]int{}
	for i, c := range list {
		order[i], turn[i] = i, count[where(c)]
		count[where(c)]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	out := make([]core, len(list))
	for i, from := range order {
		out[i] = list[from]
	}
	return out
}

// bindings returns what this agent binds its ranks to, or nil. notice is what people
// should know about it, or "".
func (s *startOrder) bindings() (places [][]int, notice string, err error) {
	if s.Bind.To == BindAuto || s.Bind.To == BindNone {
		return nil, "", nil
	}
	allowed, err := AllowedCPUs()
	if err != nil {
		return nil, "", err
	}
	if places, err = s.Bind.places(cores(os.DirFS("/sys/devices/system"), allowed), s.Map); err != nil {
		return nil, "", err
	}
	// One agent of a machine has the first rank that there is no place left for.
	if n := len(places); slices.ContainsFunc(s.Ranks, func(r rankPlan) bool { return r.Slot == n }) {
		host, _ := os.Hostname()
		notice = fmt.Sprintf("warning: %s on %s are bound to %s, so some share one: use fewer ranks there (-ppn), or --bind-to none",
			count(s.Neighbors, "rank", "ranks"), host, s.Bind.room(n))
	}
	return places, notice, nil
}

// room says what n places are.
func (b Binding) room(n int) string {
	switch {
	case b.To == BindThread:
		return count(n, "hardware thread", "hardware threads")
	case b.To == BindUser || b.Cores > 1:
		return count(n, "place", "places")
	}
	return count(n, "core", "cores")
}

// bindingOf says for people what a rank is bound to.
func bindingOf(rank int, host string, cpus []int) string {
	switch len(cpus) {
	case 0:
		return fmt.Sprintf("rank %d on %s: not bound", rank, host)
	case 1:
		return fmt.Sprintf("rank %d on %s: bound to processor %d", rank, host, cpus[0])
	}
	return fmt.Sprintf("rank %d on %s: bound to processors %s", rank, host, formatCPUList(cpus))
}
