package launch

func (c *Config) checkPlaces() error {
	switch c.Bind {
	case BindAuto, BindCore, BindNUMA, BindNone:
	default:
		return configErrorf("cannot bind to %q: want core, numa or none", string(c.Bind))
	}
	switch c.Map {
	case "", MapSlot, MapNode, MapCore, MapNUMA:
	default:
		return configErrorf("cannot map by %q: want slot, node, core or numa", string(c.Map))
	}
	switch {
	case c.PerHost < 0 || c.PerHost > MaxRanks:
		return configErrorf("%d ranks per host: want 1 to %d", c.PerHost, MaxRanks)
	case c.Timeout < 0:
		return configErrorf("a timeout of %v: want a time, or 0 for ever", c.Timeout)
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
	if p.size == 0 {
		p.size = max(room, len(rooms))
	}
	switch {
	case p.size > MaxRanks:
		return 0, configErrorf("%d ranks: want up to %d", p.size, MaxRanks)
	case room > 0 && p.size > room:
		return 0, configErrorf("%s on %s with room for %d", count(p.size, "rank does not fit", "ranks do not fit"), count(len(rooms), "host", "hosts"), room)
	}
	on := make([][]rankPlan, len(rooms))
	app, end := 0, apps[0].Ranks
	for rank, host := range p.hostsInOrder(rooms, c.Map) {
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
		a := agentPlan{host: i, hostName: m.name, netns: i, ranks: ranks}
		if len(c.Hosts) > 0 {
			a.hostName = c.Hosts[i].Name
		}
		most = max(most, len(ranks))
		p.agents = append(p.agents, a)
	}
	return most, nil
}

// hostsInOrder returns the host of each rank.
func (p *plan) hostsInOrder(rooms []int, order MapBy) []int {
	hosts := make([]int, 0, p.size)
	if order == MapNode {
		for round := 0; ; round++ {
			for h, room := range rooms {
				if len(hosts) == p.size {
					return hosts
				}
				if room == 0 || round < room {
					hosts = append(hosts, h)
				}
			}
		}
	}
	for h, room := range rooms {
		end := (h + 1) * p.size / len(rooms)
		if room > 0 {
			end = min(len(hosts)+room, p.size)
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

// hosts returns the host of each rank.
func (p *plan) hosts() []int {
	hosts := make([]int, p.size)
	for _, a := range p.agents {
		for _, r := range a.ranks {
			hosts[r.Rank] = a.host
		}
	}
	return hosts
}
