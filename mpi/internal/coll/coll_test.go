package coll

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/mem"
)

// wire is a Transport in memory: a channel for each pair of ranks.
type wire struct {
	rank  int
	pipes [][]chan []byte // [from][to]
	words []uint64
}

var errLength = errors.New("message has another length than the receive")

func (w *wire) Rank() int { return w.rank }
func (w *wire) Size() int { return len(w.pipes) }

func (w *wire) Send(b []byte, to int) error {
	w.pipes[w.rank][to] <- slices.Clone(b)
	return nil
}

func (w *wire) Recv(b []byte, from int) error {
	if got := <-w.pipes[from][w.rank]; copy(b, got) != len(b) || len(got) != len(b) {
		return errLength
	}
	return nil
}

func (w *wire) Sendrecv(out []byte, to int, in []byte, from int) error {
	return errors.Join(w.Send(out, to), w.Recv(in, from))
}

func (w *wire) Scratch(n int) []byte {
	if len(w.words) < (n+7)/8 {
		w.words = make([]uint64, (n+7)/8)
	}
	return mem.BytesOf(w.words)[:n]
}

// world runs body on n ranks and reports what they return.
func world(t *testing.T, n int, body func(Transport) error) {
	t.Helper()
	pipes := make([][]chan []byte, n)
	for from := range pipes {
		pipes[from] = make([]chan []byte, n)
		for to := range pipes[from] {
			pipes[from][to] = make(chan []byte, 64)
		}
	}
	var group sync.WaitGroup
	errs := make([]error, n)
	for rank := range n {
		group.Go(func() { errs[rank] = body(&wire{rank: rank, pipes: pipes}) })
	}
	group.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Errorf("%d ranks: rank %d: %v", n, rank, err)
		}
	}
	for from := range pipes {
		for to, pipe := range pipes[from] {
			if len(pipe) > 0 {
				t.Errorf("%d ranks: %d messages from %d to %d are left", n, len(pipe), from, to)
			}
		}
	}
}

// sizes are numbers of ranks: powers of two, those around them, and primes.
var sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17}

func TestBarrier_waitsForAll(t *testing.T) {
	for _, n := range sizes {
		var lock sync.Mutex
		entered := 0
		world(t, n, func(tr Transport) error {
			lock.Lock()
			entered++
			lock.Unlock()
			if err := Barrier(tr); err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			if entered != n {
				return fmt.Errorf("left the barrier when %d of %d had entered", entered, n)
			}
			return nil
		})
	}
}

func TestBcast_everyRootAndLength(t *testing.T) {
	algorithms := map[string]func(Transport, []byte, int) error{
		"choice": Bcast, "binomial": BcastBinomial, "scatter": BcastScatterAllgather,
	}
	for name, bcast := range algorithms {
		for _, n := range sizes {
			for root := range n {
				for _, length := range []int{0, 1, 2, n - 1, n, 4*n + 3} {
					want := make([]byte, length)
					for i := range want {
						want[i] = byte(i*7 + root + 1)
					}
					world(t, n, func(tr Transport) error {
						buf := make([]byte, length)
						if tr.Rank() == root {
							copy(buf, want)
						}
						if err := bcast(tr, buf, root); err != nil {
							return fmt.Errorf("%s of %d bytes from %d: %w", name, length, root, err)
						}
						if !slices.Equal(buf, want) {
							return fmt.Errorf("%s of %d bytes from %d: wrong data", name, length, root)
						}
						return nil
					})
				}
			}
		}
	}
}

func TestBcast_largeTakesEveryPath(t *testing.T) {
	for _, n := range []int{2, 4, 5} {
		want := make([]byte, 2<<20)
		rand.NewChaCha8([32]byte{byte(n)}).Read(want)
		world(t, n, func(tr Transport) error {
			buf := make([]byte, len(want))
			if tr.Rank() == 1 {
				copy(buf, want)
			}
			if err := Bcast(tr, buf, 1); err != nil {
				return err
			}
			if !slices.Equal(buf, want) {
				return errors.New("wrong data")
			}
			return nil
		})
	}
}

func sum[T mem.Scalar](in, inout []T) {
	for i := range inout {
		inout[i] = in[i] + inout[i]
	}
}

type reducer[T mem.Scalar] func(Transport, []T, func(in, inout []T)) error

func TestAllreduce_sums(t *testing.T) {
	algorithms := map[string]reducer[int32]{
		"choice": Allreduce[int32], "doubling": AllreduceDoubling[int32],
		"rabenseifner": AllreduceRabenseifner[int32], "ring": AllreduceRing[int32],
	}
	for name, allreduce := range algorithms {
		for _, n := range sizes {
			for _, length := range []int{0, 1, 3, n, n + 1, 5*n - 1, 1000} {
				world(t, n, func(tr Transport) error {
					v := make([]int32, length)
					for i := range v {
						v[i] = int32(i + 1000*tr.Rank())
					}
					if err := allreduce(tr, v, sum[int32]); err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					for i := range v {
						if want := int32(n*i + 1000*n*(n-1)/2); v[i] != want {
							return fmt.Errorf("%s of %d: element %d is %d, want %d", name, length, i, v[i], want)
						}
					}
					return nil
				})
			}
		}
	}
}

// TestAllreduce_sameBitsEverywhere reduces numbers whose sum depends on the
// order: the ranks must agree all the same.
func TestAllreduce_sameBitsEverywhere(t *testing.T) {
	for _, length := range []int{1, 100, 5000, 140_000} {
		for _, n := range []int{2, 3, 5, 8} {
			results := make([][]float64, n)
			world(t, n, func(tr Transport) error {
				rnd := rand.New(rand.NewPCG(1, uint64(tr.Rank())))
				v := make([]float64, length)
				for i := range v {
					v[i] = rnd.NormFloat64() * 1e10
				}
				results[tr.Rank()] = v
				return Allreduce(tr, v, sum[float64])
			})
			for rank := range results {
				if !slices.Equal(results[rank], results[0]) {
					t.Errorf("%d elements on %d ranks: rank %d has another result than rank 0", length, n, rank)
				}
			}
		}
	}
}

// TestAllreduceDoubling_keepsOrder reduces by an operation that does not
// commute: 2x2 matrices of determinant 1, as four elements.
func TestAllreduceDoubling_keepsOrder(t *testing.T) {
	multiply := func(in, inout []int64) {
		a, b := [4]int64(in), [4]int64(inout)
		copy(inout, []int64{a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3], a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3]})
	}
	matrix := func(rank int) []int64 {
		k := int64(rank + 1)
		return []int64{1 + k*k, k, k, 1}
	}
	for _, n := range sizes {
		want := matrix(0)
		for rank := 1; rank < n; rank++ {
			right := matrix(rank)
			multiply(want, right)
			want = right
		}
		world(t, n, func(tr Transport) error {
			v := matrix(tr.Rank())
			if err := AllreduceDoubling(tr, v, multiply); err != nil {
				return err
			}
			if !slices.Equal(v, want) {
				return fmt.Errorf("got %v, want %v", v, want)
			}
			return nil
		})
	}
}

func TestChoose_firstRowThatFits(t *testing.T) {
	table := []rule[string]{{upTo: 10, use: "small"}, {ranks: 4, use: "many"}, {use: "rest"}}
	for _, c := range []struct {
		bytes, ranks int
		want         string
	}{{0, 2, "small"}, {10, 9, "small"}, {11, 4, "many"}, {11, 3, "rest"}} {
		if got := choose(table, c.bytes, c.ranks); got != c.want {
			t.Errorf("choose(%d bytes, %d ranks) = %s, want %s", c.bytes, c.ranks, got, c.want)
		}
	}
}
