package mpi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// housed is a rank that says that it shares its host with others.
type housed struct {
	boot.Job
	perHost int
}

func (h housed) Host() (host, local int) { return h.Rank() / h.perHost, h.Rank() % h.perHost }

// affine composes maps x -> a x + b, a in the upper half of each number: the order
// matters.
func affine(in, inout []uint64) {
	for i, f := range in[:len(inout)] {
		g := inout[i]
		fa, fb, ga, gb := uint32(f>>32), uint32(f), uint32(g>>32), uint32(g)
		inout[i] = uint64(fa*ga)<<32 | uint64(fa*gb+fb)
	}
}

// composed is the composition of the maps of ranks from..to-1.
func composed(n, from, to int) []uint64 {
	acc := maps(from, n)
	for r := from + 1; r < to; r++ {
		next := maps(r, n)
		affine(acc, next)
		acc = next
	}
	return acc
}

// maps are those of a rank.
func maps(r, n int) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		v[i] = uint64(2*r+3)<<32 | uint64(i+7*r+1)
	}
	return v
}

// inOrder tests reductions whose order matters.
func inOrder(c *mpi.Comm, n int) error {
	me, p := c.Rank(), c.Size()
	if n%p != 0 {
		n += p - n%p
	}
	whole := composed(n, 0, p)
	got, all, part, upTo, before := make([]uint64, n), make([]uint64, n), make([]uint64, n/p), make([]uint64, n), make([]uint64, n)
	err := errors.Join(
		mpi.Reduce(c, maps(me, n), got, affine, p-1, mpi.NonCommutative),
		mpi.Allreduce(c, maps(me, n), all, affine, mpi.NonCommutative),
		mpi.ReduceScatterBlock(c, maps(me, n), part, affine, mpi.NonCommutative),
		mpi.Scan(c, maps(me, n), upTo, affine, mpi.NonCommutative),
		mpi.Exscan(c, maps(me, n), before, affine, mpi.NonCommutative),
		expect("Allreduce", all, whole), expect("ReduceScatterBlock", part, whole[me*n/p:(me+1)*n/p]),
		expect("Scan", upTo, composed(n, 0, me+1)))
	if me == p-1 {
		err = errors.Join(err, expect("Reduce", got, whole))
	}
	if me > 0 {
		err = errors.Join(err, expect("Exscan", before, composed(n, 0, me)))
	}
	return err
}

func TestReductions_inTheOrderOfRanks(t *testing.T) {
	onRanks(t, []int{1, 2, 3, 5, 6, 8}, func(p *mpi.Proc) error {
		for _, n := range []int{1, 13, 6000} {
			if err := inOrder(p.World(), n); err != nil {
				return fmt.Errorf("%d elements: %w", n, err)
			}
		}
		return nil
	})
}

// TestCollectives_manyPerHost runs everything where ranks share hosts, so that
// the hierarchical algorithms are chosen.
func TestCollectives_manyPerHost(t *testing.T) {
	oneGoroutine(t)
	for _, ranks := range []int{3, 6, 7} {
		for _, perHost := range []int{2, 3} {
			w := newSimWorld(sim.Config{}, ranks)
			w.Launch(w.nodes, func(task *sim.Task, r *sim.Rank) error {
				ctx, err := w.open(task, r)
				if err != nil {
					return err
				}
				p, err := mpi.New(housed{r, perHost}, ctx, w.mpi)
				if err != nil {
					return err
				}
				c := p.World()
				odd, err := c.Split(c.Rank()%2, -c.Rank())
				if err != nil {
					return err
				}
				for _, c := range []*mpi.Comm{c, odd} {
					for _, n := range []int{0, 1, 8, 3000} {
						if err := errors.Join((oracle[int32]{c, n, blocking}).all(), (oracle[int16]{c, n, nonblocking}).all(), inOrder(c, n)); err != nil {
							return err
						}
					}
				}
				return p.Finalize()
			})
			if err := w.Run(); err != nil {
				t.Fatalf("%d ranks, %d on a host: %v", ranks, perHost, err)
			}
		}
	}
}
