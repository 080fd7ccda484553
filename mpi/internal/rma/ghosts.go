package rma

// Ghosts says which ghost serves the memory of which rank. Each rank has one, which does
// all operations on its memory and keeps its locks (static rank binding: Si and Balaji,
// Casper, IPDPS 2015): so orders and locks are those of one process.
type Ghosts struct {
	Of     []int32   // by rank in World: its ghost
	Client []int32   // by rank in World: the number that all ghosts of its host know it by, above 0
	on     [][]int32 // by rank in World: the ghosts of its host, by their numbers there
	ranks  [][]int32 // by ghost: the ranks of its host
}

// NewGhosts deals the ranks of each host to its ghosts, neighbours together. ranks are the
// hosts of the ranks, ghosts those of the ghosts, whose numbers are behind those of ranks.
// Nil: there are none, or not on every host.
func NewGhosts(ranks, ghosts []int) *Ghosts {
	g := &Ghosts{Of: make([]int32, len(ranks)), Client: make([]int32, len(ranks)), on: make([][]int32, len(ranks)), ranks: make([][]int32, len(ghosts))}
	users, servers := map[int][]int32{}, map[int][]int32{}
	for i, host := range ranks {
		users[host] = append(users[host], int32(i))
	}
	for i, host := range ghosts {
		servers[host] = append(servers[host], int32(len(ranks)+i))
	}
	for host, all := range users {
		own := servers[host]
		if len(own) == 0 || len(all) > clientMost {
			return nil
		}
		for i, rank := range all {
			g.Of[rank], g.on[rank], g.Client[rank] = own[i*len(own)/len(all)], own, int32(i+1)
		}
		for _, ghost := range own {
			g.ranks[int(ghost)-len(ranks)] = all
		}
	}
	return g
}

// rank returns the rank in World that a ghost serves under a number, or -1.
func (g *Ghosts) rank(ghost, client int32) int32 {
	if g == nil {
		return -1
	}
	i := int(ghost) - len(g.Of)
	if i < 0 || i >= len(g.ranks) || client < 1 || int(client) > len(g.ranks[i]) {
		return -1
	}
	return g.ranks[i][client-1]
}

// neighbours returns the ranks of the host of a ghost; nil: it is none.
func (g *Ghosts) neighbours(ghost int32) []int32 {
	if i := int(ghost) - len(g.Of); i >= 0 && i < len(g.ranks) {
		return g.ranks[i]
	}
	return nil
}

// misses reports whether a ghost is among the lost ones: see Routes.Lost.
func (g *Ghosts) misses(lost []int64, ghost int32) bool {
	return len(lost) > 0 && lost[int(ghost)-len(g.Of)] != 0
}

// Sharers returns how many ranks have the ghost of a rank, that one included; 0: it has none.
func (g *Ghosts) Sharers(rank int) (n int) {
	if g != nil {
		for _, ghost := range g.Of {
			if ghost == g.Of[rank] {
				n++
			}
		}
	}
	return n
}

// Most returns how many ghosts there are on the host with the most.
func (g *Ghosts) Most() (most int) {
	if g != nil {
		for _, on := range g.on {
			most = max(most, len(on))
		}
	}
	return most
}
