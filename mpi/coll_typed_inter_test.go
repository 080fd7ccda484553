package mpi_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// TestInter_data: the collectives over data between two groups, rooted in the first
// one where there is a root.
func TestInter_data(t *testing.T) {
	onRanks(t, []int{2, 3, 5}, func(p *mpi.Proc) error {
		g, err := split(p, (p.World().Size()+1)/2)
		if err != nil {
			return err
		}
		own := rand.New(rand.NewPCG(9, uint64(p.World().Rank())))
		for _, n := range []int{0, 1, 40, 3000} {
			o := &typedOracle{g.Comm, n, blocking, []basic{{mpi.TypeInt32, 4}, {mpi.TypeInt32, 4}}, own}
			if err := errors.Join(g.dataOfAll(o), g.dataOfRoot(o)); err != nil {
				return fmt.Errorf("rank %d of group %d, %d elements: %w", g.Rank(), g.side, n, err)
			}
		}
		return g.Free()
	})
}

// others is what the ranks of the remote group have for rank to.
func (g groups) others(o *typedOracle, to int) (all []byte) {
	for r := range g.RemoteSize() {
		all = append(all, o.vec(g.remote(r), to, o.n)...)
	}
	return all
}

// sides returns the range of ranks of World of a group.
func (g groups) sides(side int) (from, to int) {
	if side == 0 {
		return 0, g.sizes[0]
	}
	return g.sizes[0], g.sizes[0] + g.sizes[1]
}

func (g groups) dataOfAll(o *typedOracle) error {
	me, theirs := g.Proc().World().Rank(), g.RemoteSize()
	from, to := g.sides(1 - g.side)
	mine := o.room(o.n).fill(o.vec(me, 0, o.n), 0)
	sum, all, allv, in, inw := o.room(o.n), o.room(o.n*theirs), o.room(o.n*theirs), o.room(o.n*theirs), o.room(o.n*theirs)
	out := o.room(o.n * theirs)
	counts := make([]int, theirs)
	var outw, roomw []mpi.Data
	for r := range theirs {
		out.fill(o.vec(me, g.remote(r)+1, o.n), r*o.n)
		outw = append(outw, o.room(o.n).fill(o.vec(me, g.remote(r)+1, o.n), 0).data())
		roomw = append(roomw, mpi.Bytes(inw.mem, r*o.n*inw.l.extent, o.n, inw.l.t))
		counts[r] = o.n
	}
	// The group's vector is cut into as many parts as it has ranks, and both must be
	// as long.
	part, parts := o.room(o.n), o.room(o.n*g.Size())
	parts.fill(o.vec(me, 0, o.n*g.Size()), 0)
	err := errors.Join(
		g.Allreduce(mine.data(), sum.data(), mpi.OpSum),
		g.Allgather(mine.data(), all.data()),
		g.Allgatherv(mine.data(), allv.data(), counts, nil),
		g.Alltoall(out.data(), in.data()),
		g.Alltoallw(outw, roomw),
		o.check("Allreduce", sum, o.sum(o.n, from, to), 0),
		o.check("Allgather", all, g.others(o, 0), 0),
		o.check("Allgatherv", allv, g.others(o, 0), 0),
		o.check("Alltoall", in, g.others(o, me+1), 0),
		o.check("Alltoallw", inw, g.others(o, me+1), 0))
	if g.sizes[0] == g.sizes[1] {
		size := len(o.vec(0, 0, o.n))
		err = errors.Join(err, g.ReduceScatterBlock(parts.data(), part.data(), mpi.OpSum),
			o.check("ReduceScatterBlock", part, o.sum(o.n*g.Size(), from, to)[g.Rank()*size:(g.Rank()+1)*size], 0))
	}
	return err
}

// dataOfRoot has a rank of the first group as root.
func (g groups) dataOfRoot(o *typedOracle) error {
	rootRank := g.sizes[0] - 1
	root, me, theirs := g.root(rootRank), g.Proc().World().Rank(), g.RemoteSize()
	from, to := g.sides(1)
	if root == mpi.Root {
		buf := o.room(o.n).fill(o.vec(me, 0, o.n), 0)
		gathered, gatheredv, sum := o.room(o.n*theirs), o.room(o.n*theirs), o.room(o.n)
		out := o.room(o.n * theirs)
		counts := make([]int, theirs)
		for r := range theirs {
			out.fill(o.vec(me, g.remote(r)+1, o.n), r*o.n)
			counts[r] = o.n
		}
		return errors.Join(
			g.Bcast(buf.data(), root),
			g.Gather(mpi.Data{}, gathered.data(), root), g.Gatherv(mpi.Data{}, gatheredv.data(), counts, nil, root),
			g.Scatter(out.data(), mpi.Data{}, root), g.Scatterv(out.data(), counts, nil, mpi.Data{}, root),
			g.Reduce(mpi.Data{}, sum.data(), mpi.OpSum, root),
			o.check("Gather", gathered, g.others(o, 0), 0), o.check("Gatherv", gatheredv, g.others(o, 0), 0),
			o.check("Reduce", sum, o.sum(o.n, from, to), 0))
	}
	mine := o.room(o.n).fill(o.vec(me, 0, o.n), 0)
	got, part, partv := o.room(o.n), o.room(o.n), o.room(o.n)
	err := errors.Join(
		g.Bcast(got.data(), root),
		g.Gather(mine.data(), mpi.Data{}, root), g.Gatherv(mine.data(), mpi.Data{}, nil, nil, root),
		g.Scatter(mpi.Data{}, part.data(), root), g.Scatterv(mpi.Data{}, nil, nil, partv.data(), root),
		g.Reduce(mine.data(), mpi.Data{}, mpi.OpSum, root))
	if root == mpi.ProcNull {
		return err
	}
	return errors.Join(err,
		o.check("Bcast", got, o.vec(rootRank, 0, o.n), 0),
		o.check("Scatter", part, o.vec(rootRank, me+1, o.n), 0), o.check("Scatterv", partv, o.vec(rootRank, me+1, o.n), 0))
}
