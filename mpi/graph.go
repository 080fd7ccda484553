package mpi

import "slices"

// graph is a topology of neighbours (MPI 4.1, sections 8.5.3 and 8.5.4): which
// ranks this one receives from and which it sends to.
type graph struct {
	sources, dests []int
	sourceW, destW []int // weights; nil: all are the same
	index, edges   []int // GraphCreate: the whole graph, as it was given
	distributed    bool
}

// Topology is the kind of topology that a communicator has.
type Topology int

// Kinds of topologies; Undefined is none.
const (
	TopoCart Topology = iota + 1
	TopoGraph
	TopoDistGraph
)

// Topology returns the kind of topology of the communicator, or Undefined
// (MPI_Topo_test).
func (c *Comm) Topology() Topology {
	switch t := c.topo.(type) {
	case *cart:
		return TopoCart
	case *graph:
		if t.distributed {
			return TopoDistGraph
		}
		return TopoGraph
	}
	return Undefined
}

// GraphCreate makes a communicator with a graph that every rank knows
// (MPI_Graph_create): the neighbours of rank i are edges[index[i-1]:index[i]].
// Ranks beyond the graph get nil. With reorder, neighbours are put on the same
// host as far as possible.
func (c *Comm) GraphCreate(index, edges []int, reorder bool) (*Comm, error) {
	const op = "Comm.GraphCreate"
	t, node, err := c.graphPlace(op, index, edges, reorder)
	if err != nil {
		return nil, c.report(err)
	}
	g, err := c.split(op, colorOf(node), node)
	if err != nil || g == nil {
		return nil, err
	}
	t.dests = t.neighbors(g.rank)
	t.sources = t.dests
	g.topo = t
	return g, nil
}

// GraphMap returns the rank that this one has in what GraphCreate makes with
// reorder, or Undefined (MPI_Graph_map). All ranks call it.
func (c *Comm) GraphMap(index, edges []int) (int, error) {
	_, node, err := c.graphPlace("Comm.GraphMap", index, edges, true)
	return node, c.report(err)
}

// graphPlace returns a graph, and the node of it that this rank is, or Undefined.
func (c *Comm) graphPlace(op string, index, edges []int, reorder bool) (t *graph, node int, err error) {
	n := len(index)
	switch err = c.live(op); {
	case err != nil:
	case c.Inter():
		err = fail(ErrComm, op, "it is not for intercommunicators")
	case n > c.Size():
		err = fail(ErrTopology, op, "the graph has %d nodes, and the communicator %d ranks", n, c.Size())
	case !slices.IsSorted(index) || n > 0 && (index[0] < 0 || index[n-1] != len(edges)):
		err = fail(ErrTopology, op, "index must rise to the number of edges, which is %d", len(edges))
	case slices.ContainsFunc(edges, func(e int) bool { return e < 0 || e >= n }):
		err = fail(ErrArg, op, "an edge leads to no node of the graph")
	}
	if err != nil {
		return nil, Undefined, err
	}
	t = &graph{index: slices.Clone(index), edges: slices.Clone(edges)}
	var nodes []int
	if reorder {
		hosts, err := c.hosts(op)
		if err != nil {
			return nil, Undefined, err
		}
		nodes = settleNodes(n, t.neighbors, hosts[:n])
	}
	return t, c.placed(n, nodes), nil
}

// neighbors returns the neighbours of a node of a graph that is known as a whole.
func (t *graph) neighbors(node int) []int {
	from := 0
	if node > 0 {
		from = t.index[node-1]
	}
	return t.edges[from:t.index[node]]
}

// settleNodes returns the node for each rank: nodes in the order in which they
// are reached from one another, ranks in the order of hosts. nil: each has its own,
// for no fewer edges would lead from one host to another.
func settleNodes(n int, neighbors func(node int) []int, hosts []int) []int {
	seen := make([]bool, n)
	var walk []int
	for start := range n {
		if seen[start] {
			continue
		}
		seen[start] = true
		walk = append(walk, start)
		for i := len(walk) - 1; i < len(walk); i++ {
			for _, next := range neighbors(walk[i]) {
				if !seen[next] {
					seen[next] = true
					walk = append(walk, next)
				}
			}
		}
	}
	order := byHost(hosts)
	nodes := make([]int, n)
	for i, r := range order {
		nodes[r] = walk[i]
	}
	if crossings(nodes, neighbors, hosts) < crossings(nil, neighbors, hosts) {
		return nodes
	}
	return nil
}

// crossings returns how many edges lead from one host to another when ranks are these
// nodes; nil: each its own.
func crossings(nodes []int, neighbors func(node int) []int, hosts []int) (count int) {
	hostOf := hosts
	if nodes != nil {
		hostOf = make([]int, len(hosts))
		for r, node := range nodes {
			hostOf[node] = hosts[r]
		}
	}
	for node, host := range hostOf {
		for _, next := range neighbors(node) {
			if hostOf[next] != host {
				count++
			}
		}
	}
	return count
}

// graph returns the graph of c, of one kind or the other.
func (c *Comm) graph(op string, distributed bool) (*graph, error) {
	if err := c.live(op); err != nil {
		return nil, err
	}
	t, ok := c.topo.(*graph)
	switch {
	case ok && t.distributed == distributed:
		return t, nil
	case distributed:
		return nil, fail(ErrTopology, op, "the communicator has no distributed graph: make one with DistGraphCreate or DistGraphCreateAdjacent")
	}
	return nil, fail(ErrTopology, op, "the communicator has no graph: make one with GraphCreate")
}

// Graph returns the whole graph of GraphCreate (MPI_Graph_get).
func (c *Comm) Graph() (index, edges []int, err error) {
	t, err := c.graph("Comm.Graph", false)
	if err != nil {
		return nil, nil, c.report(err)
	}
	return slices.Clone(t.index), slices.Clone(t.edges), nil
}

// GraphNeighbors returns the neighbours of a rank (MPI_Graph_neighbors).
func (c *Comm) GraphNeighbors(rank int) ([]int, error) {
	const op = "Comm.GraphNeighbors"
	t, err := c.graph(op, false)
	if err == nil && (rank < 0 || rank >= c.size) {
		err = fail(ErrRank, op, "%d is no rank of this communicator", rank)
	}
	if err != nil {
		return nil, c.report(err)
	}
	return slices.Clone(t.neighbors(rank)), nil
}
