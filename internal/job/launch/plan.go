package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/verbs/device"
)

// plan is what a Config comes to on this machine.
type plan struct {
	agents  []agentPlan
	size    int // ranks and ghosts, which have the numbers behind theirs
	ghosts  int // of them
	fabric  string
	device  string          // "" when agents look for it
	ipv6    bool            // the ranks use IPv6 addresses
	shared  bool            // the ranks of a host share a queue of it
	steered *steeredOrder   // or have queues of their own on it, if not nil
	testbed *testbed.Config // nil without one
	remote  bool            // agents are started by the launcher
	routed  bool            // which devices and which fabric is settled when the agents have looked; see settle
	bind    Bind            // not BindAuto
	notice  string          // what the job runs on and why, for people; or ""
}

// agentPlan is one agent and its ranks.
type agentPlan struct {
	host     int    // number of the host
	hostName string // "" for this machine
	netns    int    // testbed namespace to run in, when there is a testbed
	ranks    []rankPlan
	bind     Binding // not BindAuto
}

// rankPlan places a rank.
type rankPlan struct {
	Rank  int `json:"rank"`
	Local int `json:"local"` // number among the ranks of its host
	Slot  int `json:"slot"`  // which of the places that the agent finds, modulo their number; -1 for none
	App   int `json:"app"`   // which of the programs it runs
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

	fabricAsavie = "xdp:asavie" // its queues cannot be shared
)

var fabrics = []string{fabricXDP, "xdp:generic", "xdp:driver", fabricAsavie, fabricUDP}

func isXDP(fabric string) bool { return strings.HasPrefix(fabric, fabricXDP) }

// makePlan decides where the ranks go and over what they talk.
func makePlan(c Config, m machine) (*plan, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &plan{device: c.Device, ipv6: c.ipv6()}
	perHost, err := p.place(c, m)
	if err != nil {
		return nil, err
	}
	switch {
	case c.User != "" && !m.root && len(c.Hosts) == 0:
		err = configErrorf("only root can start ranks as another user: leave out --user, or use sudo")
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
	if err == nil && (c.StdinTo < StdinNone || c.StdinTo >= p.users()) {
		err = configErrorf("the standard input is for rank %d, and there are %d", c.StdinTo, p.users())
	}
	if err != nil {
		return nil, err
	}
	p.bindRanks(c, m)
	return p, nil
}

func (c *Config) check() error {
	for _, a := range c.apps() {
		switch {
		case a.Program == "":
			return configErrorf("no program to run")
		case a.Ranks < 0 || a.Ranks > MaxRanks:
			return configErrorf("%d ranks: want 1 to %d", a.Ranks, MaxRanks)
		}
	}
	switch {
	case c.Ghosts < 0 || c.Ghosts > MaxGhosts:
		return configErrorf("%d ghosts on each host: want up to %d", c.Ghosts, MaxGhosts)
	case c.Ghosts > 0 && c.Queues == QueuesPerRank:
		return configErrorf("ghosts have memory in common with the ranks of their host, and with --queues per-rank each is a host by itself: leave it out, or --ghosts")
	case c.Testbed < 0 || c.Testbed > testbed.MaxHosts:
		return configErrorf("a testbed of %d hosts: want 1 to %d", c.Testbed, testbed.MaxHosts)
	case c.Testbed > 0 && len(c.Hosts) > 0:
		return configErrorf("the ranks run either in a testbed or on hosts: leave out --testbed or --hosts")
	case c.Testbed > 0 && c.Device != "":
		return configErrorf("a testbed has devices of its own: leave out --device")
	case c.RecordEvents < 0 || c.RecordEvents > MaxRecordEvents || c.RecordEvents&(c.RecordEvents-1) != 0:
		return configErrorf("%d events for each rank: want a power of two up to %d", c.RecordEvents, MaxRecordEvents)
	case c.MTU != 0 && c.Testbed == 0:
		return configErrorf("--mtu is for the devices of a --testbed; that of a real device is set with ip link set")
	case c.MTU != 0 && (c.MTU < testbed.MinMTU || c.MTU > testbed.MaxMTU):
		return configErrorf("an MTU of %d: want %d to %d bytes", c.MTU, testbed.MinMTU, testbed.MaxMTU)
	case c.Queues != QueuesAuto && c.Queues != QueuesShared && c.Queues != QueuesSteered && c.Queues != QueuesPerRank:
		return configErrorf("queues %q: want shared, steered or per-rank", string(c.Queues))
	case c.Fabric != "" && !slices.Contains(fabrics, c.Fabric):
		return configErrorf("unknown fabric %q: want one of %s", c.Fabric, strings.Join(fabrics, ", "))
	}
	if err := device.CheckDevices(c.Device); err != nil {
		return configErrorf("%v", err)
	}
	if err := cmp.Or(checkPattern("--outfile-pattern", c.OutFile), checkPattern("--errfile-pattern", c.ErrFile)); err != nil {
		return err
	}
	return c.checkPlaces()
}

// inTestbed runs the ranks in namespaces. Over AF_XDP, where a host has several
// ranks that do not share a queue, each gets a namespace of its own.
func (p *plan) inTestbed(c Config, m machine, perHost int) (err error) {
	p.testbed = &testbed.Config{Hosts: c.Testbed, MTU: c.MTU, Switch: c.Switch, IPv6: p.ipv6}
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
	switch {
	case !isXDP(p.fabric):
	case c.Queues == QueuesSteered:
		if why, err = p.steerTestbed(c, perHost); err != nil {
			return err
		}
	case c.wantShared(perHost):
		if why, err = p.share(perHost); err != nil {
			return err
		}
	case perHost > 1:
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

// withoutTestbed is a testbed's place taken by this host, for users that may
// not make one. The ranks still see the hosts that were asked for.
func (p *plan) withoutTestbed(c Config, m machine) error {
	if isXDP(c.Fabric) {
		return noXDP(fmt.Errorf("it needs root"))
	}
	p.fabric, p.device = fabricUDP, loopback
	for i := range p.agents {
		p.agents[i].hostName = fmt.Sprintf("%s(%d)", m.name, p.agents[i].host)
	}
	p.notice = fmt.Sprintf("not root, so no --testbed: %s on this host over kernel UDP on loopback (left out: %s and AF_XDP)",
		p.ranks(), count(c.Testbed, "namespace", "namespaces"))
	return nil
}

func (p *plan) onHosts(c Config, m machine, perHost int) (err error) {
	p.fabric = c.Fabric
	p.routed = c.Device == "" && len(p.agents) > 1
	why := ""
	switch {
	case isXDP(p.fabric) && c.Device == "" && !p.routed:
		return configErrorf("AF_XDP needs a --device (xinfo lists them), where there is no other host whose route tells which")
	case p.fabric != "":
	case p.routed:
		p.fabric = fabricXDP // as far as the agents know nothing against it
	case c.Device == "":
		p.fabric = fabricUDP
	case !m.root:
		p.fabric, why = fabricUDP, " (AF_XDP needs root)"
	case m.xdp != nil:
		p.fabric, why = fabricUDP, fmt.Sprintf(" (no AF_XDP here: %v)", m.xdp)
	default:
		p.fabric = fabricXDP
	}
	if isXDP(p.fabric) {
		if why, err = p.shareReal(c, perHost); err != nil {
			return err
		}
	}
	p.routed = p.routed || isXDP(p.fabric) // of a device that is known agents say whether it is one for AF_XDP
	if p.routed {
		p.notice = why // the rest when it is known
		return nil
	}
	p.notice = fmt.Sprintf("%s on %s over %s%s", p.ranks(), count(len(p.agents), "host", "hosts"), fabricName(p.fabric), why)
	if len(p.agents) == 1 && c.Device == "" {
		p.device = loopback
		if c.Fabric == "" {
			p.notice = fmt.Sprintf("%s on %s%s", p.ranks(), p.agents[0].hostName, p.within(c))
		}
	}
	return nil
}

func (p *plan) here(c Config, m machine) error {
	p.fabric = c.Fabric
	if isXDP(p.fabric) {
		switch {
		case c.Device == "":
			return configErrorf("AF_XDP needs a --device (xinfo lists them), or --testbed")
		case !m.root:
			return noXDP(fmt.Errorf("it needs root"))
		case m.xdp != nil:
			return noXDP(m.xdp)
		}
		_, err := p.shareReal(c, p.size)
		return err
	}
	p.fabric = fabricUDP
	p.device = cmp.Or(p.device, loopback)
	if c.Fabric == "" {
		p.notice = fmt.Sprintf("%s on this host%s (for AF_XDP: --testbed, or --hosts)", p.ranks(), p.within(c))
	}
	return nil
}

// within says how ranks of ours that are all on this host talk.
func (p *plan) within(c Config) string {
	switch {
	case p.size == 1:
		return ""
	case !settings(c.lookup).Shared:
		return " over kernel UDP on " + p.device
	}
	return " through shared memory"
}

// users returns how many ranks the job has.
func (p *plan) users() int { return p.size - p.ghosts }

func (p *plan) ranks() string {
	s := count(p.users(), "rank", "ranks")
	if p.ghosts > 0 {
		s += " and " + count(p.ghosts, "ghost", "ghosts")
	}
	return s
}

// bindRanks gives the ranks of one machine places in turn.
func (p *plan) bindRanks(c Config, m machine) {
	if p.bind = c.Bind; p.bind == BindAuto {
		switch {
		case c.Map == MapNUMA:
			p.bind = BindNUMA
		case c.Map == MapSocket:
			p.bind = BindSocket
		case c.Map == MapCore, p.testbed != nil && p.size <= m.cpus && settings(c.lookup).Progress == "none":
			p.bind = BindCore
		case p.testbed != nil && c.Testbed <= m.cpus && p.ghosts == 0 && settings(c.lookup).Progress == "none":
			p.bind = BindThread
			p.shareProcessors(c.Testbed, m.cpus)
			return
		default:
			p.bind = BindNone
		}
	}
	for h := range p.agents {
		a := &p.agents[h]
		a.bind = Binding{p.bind, c.Cores, c.Places}
		if p.remote && c.Hosts[a.host].Own != nil {
			a.bind = *c.Hosts[a.host].Own
		}
		if a.bind.To == BindNone {
			continue
		}
		for i := range a.ranks {
			a.ranks[i].Slot = a.ranks[i].Rank
		}
		if p.remote || len(p.agents) == 1 {
			a.bindInTurn(c.Ghosts)
		}
	}
}

// shareProcessors gives each host of a testbed processors of its own, as machines have, where ranks
// outnumber them: a rank that waits then gives its processor to one that it shares memory with.
func (p *plan) shareProcessors(hosts, cpus int) {
	used := make([]int, hosts)
	for i := range p.agents {
		a := &p.agents[i]
		a.bind.To = p.bind
		for k := range a.ranks {
			a.ranks[k].Slot = testbed.Processor(cpus, hosts, a.host, used[a.host])
			used[a.host]++
		}
	}
}

// bindInTurn gives the processes of a host its places, which go from one NUMA node to the next, in
// turn: each ghost behind the ranks that it serves (rma.NewGhosts), so near their memory.
func (a *agentPlan) bindInTurn(ghosts int) {
	users := len(a.ranks) - ghosts
	for i := range users {
		before := i * ghosts / users // ghosts whose ranks are all before this one
		a.ranks[i].Slot = i + before
		for k := before; k < ghosts; k++ { // for now the last rank of theirs
			a.ranks[users+k].Slot = i + k + 1
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

// wantShared reports whether the ranks of a host shall share a queue, where at
// most perHost are on one: they need no privileges then.
func (c *Config) wantShared(perHost int) bool {
	if c.Queues != QueuesAuto {
		return c.Queues == QueuesShared
	}
	return c.User != "" || c.Ghosts > 0 || perHost > 1 && (c.Testbed == 0 || c.Fabric != fabricAsavie)
}

// share puts the ranks of a host on one queue, and tells so if they are many.
func (p *plan) share(perHost int) (why string, err error) {
	if p.fabric == fabricAsavie {
		return "", configErrorf("with fabric %s no queue can be shared: use xdp, or --queues per-rank in a --testbed", p.fabric)
	}
	p.shared = true
	if perHost > 1 {
		why = ", those of a host on one queue"
	}
	return why, nil
}

// steer gives each rank queues of its own.
func (p *plan) steer(perHost, hops int) (why string, err error) {
	if p.fabric == fabricAsavie {
		return "", configErrorf("with fabric %s no queue can be passed on: use xdp, or --queues per-rank in a --testbed", p.fabric)
	}
	p.steered = &steeredOrder{Slots: perHost, Hops: hops}
	return ", each with queues of its own", nil
}

// steerTestbed makes the devices of a testbed have a queue for each pair of ranks
// of two hosts: a veth cannot steer, so senders do (xdp.QueueSet).
func (p *plan) steerTestbed(c Config, perHost int) (why string, err error) {
	const more = 2 // queues that some of the sending ones lie further up
	hops := 1
	if c.Switch == testbed.Cable || c.Switch == testbed.Auto && c.Testbed == 2 {
		hops = 0
	}
	p.testbed.Queues = perHost*perHost + more
	if p.testbed.Queues > testbed.MaxQueues {
		return "", configErrorf("%d ranks on a host of the testbed, each with queues of its own, need %d queues, and a device has up to %d: use --queues shared or fewer ranks", perHost, p.testbed.Queues, testbed.MaxQueues)
	}
	return p.steer(perHost, hops)
}

// shareReal shares the NICs that are there if need be.
func (p *plan) shareReal(c Config, perHost int) (why string, err error) {
	switch {
	case c.Queues == QueuesSteered:
		return p.steer(perHost, -1) // what veths are joined to is not known
	case c.wantShared(perHost):
		return p.share(perHost)
	case perHost > 1:
		return "", configErrorf("%d ranks on one host, and a queue per rank: use more --hosts, --testbed (which gives each rank a NIC) or --queues shared", perHost)
	}
	return "", nil
}
