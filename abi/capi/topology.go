package capi

import "github.com/xwarp/xwarp/mpi"

// flags are truth values of the program.
func flags(list []int) []bool {
	f := make([]bool, len(list))
	for i, v := range list {
		f[i] = v != 0
	}
	return f
}

// DimsCreate is MPI_Dims_create.
func DimsCreate(_ *Lib, nodes, n int, dims Ints) error {
	list, err := dims.list("dimensions", n)
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if err = mpi.DimsCreate(nodes, list); err == nil {
		dims.setAll(list, n)
	}
	return err
}

// TopoTest is MPI_Topo_test.
func TopoTest(l *Lib, comm Handle, status Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	kind := MPI_UNDEFINED
	switch c.Topology() {
	case mpi.TopoCart:
		kind = MPI_CART
	case mpi.TopoGraph:
		kind = MPI_GRAPH
	case mpi.TopoDistGraph:
		kind = MPI_DIST_GRAPH
	}
	status.set(0, kind)
	return nil
}

// grid reads the arguments that describe a grid.
func (l *Lib) grid(comm Handle, n int, dims, periods Ints) (c *comm, size []int, round []bool, err error) {
	if c, err = l.comm(comm); err != nil {
		return nil, nil, nil, err
	}
	if size, err = dims.list("dimensions", n); err != nil {
		return nil, nil, nil, err
	}
	list, err := periods.list("dimensions", n)
	return c, size, flags(list), err
}

// CartCreate is MPI_Cart_create.
func CartCreate(l *Lib, comm Handle, n int, dims, periods Ints, reorder int, to Handles) error {
	c, size, round, err := l.grid(comm, n, dims, periods)
	if err != nil {
		return err
	}
	g, err := c.CartCreate(size, round, reorder != 0)
	return l.made(g, err, c, to)
}

// CartMap is MPI_Cart_map.
func CartMap(l *Lib, comm Handle, n int, dims, periods, rank Ints) error {
	c, size, round, err := l.grid(comm, n, dims, periods)
	if err != nil {
		return err
	}
	r, err := c.CartMap(size, round)
	if err == nil {
		rank.set(0, rankTo(r))
	}
	return err
}

// CartdimGet is MPI_Cartdim_get.
func CartdimGet(l *Lib, comm Handle, n Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	dims, _, _, err := c.Cart()
	if err == nil {
		n.set(0, len(dims))
	}
	return err
}

// CartGet is MPI_Cart_get.
func CartGet(l *Lib, comm Handle, most int, dims, periods, coords Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	size, round, at, err := c.Cart()
	if err == nil {
		err = enough("dimensions", most, len(size))
	}
	for _, array := range []Ints{dims, periods, coords} {
		if err == nil {
			err = array.there("dimensions", len(size))
		}
	}
	if err != nil {
		return err
	}
	dims.setAll(size, most)
	coords.setAll(at, most)
	for i, yes := range round {
		if periods.set(i, 0); yes {
			periods.set(i, 1)
		}
	}
	return nil
}

// enough refuses arrays of the program that have no room for all.
func enough(what string, room, n int) error {
	if room < n {
		return fail(mpi.ErrArg, "room for %d %s, of which there are %d", room, what, n)
	}
	return nil
}

// cartComm returns a communicator with a grid, and how many dimensions that has.
func (l *Lib) cartComm(comm Handle) (c *comm, n int, err error) {
	if c, err = l.comm(comm); err != nil {
		return nil, 0, err
	}
	dims, _, _, err := c.Cart()
	return c, len(dims), err
}

// CartRank is MPI_Cart_rank.
func CartRank(l *Lib, comm Handle, coords, rank Ints) error {
	c, n, err := l.cartComm(comm)
	if err != nil {
		return err
	}
	at, err := coords.list("coordinates", n)
	if err != nil {
		return err
	}
	r, err := c.CartRank(at...)
	if err == nil {
		rank.set(0, r)
	}
	return err
}

// CartCoords is MPI_Cart_coords.
func CartCoords(l *Lib, comm Handle, rank, most int, coords Ints) error {
	c, n, err := l.cartComm(comm)
	if err != nil {
		return err
	}
	at, err := c.CartCoords(rankFrom(rank))
	if err == nil {
		err = enough("coordinates", most, n)
	}
	if err == nil {
		err = coords.there("coordinates", n)
	}
	coords.setAll(at, most)
	return err
}

// CartShift is MPI_Cart_shift.
func CartShift(l *Lib, comm Handle, direction, disp int, source, dest Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	from, to, err := c.CartShift(direction, disp)
	if err == nil {
		source.set(0, rankTo(from))
		dest.set(0, rankTo(to))
	}
	return err
}

// CartSub is MPI_Cart_sub.
func CartSub(l *Lib, comm Handle, remain Ints, to Handles) error {
	c, n, err := l.cartComm(comm)
	if err != nil {
		return err
	}
	list, err := remain.list("dimensions", n)
	if err != nil {
		return err
	}
	sub, err := c.CartSub(flags(list)...)
	return l.made(sub, err, c, to)
}

// graph reads the arguments that describe a graph.
func (l *Lib) graph(comm Handle, n int, index, edges Ints) (c *comm, ends, to []int, err error) {
	if c, err = l.comm(comm); err != nil {
		return nil, nil, nil, err
	}
	if n > c.Size() { // arrays of so many numbers need not be there
		return nil, nil, nil, fail(mpi.ErrArg, "the graph has %d nodes, and the communicator %d ranks", n, c.Size())
	}
	if ends, err = index.list("nodes", n); err != nil || n == 0 {
		return c, nil, nil, err
	}
	to, err = edges.list("edges", ends[n-1])
	return c, ends, to, err
}

// GraphCreate is MPI_Graph_create.
func GraphCreate(l *Lib, comm Handle, n int, index, edges Ints, reorder int, to Handles) error {
	c, ends, list, err := l.graph(comm, n, index, edges)
	if err != nil {
		return err
	}
	if n == 0 {
		to.set(0, MPI_COMM_NULL)
		return nil
	}
	g, err := c.GraphCreate(ends, list, reorder != 0)
	return l.made(g, err, c, to)
}

// GraphMap is MPI_Graph_map.
func GraphMap(l *Lib, comm Handle, n int, index, edges, rank Ints) error {
	c, ends, list, err := l.graph(comm, n, index, edges)
	if err != nil {
		return err
	}
	r, err := c.GraphMap(ends, list)
	if err == nil {
		rank.set(0, rankTo(r))
	}
	return err
}

// GraphdimsGet is MPI_Graphdims_get.
func GraphdimsGet(l *Lib, comm Handle, nodes, edges Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	index, list, err := c.Graph()
	if err == nil {
		nodes.set(0, len(index))
		edges.set(0, len(list))
	}
	return err
}

// GraphGet is MPI_Graph_get.
func GraphGet(l *Lib, comm Handle, mostNodes, mostEdges int, index, edges Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	ends, list, err := c.Graph()
	if err == nil {
		err = enough("nodes", mostNodes, len(ends))
	}
	if err == nil {
		err = enough("edges", mostEdges, len(list))
	}
	if err == nil {
		err = index.there("nodes", len(ends))
	}
	if err == nil {
		err = edges.there("edges", len(list))
	}
	index.setAll(ends, mostNodes)
	edges.setAll(list, mostEdges)
	return err
}

// GraphNeighborsCount is MPI_Graph_neighbors_count.
func GraphNeighborsCount(l *Lib, comm Handle, rank int, n Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	list, err := c.GraphNeighbors(rankFrom(rank))
	if err == nil {
		n.set(0, len(list))
	}
	return err
}

// GraphNeighbors is MPI_Graph_neighbors.
func GraphNeighbors(l *Lib, comm Handle, rank, most int, neighbors Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	list, err := c.GraphNeighbors(rankFrom(rank))
	if err == nil {
		err = neighbors.there("neighbours", min(most, len(list)))
	}
	neighbors.setAll(list, most)
	return err
}

// edges reads neighbours of a distributed graph. Weights of none are given, too.
func edges(n int, ranks, weights Ints) (e mpi.Edges, err error) {
	if e.Ranks, err = ranks.list("neighbours", n); err != nil {
		return e, err
	}
	switch Addr(weights.At) {
	case MPI_UNWEIGHTED:
		return e, nil
	case MPI_WEIGHTS_EMPTY:
		e.Weights = []int{}
		return e, nil
	}
	e.Weights, err = weights.list("weights", n)
	return e, err
}

// DistGraphCreateAdjacent is MPI_Dist_graph_create_adjacent.
func DistGraphCreateAdjacent(l *Lib, comm Handle, in int, sources, sourceWeights Ints, out int, dests, destWeights Ints, info Handle, reorder int, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	if _, err = l.infoOrNull(info); err != nil {
		return err
	}
	from, err := edges(in, sources, sourceWeights)
	if err != nil {
		return err
	}
	ends, err := edges(out, dests, destWeights)
	if err != nil {
		return err
	}
	g, err := c.DistGraphCreateAdjacent(from, ends, reorder != 0)
	return l.made(g, err, c, to)
}

// DistGraphCreate is MPI_Dist_graph_create.
func DistGraphCreate(l *Lib, comm Handle, n int, sources, degrees, dests, weights Ints, info Handle, reorder int, to Handles) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	if _, err = l.infoOrNull(info); err != nil {
		return err
	}
	nodes, err := sources.list("nodes", n)
	if err != nil {
		return err
	}
	counts, err := degrees.list("degrees", n)
	if err != nil {
		return err
	}
	total := 0
	for _, d := range counts {
		if d < 0 {
			return fail(mpi.ErrArg, "a degree of %d", d)
		}
		total += d
	}
	ends, err := edges(total, dests, weights)
	if err != nil {
		return err
	}
	g, err := c.DistGraphCreate(nodes, counts, ends, reorder != 0)
	return l.made(g, err, c, to)
}

// DistGraphNeighborsCount is MPI_Dist_graph_neighbors_count.
func DistGraphNeighborsCount(l *Lib, comm Handle, in, out, weighted Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	from, to, err := c.DistGraphNeighbors()
	if err == nil {
		in.set(0, len(from.Ranks))
		out.set(0, len(to.Ranks))
		weighted.setFlag(from.Weights != nil || to.Weights != nil)
	}
	return err
}

// DistGraphNeighbors is MPI_Dist_graph_neighbors.
func DistGraphNeighbors(l *Lib, comm Handle, mostIn int, sources, sourceWeights Ints, mostOut int, dests, destWeights Ints) error {
	c, err := l.comm(comm)
	if err != nil {
		return err
	}
	from, to, err := c.DistGraphNeighbors()
	if err == nil {
		err = sources.there("neighbours to hear", min(mostIn, len(from.Ranks)))
	}
	if err == nil {
		err = dests.there("neighbours to speak to", min(mostOut, len(to.Ranks)))
	}
	if err != nil {
		return err
	}
	sources.setAll(from.Ranks, mostIn)
	sourceWeights.setAll(from.Weights, mostIn)
	dests.setAll(to.Ranks, mostOut)
	destWeights.setAll(to.Weights, mostOut)
	return nil
}
