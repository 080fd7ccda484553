package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func (c *Config) checkPlaces() error {
	if err := c.Bind.check(); err != nil {
		return configErrorf("%v", err)
	}
	switch c.Map {
	case "", MapSlot, MapNode, MapCore, MapNUMA, MapSocket:
	default:
		return configErrorf("cannot map by %q: want slot, node, core, numa or socket", string(c.Map))
	}
	if c.Cores != 0 {
		if err := checkCores(c.Bind, c.Cores); err != nil {
			return configErrorf("%v", err)
		}
	}
	switch {
	case c.PerHost < 0 || c.PerHost > MaxRanks:
		return configErrorf("%d ranks per host: want 1 to %d", c.PerHost, MaxRanks)
	case c.Timeout < 0:
		return configErrorf("a timeout of %v: want a time, or 0 for ever", c.Timeout)
	}
	return nil
}

// check refuses what nothing can be bound to.
func (b Bind) check() error {
	switch b {
	case BindAuto, BindThread, BindCore, BindNUMA, BindSocket, BindUser, BindNone:
		return nil
	}
	return fmt.Errorf("cannot bind to %q: want hwthread, core, numa, socket, user:PROCESSORS or none", string(b))
}

// checkCores refuses numbers of cores for each rank that make no sense anywhere.
func checkCores(to Bind, n int) error {
	switch {
	case n < 1 || n > maxCPUs:
		return fmt.Errorf("%d cores for each rank: want 1 to %d", n, maxCPUs)
	case to != BindCore:
		return fmt.Errorf("%s for each rank: that is for binding to cores", count(n, "core", "cores"))
	}
	return nil
}

// rooms returns how many ranks fit on each host, or 0 where nothing is said of
// any: then they are spread evenly.
func (c *Config) rooms() []int {
	rooms := make([]int, max(1, c.Testbed, len(c.Hosts)))
	slotted := false
	for _, h := range c.Hosts {
		slotted = slotted || h.Slots > 0
	}
	for i := range rooms {
		switch {
		case c.PerHost > 0:
			rooms[i] = c.PerHost
		case slotted:
			rooms[i] = max(1, c.Hosts[i].Slots)
		}
	}
	return rooms
}

// oversubscribe makes room for more ranks, in rounds in which each host takes as many
// as fit there.
func (c *Config) oversubscribe(rooms []int, more int) error {
	if !c.Oversubscribe {
		return fmt.Errorf("--oversubscribe puts more on them")
	}
	slots := slices.Clone(rooms)
	for more > 0 {
		before := more
		for i := range rooms {
			n := min(slots[i], more)
			if len(c.Hosts) > 0 && c.Hosts[i].Max > 0 {
				n = min(n, max(0, c.Hosts[i].Max-rooms[i]))
			}
			rooms[i] += n
			more -= n
		}
		if more == before {
			return fmt.Errorf("and max_slots lets no more on them")
		}
	}
	return nil
}

// place spreads the ranks over the hosts and returns the most ranks that a host
// got. Neighbours are together, except with MapNode.
func (p *plan) place(c Config, m machine) (most int, err error) {
	rooms := c.rooms()
	room := 0
	for _, n := range rooms {
		room += n
	}
	apps := c.apps()
	for _, a := range apps {
		p.size += a.Ranks
	}
	p.size = cmp.Or(p.size, max(room, len(rooms)))
	if p.size > MaxRanks {
		return 0, configErrorf("%d ranks: want up to %d", p.size, MaxRanks)
	}
	if room > 0 && p.size > room {
		if err := c.oversubscribe(rooms, p.size-room); err != nil {
			return 0, configErrorf("%s on %s with room for %d: %v", count(p.size, "rank does not fit", "ranks do not fit"), count(len(rooms), "host", "hosts"), room, err)
		}
	}
	spread, err := p.spread(c, apps, rooms)
	if err != nil {
		return 0, err
	}
	on := make([][]rankPlan, len(rooms))
	app, end := 0, apps[0].Ranks
	for rank, host := range spread {
		for rank >= end && app < len(apps)-1 {
			app++
			end += apps[app].Ranks
		}
		on[host] = append(on[host], rankPlan{Rank: rank, Local: len(on[host]), Slot: -1, App: app})
	}
	for i, ranks := range on {
		if len(ranks) == 0 {
			continue
		}
		for range c.Ghosts {
			ranks = append(ranks, rankPlan{Rank: p.size, Local: len(ranks), Slot: -1, App: len(apps)})
			p.size++
			p.ghosts++
		}
		a := agentPlan{host: i, hostName: m.name, netns: i, ranks: ranks}
		if len(c.Hosts) > 0 {
			a.hostName = c.Hosts[i].Name
		}
		most = max(most, len(ranks))
		p.agents = append(p.agents, a)
	}
	if p.size > MaxRanks {
		return 0, configErrorf("%d ranks and %d ghosts: want up to %d", p.users(), p.ghosts, MaxRanks)
	}
	return most, nil
}

// spread returns the host of each rank. Programs with hosts of their own take their
// places one after the other.
func (p *plan) spread(c Config, apps []App, rooms []int) ([]int, error) {
	if !slices.ContainsFunc(apps, func(a App) bool { return len(a.Hosts) > 0 }) {
		return hostsInOrder(p.size, rooms, c.Map), nil
	}
	var hosts []int
	free := slices.Clone(rooms)
	for _, a := range apps {
		var of, left []int // hosts with room, and how much
		room := 0
		for h, host := range c.Hosts {
			if full := rooms[h] > 0 && free[h] == 0; !full && (len(a.Hosts) == 0 || slices.Contains(a.Hosts, host.Name)) {
				of, left = append(of, h), append(left, free[h])
				room += free[h]
			}
		}
		if len(of) == 0 || room > 0 && a.Ranks > room {
			return nil, configErrorf("%s of %s on %s with room for %d", count(a.Ranks, "rank does not fit", "ranks do not fit"), a.Program, strings.Join(a.Hosts, ","), room)
		}
		for _, i := range hostsInOrder(a.Ranks, left, c.Map) {
			h := of[i]
			hosts = append(hosts, h)
			free[h] = max(0, free[h]-1)
		}
	}
	return hosts, nil
}

// hostsInOrder returns the host of each of size ranks.
func hostsInOrder(size int, rooms []int, order MapBy) []int {
	hosts := make([]int, 0, size)
	if order == MapNode {
		for round := 0; ; round++ {
			for h, room := range rooms {
				if len(hosts) == size {
					return hosts
				}
				if room == 0 || round < room {
					hosts = append(hosts, h)
				}
			}
		}
	}
	for h, room := range rooms {
		end := (h + 1) * size / len(rooms)
		if room > 0 {
			end = min(len(hosts)+room, size)
		}
		for len(hosts) < end {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// appOf returns which of the programs a rank runs.
func (p *plan) appOf(rank int) int {
	for _, a := range p.agents {
		for _, r := range a.ranks {
			if r.Rank == rank {
				return r.App
			}
		}
	}
	return 0
}

// hostNames returns the name of the host of each rank, and of each ghost.
func (p *plan) hostNames() []string {
	names := make([]string, p.size)
	for _, a := range p.agents {
		for _, r := range a.ranks {
			names[r.Rank] = a.hostName
		}
	}
	return names
}

// hosts returns the host of each rank.
func (p *plan) hosts() []int {
	hosts := make([]int, p.users())
	for _, a := range p.agents {
		for _, r := range a.ranks {
			if r.Rank < len(hosts) {
				hosts[r.Rank] = a.host
			}
		}
	}
	return hosts
}
