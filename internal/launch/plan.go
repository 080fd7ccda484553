package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/testbed"
)

// plan is what a Config comes to on this machine.
type plan struct {
	agents  []agentPlan
	size    int
	fabric  string
	device  string          // "" lets the agent find out
	testbed *testbed.Config // nil without one
	remote  bool            // agents are started by the launcher
	notice  string          // what the job runs on and why, for people; or ""
}

// agentPlan is one agent and its ranks.
type agentPlan struct {
	host     int    // number of the host
	hostName string // "" for this machine
	netns    int    // testbed namespace to run in, when there is a testbed
	ranks    []rankPlan
}

// rankPlan places a rank.
type rankPlan struct {
	Rank  int `json:"rank"`
	Local int `json:"local"` // number among the ranks of its host
	Slot  int `json:"slot"`  // which of the allowed processors, modulo their number; -1 for all
}

// machine is what a plan depends on besides the Config.
type machine struct {
	root bool
	xdp  error // why AF_XDP cannot be used, or nil
	cpus int   // processors that this process may use
	name string
}

const (
	fabricXDP = "xdp"
	fabricUDP = "udp"
)

var fabrics = []string{fabricXDP, "xdp:generic", "xdp:driver", "xdp:asavie", fabricUDP}

func isXDP(fabric string) bool { return strings.HasPrefix(fabric, fabricXDP) }

// ParseHosts reads a list as in "a,b:2,c": names with the number of ranks that
// fit.
func ParseHosts(list string) ([]Host, error) {
	var hosts []Host
	for _, entry := range strings.Split(list, ",") {
		h := Host{Name: entry}
		if name, slots, ok := strings.Cut(entry, ":"); ok {
			n, err := strconv.Atoi(slots)
			if err != nil || n < 1 || n > MaxRanks {
				return nil, configErrorf("host list %q: %q is no number of ranks", list, slots)
			}
			h = Host{name, n}
		}
		if h.Name == "" || strings.HasPrefix(h.Name, "-") {
			return nil, configErrorf("host list %q: want names separated by commas, as in a,b:2", list)
		}
		if slices.ContainsFunc(hosts, func(o Host) bool { return o.Name == h.Name }) {
			return nil, configErrorf("host list %q: %s is there twice; write %s:2 for two ranks on it", list, h.Name, h.Name)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// makePlan decides where the ranks go and over what they talk.
func makePlan(c Config, m machine) (*plan, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &plan{size: c.Ranks, device: c.Device}
	if p.size == 0 {
		p.size = max(1, c.Testbed, len(c.Hosts))
	}
	perHost, err := p.place(c, m)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Testbed > 0 && m.root:
		err = p.inTestbed(c, m, perHost)
	case c.Testbed > 0:
		err = p.withoutTestbed(c, m)
	case len(c.Hosts) > 0:
		p.remote = true
		err = p.onHosts(c, m, perHost)
	default:
		err = p.here(c, m)
	}
	if err != nil {
		return nil, err
	}
	p.bind(c.Bind, m)
	return p, nil
}

func (c *Config) check() error {
	switch {
	case c.Program == "":
		return configErrorf("no program to run")
	case c.Ranks < 0 || c.Ranks > MaxRanks:
		return configErrorf("%d ranks: want 1 to %d", c.Ranks, MaxRanks)
	case c.Testbed < 0 || c.Testbed > testbed.MaxHosts:
		return configErrorf("a testbed of %d hosts: want 1 to %d", c.Testbed, testbed.MaxHosts)
	case c.Testbed > 0 && len(c.Hosts) > 0:
		return configErrorf("the ranks run either in a testbed or on hosts: leave out --testbed or --hosts")
	case c.Testbed > 0 && c.Device != "":
		return configErrorf("a testbed has devices of its own: leave out --device")
	case c.MTU != 0 && c.Testbed == 0:
		return configErrorf("--mtu is for the devices of a --testbed; that of a real device is set with ip link set")
	case c.MTU != 0 && (c.MTU < testbed.MinMTU || c.MTU > testbed.MaxMTU):
		return configErrorf("an MTU of %d: want %d to %d bytes", c.MTU, testbed.MinMTU, testbed.MaxMTU)
	case c.Fabric != "" && !slices.Contains(fabrics, c.Fabric):
		return configErrorf("unknown fabric %q: want one of %s", c.Fabric, strings.Join(fabrics, ", "))
	case c.Bind != BindAuto && c.Bind != BindCore && c.Bind != BindNone:
		return configErrorf("cannot bind to %q: want core or none", string(c.Bind))
	}
	return nil
}

// place spreads the ranks over the hosts, neighbours together, and returns the
// most ranks that a host got.
func (p *plan) place(c Config, m machine) (int, error) {
	hosts := c.Hosts
	if len(hosts) == 0 {
		hosts = make([]Host, max(1, c.Testbed))
	}
	slotted, room := false, 0
	for _, h := range hosts {
		slotted = slotted || h.Slots > 0
		room += max(1, h.Slots)
	}
	if slotted && p.size > room {
		return 0, configErrorf("%d ranks do not fit on hosts with room for %d", p.size, room)
	}
	next, most := 0, 0
	for i, h := range hosts {
		end := (i + 1) * p.size / len(hosts)
		if slotted {
			end = min(next+max(1, h.Slots), p.size)
		}
		if next == end {
			continue
		}
		a := agentPlan{host: i, hostName: h.Name, netns: i}
		if a.hostName == "" {
			a.hostName = m.name
		}
		for local := 0; next < end; local++ {
			a.ranks = append(a.ranks, rankPlan{Rank: next, Local: local, Slot: -1})
			next++
		}
		most = max(most, len(a.ranks))
		p.agents = append(p.agents, a)
	}
	return most, nil
}

// inTestbed runs the ranks in namespaces. Over AF_XDP a rank needs a NIC of its
// own, so where a host has several ranks each gets a namespace of its own.
func (p *plan) inTestbed(c Config, m machine, perHost int) error {
	p.testbed = &testbed.Config{Hosts: c.Testbed, MTU: c.MTU, Switch: c.Switch}
	p.device = testbed.Device
	p.fabric = c.Fabric
	why := ""
	if p.fabric == "" {
		p.fabric = fabricXDP
		if m.xdp != nil {
			p.fabric, why = fabricUDP, fmt.Sprintf(" (no AF_XDP here: %v)", m.xdp)
		}
	} else if isXDP(p.fabric) && m.xdp != nil {
		return noXDP(m.xdp)
	}
	if isXDP(p.fabric) && perHost > 1 {
		if p.size > testbed.MaxHosts {
			return configErrorf("%d ranks over AF_XDP need as many namespaces, and a testbed has up to %d: use --fabric udp or fewer ranks", p.size, testbed.MaxHosts)
		}
		p.testbed.Hosts = p.size
		p.splitAgents()
		why = ", each with a NIC of its own"
	}
	p.notice = fmt.Sprintf("%s on %s over %s%s", p.ranks(), count(c.Testbed, "testbed host", "testbed hosts"), fabricName(p.fabric), why)
	return nil
}

// splitAgents gives every rank an agent and a namespace.
func (p *plan) splitAgents() {
	var split []agentPlan
	for _, a := range p.agents {
		for _, r := range a.ranks {
			one := a
			one.netns, one.ranks = r.Rank, []rankPlan{r}
			split = append(split, one)
		}
	}
	p.agents = split
}

// withoutTestbed is a testbed's place taken by this host, for users who may
// not make one. The ranks still see the hosts that were asked for.
func (p *plan) withoutTestbed(c Config, m machine) error {
	if isXDP(c.Fabric) {
		return noXDP(fmt.Errorf("it needs root"))
	}
	p.fabric, p.device = fabricUDP, "lo"
	for i := range p.agents {
		p.agents[i].hostName = fmt.Sprintf("%s(%d)", m.name, p.agents[i].host)
	}
	p.notice = fmt.Sprintf("not root, so no --testbed: %s on this host over kernel UDP on loopback (left out: %s and AF_XDP)",
		p.ranks(), count(c.Testbed, "namespace", "namespaces"))
	return nil
}

func (p *plan) onHosts(c Config, m machine, perHost int) error {
	p.fabric = c.Fabric
	why := ""
	switch {
	case isXDP(p.fabric) && perHost > 1:
		return tooManyPerNIC(perHost)
	case isXDP(p.fabric) && c.Device == "":
		return configErrorf("AF_XDP needs a --device, the same on all hosts; xinfo lists them")
	case p.fabric != "":
	case c.Device == "":
		p.fabric, why = fabricUDP, " (AF_XDP needs a --device)"
	case !m.root:
		p.fabric, why = fabricUDP, " (AF_XDP needs root)"
	case perHost > 1:
		p.fabric, why = fabricUDP, fmt.Sprintf(" (%d ranks per host: AF_XDP carries one per NIC)", perHost)
	case m.xdp != nil:
		p.fabric, why = fabricUDP, fmt.Sprintf(" (no AF_XDP here: %v)", m.xdp)
	default:
		p.fabric = fabricXDP
	}
	p.notice = fmt.Sprintf("%s on %s over %s%s", p.ranks(), count(len(p.agents), "host", "hosts"), fabricName(p.fabric), why)
	return nil
}

func (p *plan) here(c Config, m machine) error {
	p.fabric = c.Fabric
	if isXDP(p.fabric) {
		switch {
		case p.size > 1:
			return tooManyPerNIC(p.size)
		case c.Device == "":
			return configErrorf("AF_XDP needs a --device (xinfo lists them), or --testbed")
		case !m.root:
			return noXDP(fmt.Errorf("it needs root"))
		case m.xdp != nil:
			return noXDP(m.xdp)
		}
		return nil
	}
	p.fabric = fabricUDP
	if p.device == "" {
		p.device = "lo"
	}
	if c.Fabric == "" {
		p.notice = fmt.Sprintf("%s on this host over kernel UDP on %s (for AF_XDP: --testbed, or --hosts with --device)", p.ranks(), p.device)
	}
	return nil
}

func (p *plan) ranks() string { return count(p.size, "rank", "ranks") }

// bind gives the ranks of one machine processors in turn.
func (p *plan) bind(b Bind, m machine) {
	if b == BindNone || b == BindAuto && (p.testbed == nil || p.size > m.cpus) {
		return
	}
	for _, a := range p.agents {
		for i := range a.ranks {
			a.ranks[i].Slot = a.ranks[i].Rank
			if p.remote {
				a.ranks[i].Slot = a.ranks[i].Local
			}
		}
	}
}

func fabricName(fabric string) string {
	if fabric == fabricUDP {
		return "kernel UDP"
	}
	return "AF_XDP" + strings.TrimPrefix(fabric, fabricXDP)
}

func noXDP(why error) error {
	return configErrorf("AF_XDP cannot be used here: %v; use --fabric udp, or see xinfo", why)
}

func tooManyPerNIC(n int) error {
	return configErrorf("%d ranks on one host, and AF_XDP carries one rank per host and NIC: use more --hosts, --testbed (which gives each rank a NIC) or --fabric udp", n)
}
