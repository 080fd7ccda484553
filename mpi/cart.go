package mpi

import (
	"cmp"
	"slices"
)

// cart is a Cartesian topology (MPI 4.1, section 8.5): ranks are numbered with
// the last coordinate running fastest.
type cart struct {
	dims    []int
	periods []bool
	coords  []int // of this rank
}

// DimsCreate chooses how many of n ranks to put along each dimension whose entry
// is 0, the larger ones first (MPI_Dims_create). The difference between the largest and
// the smallest is as small as can be; of several such choices it is that whose largest
// dimension is the smallest, then the second largest, and so on.
func DimsCreate(n int, dims []int) error {
	const op = "DimsCreate"
	rest, free := n, 0
	for _, d := range dims {
		switch {
		case d < 0:
			return fail(ErrDims, op, "%d along a dimension", d)
		case d == 0:
			free++
		case rest%d != 0:
			return fail(ErrDims, op, "%d ranks are no multiple of the dimensions that are given", n)
		default:
			rest /= d
		}
	}
	if n < 1 || free == 0 && rest != 1 {
		return fail(ErrDims, op, "the dimensions do not hold %d ranks", n)
	}
	best := make([]int, free)
	balance(rest, divisors(rest), best, nil)
	for i := range dims {
		if dims[i] == 0 {
			dims[i], best = best[0], best[1:]
		}
	}
	return nil
}

// balance finds factors of n, as many as best has and not rising, that differ
// the least from the largest to the smallest. Those found so far are in head; all
// that it has to choose from are in factors, which rise, so that among equals the
// first is kept.
func balance(n int, factors, best, head []int) {
	left := len(best) - len(head)
	most := n
	if len(head) > 0 {
		most = head[len(head)-1]
	}
	switch {
	case left == 0:
		return
	case left == 1:
		if all := append(head, n); n <= most && closer(all[0], n, best) {
			copy(best, all)
		}
		return
	}
	for _, f := range factors {
		largest := f
		if len(head) > 0 {
			largest = head[0]
		}
		if f > most || !closer(largest, root(n/f, left-1), best) {
			return // and larger ones leave less for the others
		}
		if n%f == 0 && root(n-1, left) < f { // else the others cannot be as small as f
			balance(n/f, factors, best, append(head, f))
		}
	}
}

// closer reports whether factors from largest to smallest differ less than those in best.
func closer(largest, smallest int, best []int) bool {
	return best[0] == 0 || largest-smallest < best[0]-best[len(best)-1]
}

// root returns the largest number whose power of k is n at most.
func root(n, k int) int {
	low, high := 0, n // that it is, and that it is at most
	for low < high {
		middle := low + (high-low+1)/2
		rest := n // how much of n is left when it is divided by middle so often
		for range k {
			rest /= middle
		}
		if rest > 0 { // middle to the power of k is n at most
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// divisors returns those of n, which rise.
func divisors(n int) (small []int) {
	var large []int
	for f := 1; f <= n/f; f++ {
		if n%f == 0 {
			small = append(small, f)
			if f != n/f {
				large = append(large, n/f)
			}
		}
	}
	slices.Reverse(large)
	return append(small, large...)
}

// CartCreate makes a communicator with a Cartesian topology (MPI_Cart_create):
// a grid of dims, round where periods says so. All ranks call it; those that
// the grid has no place for get nil. With reorder, neighbours in the grid are put
// on the same host as far as possible.
func (c *Comm) CartCreate(dims []int, periods []bool, reorder bool) (*Comm, error) {
	const op = "Comm.CartCreate"
	place, err := c.gridPlace(op, dims, periods, reorder)
	if err != nil {
		return nil, c.report(err)
	}
	grid, err := c.split(op, colorOf(place), place)
	if err != nil || grid == nil {
		return nil, err
	}
	grid.topo = &cart{slices.Clone(dims), slices.Clone(periods), coordsOf(dims, grid.rank)}
	return grid, nil
}

// CartMap returns the rank that this one has in what CartCreate makes with reorder,
// or Undefined (MPI_Cart_map). All ranks call it.
func (c *Comm) CartMap(dims []int, periods []bool) (int, error) {
	place, err := c.gridPlace("Comm.CartMap", dims, periods, true)
	return place, c.report(err)
}

// gridPlace returns the place of this rank in a grid, or Undefined.
func (c *Comm) gridPlace(op string, dims []int, periods []bool, reorder bool) (int, error) {
	if err := c.live(op); err != nil {
		return Undefined, err
	}
	n := 1
	for _, d := range dims {
		if d < 1 {
			return Undefined, fail(ErrDims, op, "%d along a dimension", d)
		}
		n = min(n*d, c.Size()+1) // which is too many
	}
	switch {
	case c.Inter():
		return Undefined, fail(ErrComm, op, "it is not for intercommunicators")
	case len(periods) != len(dims):
		return Undefined, fail(ErrArg, op, "%d dimensions, and periods of %d", len(dims), len(periods))
	case n > c.Size():
		return Undefined, fail(ErrArg, op, "a grid of %v has more places than the communicator ranks, %d", dims, c.Size())
	}
	var places []int
	if reorder {
		hosts, err := c.hosts(op)
		if err != nil {
			return Undefined, err
		}
		places = tile(dims, hosts[:n])
	}
	return c.placed(n, places), nil
}

// colorOf returns the color of Split of a rank with a place in the new communicator, or
// without one.
func colorOf(place int) int {
	if place == Undefined {
		return Undefined
	}
	return 0
}

// placed returns the place of this rank among n that are given out, or Undefined.
// places nil: each rank has its own.
func (c *Comm) placed(n int, places []int) int {
	switch {
	case c.rank >= n:
		return Undefined
	case places != nil:
		return places[c.rank]
	}
	return c.rank
}

// hosts returns the host of each rank.
func (c *Comm) hosts(op string) ([]int, error) {
	host, _ := c.p.job.Host()
	all, err := c.gatherInts(op, int64(host))
	hosts := make([]int, len(all))
	for i, h := range all {
		hosts[i] = int(h)
	}
	return hosts, err
}

// tile returns the place in a grid for each rank. When every host has the same
// number of ranks, and the grid can be cut into boxes of that many places, each
// host gets a box. Else ranks of one host
// follow one another.
func tile(dims, hosts []int) []int {
	order := byHost(hosts)
	box := boxFor(dims, perHost(hosts))
	places := make([]int, len(hosts))
	for i, r := range order {
		places[r] = i
		if box != nil {
			places[r] = inBox(dims, box, i)
		}
	}
	return places
}

// byHost returns the ranks, those of one host together.
func byHost(hosts []int) []int {
	order := make([]int, len(hosts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(hosts[a], hosts[b]) })
	return order
}

// perHost returns how many ranks each host has, or 0 if they differ.
func perHost(hosts []int) int {
	count := map[int]int{}
	for _, h := range hosts {
		count[h]++
	}
	n := 0
	for _, k := range count {
		if n != 0 && k != n {
			return 0
		}
		n = k
	}
	return n
}

// boxFor returns the box of n places that divides the grid and cuts the fewest
// neighbours apart, or nil.
func boxFor(dims []int, n int) (best []int) {
	least, places := -1, placesOf(dims)
	var try func(head []int, left int)
	try = func(head []int, left int) {
		if i := len(head); i < len(dims) {
			for d := 1; d <= min(dims[i], left); d++ {
				if dims[i]%d == 0 && left%d == 0 {
					try(append(head[:i:i], d), left/d)
				}
			}
			return
		}
		if left != 1 {
			return
		}
		apart := 0
		for i, d := range head {
			apart += (dims[i]/d - 1) * places / dims[i]
		}
		if least < 0 || apart < least {
			best, least = slices.Clone(head), apart
		}
	}
	if n > 0 {
		try(nil, n)
	}
	return best
}

// inBox returns the place of the i-th rank when boxes are filled one after the
// other.
func inBox(dims, box []int, i int) int {
	n := 1
	boxes := make([]int, len(dims))
	for k := range dims {
		n *= box[k]
		boxes[k] = dims[k] / box[k]
	}
	at, within := coordsOf(boxes, i/n), coordsOf(box, i%n)
	for k := range at {
		at[k] = at[k]*box[k] + within[k]
	}
	return placeOf(dims, at)
}

func placesOf(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

func coordsOf(dims []int, place int) []int {
	coords := make([]int, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		coords[i] = place % dims[i]
		place /= dims[i]
	}
	return coords
}

func placeOf(dims, coords []int) (place int) {
	for i, d := range dims {
		place = place*d + coords[i]
	}
	return place
}

// grid returns the Cartesian topology of c.
func (c *Comm) grid(op string) (*cart, error) {
	if err := c.live(op); err != nil {
		return nil, err
	}
	if t, ok := c.topo.(*cart); ok {
		return t, nil
	}
	return nil, fail(ErrTopology, op, "the communicator has no Cartesian topology: make one with CartCreate")
}

// Cart returns the grid, where it is round, and the coordinates of this rank
// (MPI_Cart_get).
func (c *Comm) Cart() (dims []int, periods []bool, coords []int, err error) {
	t, err := c.grid("Comm.Cart")
	if err != nil {
		return nil, nil, nil, c.report(err)
	}
	return slices.Clone(t.dims), slices.Clone(t.periods), slices.Clone(t.coords), nil
}

// CartRank returns the rank at coordinates (MPI_Cart_rank). They may lie outside
// of the grid where it is round.
func (c *Comm) CartRank(coords ...int) (int, error) {
	const op = "Comm.CartRank"
	t, err := c.grid(op)
	if err != nil {
		return ProcNull, c.report(err)
	}
	if len(coords) != len(t.dims) {
		return ProcNull, c.reportf(ErrArg, op, "%d coordinates in a grid of %d dimensions", len(coords), len(t.dims))
	}
	rank, ok := t.rank(coords)
	if !ok {
		return ProcNull, c.reportf(ErrArg, op, "%v lies outside of the grid of %v", coords, t.dims)
	}
	return rank, nil
}

func (t *cart) rank(coords []int) (rank int, ok bool) {
	at := slices.Clone(coords)
	for i, d := range t.dims {
		if t.periods[i] {
			at[i] = (at[i]%d + d) % d
		}
		if at[i] < 0 || at[i] >= d {
			return ProcNull, false
		}
	}
	return placeOf(t.dims, at), true
}

// CartCoords returns the coordinates of a rank (MPI_Cart_coords).
func (c *Comm) CartCoords(rank int) ([]int, error) {
	const op = "Comm.CartCoords"
	t, err := c.grid(op)
	if err == nil && (rank < 0 || rank >= c.size) {
		err = fail(ErrRank, op, "%d is no rank of this communicator", rank)
	}
	if err != nil {
		return nil, c.report(err)
	}
	return coordsOf(t.dims, rank), nil
}

// CartShift returns which rank this one receives from and which it sends to when all
// shift something by disp along a dimension (MPI_Cart_shift). Over an edge there
// is ProcNull.
func (c *Comm) CartShift(dim, disp int) (source, dest int, err error) {
	const op = "Comm.CartShift"
	t, err := c.grid(op)
	if err == nil && (dim < 0 || dim >= len(t.dims)) {
		err = fail(ErrArg, op, "there is no dimension %d", dim)
	}
	if err != nil {
		return ProcNull, ProcNull, c.report(err)
	}
	at := slices.Clone(t.coords)
	at[dim] = t.coords[dim] - disp
	source, _ = t.rank(at)
	at[dim] = t.coords[dim] + disp
	dest, _ = t.rank(at)
	return source, dest, nil
}

// CartSub cuts the grid into grids of the dimensions that remain
// (MPI_Cart_sub). When none do, rank 0 gets a grid without dimensions, and the others
// nil: the standard does not say which does, and so it is with MPICH.
func (c *Comm) CartSub(remain ...bool) (*Comm, error) {
	const op = "Comm.CartSub"
	t, err := c.grid(op)
	if err == nil && len(remain) != len(t.dims) {
		err = fail(ErrArg, op, "%d dimensions are named of %d", len(remain), len(t.dims))
	}
	if err != nil {
		return nil, c.report(err)
	}
	sub := &cart{}
	color, key := 0, 0
	for i, d := range t.dims {
		if remain[i] {
			key = key*d + t.coords[i]
			sub.dims, sub.periods, sub.coords = append(sub.dims, d), append(sub.periods, t.periods[i]), append(sub.coords, t.coords[i])
		} else {
			color = color*d + t.coords[i]
		}
	}
	if len(sub.dims) == 0 && c.rank > 0 {
		color = Undefined
	}
	n, err := c.split(op, color, key)
	if err != nil || n == nil {
		return nil, err
	}
	n.topo = sub
	return n, nil
}
