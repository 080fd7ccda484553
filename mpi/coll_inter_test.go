package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// groups is an intercommunicator of the first ranks of World and the others.
type groups struct {
	*mpi.Comm
	side  int
	sizes [2]int
}

// remote is the rank in World of a rank of the remote group.
func (g groups) remote(r int) int { return r + (1-g.side)*g.sizes[0] }

func split(p *mpi.Proc, first int) (groups, error) {
	w := p.World()
	g := groups{sizes: [2]int{first, w.Size() - first}}
	leader := first
	if w.Rank() >= first {
		g.side, leader = 1, 0
	}
	half, err := w.Split(g.side, 0)
	if err != nil {
		return g, err
	}
	g.Comm, err = half.CreateInter(0, w, leader, 1)
	return g, err
}

// root is what this rank gives as root when rank r of group 0 is the root.
func (g groups) root(r int) int {
	switch {
	case g.side == 1:
		return r
	case g.Rank() == r:
		return mpi.Root
	}
	return mpi.ProcNull
}

func TestInter_collectives(t *testing.T) {
	onRanks(t, []int{2, 3, 7}, func(p *mpi.Proc) error {
		g, err := split(p, (p.World().Size()+1)/2)
		if err != nil {
			return err
		}
		for _, n := range []int{0, 1, 60, 12_000} {
			for _, f := range []form{blocking, nonblocking, persistent} {
				for _, test := range []func(form, int) error{g.all, g.rooted, g.scattered} {
					if err := test(f, n); err != nil {
						return fmt.Errorf("rank %d of group %d, %d elements: %w", g.Rank(), g.side, n, err)
					}
				}
			}
		}
		return g.Free()
	})
}

// all tests collectives without root.
func (g groups) all(f form, n int) error {
	c, me := g.Comm, g.Proc().World().Rank()
	theirs := g.RemoteSize()
	sum, whole, mixed := make([]int, n), []int(nil), []int(nil)
	counts := make([]int, theirs)
	var wholev []int
	for r := range theirs {
		v := vector[int](g.remote(r), n)
		mpi.Sum(v, sum)
		whole = append(whole, v...)
		mixed = append(mixed, vector[int](g.remote(r)+2*me, n)...)
		counts[r] = n * (g.remote(r) % 2)
		wholev = append(wholev, v[:counts[r]]...)
	}
	var out []int
	for r := range theirs {
		out = append(out, vector[int](me+2*g.remote(r), n)...)
	}
	mine := vector[int](me, n)
	got, all, allv, in := make([]int, n), make([]int, len(whole)), make([]int, len(wholev)), make([]int, len(mixed))
	return errors.Join(
		f.call(c.Barrier, c.Ibarrier, c.BarrierInit),
		f.call(
			func() error { return mpi.Allreduce(c, mine, got, mpi.Sum) },
			func() (mpi.Request, error) { return mpi.Iallreduce(c, mine, got, mpi.Sum) },
			func() (*mpi.Persistent, error) { return mpi.AllreduceInit(c, mine, got, mpi.Sum) }),
		f.call(
			func() error { return mpi.Allgather(c, mine, all) },
			func() (mpi.Request, error) { return mpi.Iallgather(c, mine, all) },
			func() (*mpi.Persistent, error) { return mpi.AllgatherInit(c, mine, all) }),
		f.call(
			func() error { return mpi.Allgatherv(c, mine[:n*(me%2)], allv, counts, nil) },
			func() (mpi.Request, error) { return mpi.Iallgatherv(c, mine[:n*(me%2)], allv, counts, nil) },
			func() (*mpi.Persistent, error) { return mpi.AllgathervInit(c, mine[:n*(me%2)], allv, counts, nil) }),
		f.call(
			func() error { return mpi.Alltoall(c, out, in) },
			func() (mpi.Request, error) { return mpi.Ialltoall(c, out, in) },
			func() (*mpi.Persistent, error) { return mpi.AlltoallInit(c, out, in) }),
		expect("Allreduce", got, sum), expect("Allgather", all, whole), expect("Allgatherv", allv, wholev), expect("Alltoall", in, mixed))
}

// rooted tests collectives whose root is the last of group 0.
func (g groups) rooted(f form, n int) error {
	c, last := g.Comm, g.sizes[0]-1
	root, me := g.root(last), g.Proc().World().Rank()
	var whole []int
	sum := make([]int, n)
	for r := range g.sizes[1] {
		whole = append(whole, vector[int](g.sizes[0]+r, n)...)
		mpi.Sum(vector[int](g.sizes[0]+r, n), sum)
	}
	mine, all, got := vector[int](me, n), make([]int, len(whole)), make([]int, n)
	cast, part, parts := slices.Clone(mine), make([]int, n), slices.Clone(whole)
	err := errors.Join(
		f.call(
			func() error { return mpi.Bcast(c, cast, root) },
			func() (mpi.Request, error) { return mpi.Ibcast(c, cast, root) },
			func() (*mpi.Persistent, error) { return mpi.BcastInit(c, cast, root) }),
		f.call(
			func() error { return mpi.Gather(c, mine, all, root) },
			func() (mpi.Request, error) { return mpi.Igather(c, mine, all, root) },
			func() (*mpi.Persistent, error) { return mpi.GatherInit(c, mine, all, root) }),
		f.call(
			func() error { return mpi.Scatter(c, parts, part, root) },
			func() (mpi.Request, error) { return mpi.Iscatter(c, parts, part, root) },
			func() (*mpi.Persistent, error) { return mpi.ScatterInit(c, parts, part, root) }),
		f.call(
			func() error { return mpi.Reduce(c, mine, got, mpi.Sum, root) },
			func() (mpi.Request, error) { return mpi.Ireduce(c, mine, got, mpi.Sum, root) },
			func() (*mpi.Persistent, error) { return mpi.ReduceInit(c, mine, got, mpi.Sum, root) }))
	switch {
	case err != nil:
		return err
	case root == mpi.Root:
		return errors.Join(expect("Gather", all, whole), expect("Reduce", got, sum))
	case root == mpi.ProcNull:
		return expect("Bcast to nobody", cast, mine)
	}
	return errors.Join(expect("Bcast", cast, vector[int](last, n)), expect("Scatter", part, mine))
}

// scattered tests v forms and reductions that are scattered.
func (g groups) scattered(f form, n int) error {
	c, me := g.Comm, g.Proc().World().Rank()
	last, ours := g.sizes[0]-1, g.Size()
	counts, displs, total := make([]int, g.RemoteSize()), make([]int, g.RemoteSize()), 0
	for r := range counts {
		counts[r], displs[r] = n*(r%2+1), total+1
		total += counts[r] + 1
	}
	mine := vector[int](me, n*(g.Rank()%2+1))
	room, part := make([]int, total), make([]int, len(mine))
	// Each group gives the same number of elements in all.
	each := n * g.sizes[0] * g.sizes[1] / ours
	v, block := vector[int](me, each*ours), make([]int, each)
	sum := make([]int, each*ours)
	for r := range g.RemoteSize() {
		mpi.Sum(vector[int](g.remote(r), each*ours), sum)
	}
	root := g.root(last)
	err := errors.Join(
		f.call(
			func() error { return mpi.Gatherv(c, mine, room, counts, displs, root) },
			func() (mpi.Request, error) { return mpi.Igatherv(c, mine, room, counts, displs, root) },
			func() (*mpi.Persistent, error) { return mpi.GathervInit(c, mine, room, counts, displs, root) }),
		f.call(
			func() error { return mpi.Scatterv(c, room, counts, displs, part, root) },
			func() (mpi.Request, error) { return mpi.Iscatterv(c, room, counts, displs, part, root) },
			func() (*mpi.Persistent, error) { return mpi.ScattervInit(c, room, counts, displs, part, root) }),
		f.call(
			func() error { return mpi.ReduceScatterBlock(c, v, block, mpi.Sum) },
			func() (mpi.Request, error) { return mpi.IreduceScatterBlock(c, v, block, mpi.Sum) },
			func() (*mpi.Persistent, error) { return mpi.ReduceScatterBlockInit(c, v, block, mpi.Sum) }),
		expect("ReduceScatterBlock", block, sum[each*g.Rank():each*(g.Rank()+1)]))
	if err != nil || g.side == 0 {
		return err
	}
	return expect("Gatherv and Scatterv back", part, mine)
}

func TestInter_errors(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		g, err := split(p, 1)
		if err != nil {
			return err
		}
		v := make([]int, 2)
		return errors.Join(
			wantClass(mpi.Scan(g.Comm, nil, v, mpi.Sum), mpi.ErrComm),
			wantClass(mpi.Bcast(g.Comm, v, 2), mpi.ErrRoot),
			wantClass(mpi.Allreduce(g.Comm, nil, v, mpi.Sum), mpi.ErrBuffer),
			wantClass(mpi.ReduceScatterBlock(g.Comm, nil, v, mpi.Sum), mpi.ErrBuffer),
			wantClass(mpi.Bcast(p.World(), v, mpi.Root), mpi.ErrRoot),
			g.Free(),
			wantClass(g.Barrier(), mpi.ErrComm),
		)
	})
}
