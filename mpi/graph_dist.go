package mpi

import "slices"

// Edges are neighbours of a rank, and how much is exchanged with each. Weights
// nil says that nothing is known (MPI_UNWEIGHTED).
type Edges struct {
	Ranks   []int
	Weights []int
}

func (c *Comm) checkEdges(op string, e Edges) error {
	for _, r := range e.Ranks {
		if r < 0 || r >= c.size {
			return fail(ErrRank, op, "neighbour %d is no rank of this communicator", r)
		}
	}
	if e.Weights != nil && len(e.Weights) != len(e.Ranks) {
		return fail(ErrArg, op, "%d neighbours and %d weights", len(e.Ranks), len(e.Weights))
	}
	if slices.ContainsFunc(e.Weights, func(w int) bool { return w < 0 }) {
		return fail(ErrArg, op, "a weight is below 0")
	}
	return nil
}

// DistGraphCreateAdjacent makes a communicator with a graph of which every rank
// knows its own edges (MPI_Dist_graph_create_adjacent). With reorder, neighbours are
// put on the same host as far as possible, for which all ranks learn the whole graph.
func (c *Comm) DistGraphCreateAdjacent(sources, dests Edges, reorder bool) (*Comm, error) {
	const op = "Comm.DistGraphCreateAdjacent"
	err := c.checkGraph(op, sources, dests)
	if err != nil {
		return nil, c.report(err)
	}
	var ends []int64
	for i := range sources.Ranks {
		ends = append(ends, int64(c.rank), endIn, int64(sources.Ranks[i]), sources.weight(i))
	}
	for i := range dests.Ranks {
		ends = append(ends, int64(c.rank), endOut, int64(dests.Ranks[i]), dests.weight(i))
	}
	return c.distGraph(op, ends, reorder, sources.Weights != nil, dests.Weights != nil)
}

// DistGraphCreate makes a communicator with a graph of which every rank knows any
// edges (MPI_Dist_graph_create): degrees[i] of them, one set of dests after the other,
// go from nodes[i] to a rank of dests. Neighbours of a rank come in the order of the
// ranks that knew of them. See DistGraphCreateAdjacent about reorder.
func (c *Comm) DistGraphCreate(nodes, degrees []int, dests Edges, reorder bool) (*Comm, error) {
	const op = "Comm.DistGraphCreate"
	err := c.checkGraph(op, Edges{Ranks: nodes}, dests)
	total := 0
	for _, n := range degrees {
		if err == nil && (n < 0 || n > len(dests.Ranks)-total) {
			err = fail(ErrArg, op, "a degree of %d, with %d edges left", n, len(dests.Ranks)-total)
		}
		total += n
	}
	if err == nil && (len(degrees) != len(nodes) || total != len(dests.Ranks)) {
		err = fail(ErrArg, op, "%d nodes with %d degrees, which sum up to %d, and %d edges", len(nodes), len(degrees), total, len(dests.Ranks))
	}
	if err != nil {
		return nil, c.report(err)
	}
	var ends []int64
	at := 0
	for i, from := range nodes {
		for range degrees[i] {
			from, to, w := int64(from), int64(dests.Ranks[at]), dests.weight(at)
			ends = append(ends, from, endOut, to, w, to, endIn, from, w)
			at++
		}
	}
	if !reorder {
		if ends, err = c.deliverEnds(op, ends); err != nil {
			return nil, c.report(err)
		}
	}
	weighted := dests.Weights != nil
	return c.distGraph(op, ends, reorder, weighted, weighted)
}

func (c *Comm) checkGraph(op string, lists ...Edges) error {
	err := c.live(op)
	if err == nil && c.Inter() {
		err = fail(ErrComm, op, "it is not for intercommunicators")
	}
	for _, e := range lists {
		if err == nil {
			err = c.checkEdges(op, e)
		}
	}
	return err
}

// Edges travel as ends: which node has it, whether the edge comes in or goes out,
// the node at the other end, and the weight, or unweighted.
const (
	endWords = 4

	endIn  = 0
	endOut = 1

	unweighted = -1
)

// weight returns the weight of an edge.
func (e Edges) weight(i int) int64 {
	if e.Weights == nil {
		return unweighted
	}
	return int64(e.Weights[i])
}

// distGraph makes the communicator of a graph. With reorder any rank may know its
// ends, else every rank its own. in and out say that this rank has given weights, if
// only of no edges.
func (c *Comm) distGraph(op string, ends []int64, reorder, in, out bool) (*Comm, error) {
	node := c.rank
	if reorder {
		var err error
		if ends, node, err = c.settleEnds(op, ends); err != nil {
			return nil, c.report(err)
		}
	}
	n, err := c.split(op, 0, node)
	if err != nil {
		return nil, err
	}
	t := &graph{distributed: true}
	for ; len(ends) > 0; ends = ends[endWords:] {
		switch {
		case ends[0] != int64(node):
		case ends[1] == endIn:
			t.sources, t.sourceW = append(t.sources, int(ends[2])), append(t.sourceW, int(ends[3]))
		default:
			t.dests, t.destW = append(t.dests, int(ends[2])), append(t.destW, int(ends[3]))
		}
	}
	t.sourceW, t.destW = weights(t.sourceW, in), weights(t.destW, out)
	n.topo = t
	return n, nil
}

// weights is nil if no rank has given any; edges without count 1.
func weights(w []int, given bool) []int {
	if len(w) == 0 && given {
		return []int{}
	}
	if !slices.ContainsFunc(w, func(w int) bool { return w != unweighted }) {
		return nil
	}
	for i := range w {
		if w[i] == unweighted {
			w[i] = 1
		}
	}
	return w
}

// deliverEnds gives every rank its own ends.
func (c *Comm) deliverEnds(op string, ends []int64) ([]int64, error) {
	out, in := make([]int64, c.size), make([]int64, c.size)
	for i := 0; i < len(ends); i += endWords {
		out[ends[i]] += endWords
	}
	if err := planAlltoall(c.beginCached(op, planOfAlltoall), Slice(out), Slice(in)).finish(); err != nil {
		return nil, err
	}
	outCounts, inCounts, total := make([]int, c.size), make([]int, c.size), 0
	displs := make([]int, c.size)
	for r := range c.size {
		if r > 0 {
			displs[r] = displs[r-1] + outCounts[r-1]
		}
		outCounts[r], inCounts[r] = int(out[r]), int(in[r])
		total += inCounts[r]
	}
	sorted, next := make([]int64, len(ends)), slices.Clone(displs)
	for ; len(ends) > 0; ends = ends[endWords:] {
		next[ends[0]] += copy(sorted[next[ends[0]]:], ends[:endWords])
	}
	mine := make([]int64, total)
	return mine, planAlltoallv(c.beginBlocking(op), Slice(sorted), outCounts, nil, Slice(mine), inCounts, nil).finish()
}

// settleEnds gives all ranks the whole graph, and each a node of it.
func (c *Comm) settleEnds(op string, ends []int64) (all []int64, node int, err error) {
	counts, total := make([]int, c.size), 0
	lengths, err := c.gatherInts(op, int64(len(ends)))
	if err != nil {
		return nil, 0, err
	}
	for r, n := range lengths {
		counts[r] = int(n)
		total += counts[r]
	}
	all = make([]int64, total)
	if ends == nil {
		ends = []int64{} // nil would be in place
	}
	if err := planAllgatherv(c.beginBlocking(op), Slice(ends), Slice(all), counts, nil).finish(); err != nil {
		return nil, 0, err
	}
	near := make([][]int, c.size)
	for e := all; len(e) > 0; e = e[endWords:] {
		near[e[0]] = append(near[e[0]], int(e[2]))
	}
	hosts, err := c.hosts(op)
	if err != nil {
		return nil, 0, err
	}
	nodes := settleNodes(c.size, func(node int) []int { return near[node] }, hosts)
	return all, c.placed(c.size, nodes), nil
}

// DistGraphNeighbors returns which ranks this one receives from and which it sends to
// (MPI_Dist_graph_neighbors).
func (c *Comm) DistGraphNeighbors() (sources, dests Edges, err error) {
	t, err := c.graph("Comm.DistGraphNeighbors", true)
	if err != nil {
		return Edges{}, Edges{}, c.report(err)
	}
	return Edges{slices.Clone(t.sources), slices.Clone(t.sourceW)}, Edges{slices.Clone(t.dests), slices.Clone(t.destW)}, nil
}
