package coll

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func nothing(int) error { return nil }

func TestBarrier_waitsForAll(t *testing.T) {
	algorithms := variants[func(*Schedule, Team)]{"choice": Barrier, "dissemination": BarrierDissemination}
	for i, place := range placements {
		algorithms[fmt.Sprint("hosts", i)] = func(s *Schedule, t Team) {
			if t = hosted(t, place); t.Hosts != nil {
				BarrierHosts(s, t)
			} else {
				Barrier(s, t)
			}
		}
		share := slotted()
		algorithms[fmt.Sprint("hosts with slots", i)] = func(s *Schedule, t Team) { Barrier(s, share(hosted(t, place))) }
	}
	share := slotted()
	algorithms["slots"] = func(s *Schedule, t Team) { BarrierSlots(s, share(t)) }
	algorithms.each(t, func(t *testing.T, barrier func(*Schedule, Team)) {
		for _, n := range sizes {
			if err := world(n, barrier, nothing, nothing); err != nil {
				t.Fatalf("%d ranks: %v", n, err)
			}
			for late := range n {
				if err := lateBarrier(n, late, barrier); err != nil {
					t.Fatalf("%d ranks, %d comes late: %v", n, late, err)
				}
			}
		}
	})
}

// lateBarrier lets all ranks but one go as far as they can: none may come
// through.
func lateBarrier(n, late int, barrier func(*Schedule, Team)) error {
	network := newNet(uint64(n + late))
	for range 50 {
		network.deliver()
	}
	schedules := make([]*Schedule, n)
	for r := range schedules {
		schedules[r] = &Schedule{}
		barrier(schedules[r], Team{Me: r, Size: n})
	}
	for range 50 {
		for r, s := range schedules {
			if r != late && s.Advance(card{network, int32(r)}) {
				return fmt.Errorf("rank %d left the barrier", r)
			}
		}
		network.deliver()
	}
	return network.run(schedules)
}

type bcaster func(*Schedule, Team, []byte, int)

func TestBcast_everyRootAndLength(t *testing.T) {
	algorithms := variants[bcaster]{
		"choice": Bcast, "binomial": BcastBinomial, "scatter": BcastScatterAllgather, "chain": BcastChain,
	}
	for i, place := range placements {
		algorithms[fmt.Sprint("hosts", i)] = func(s *Schedule, t Team, buf []byte, root int) {
			if t = hosted(t, place); t.Hosts != nil {
				BcastHosts(s, t, buf, root)
			}
			Bcast(s, t, buf, root) // chooses it
		}
		algorithms[fmt.Sprint("multileader", i)] = func(s *Schedule, t Team, buf []byte, root int) {
			if t = hosted(t, place); t.Hosts != nil {
				BcastMultiLeader(s, t, buf, root)
			} else {
				Bcast(s, t, buf, root)
			}
		}
	}
	share := slotted()
	algorithms["slots"] = func(s *Schedule, t Team, buf []byte, root int) { bcastNear(s, share(t), buf, root) }
	algorithms["choice of slots"] = func(s *Schedule, t Team, buf []byte, root int) { Bcast(s, share(t), buf, root) }
	for i, place := range placements {
		algorithms[fmt.Sprint("hosts with slots", i)] = func(s *Schedule, t Team, buf []byte, root int) { Bcast(s, share(hosted(t, place)), buf, root) }
	}
	algorithms.each(t, func(t *testing.T, bcast bcaster) {
		for _, n := range sizes {
			for root := range n {
				for _, length := range []int{0, 1, 2, n - 1, n, 4*n + 3} {
					testBcast(t, bcast, n, root, length)
				}
			}
		}
		testBcast(t, bcast, 3, 1, 5*chainSegment+7)
		testBcast(t, bcast, 4, 2, 2<<20)
	})
}

func testBcast(t *testing.T, bcast bcaster, n, root, length int) {
	t.Helper()
	want := filled(length, root)
	bufs := make([][]byte, n)
	for r := range bufs {
		bufs[r] = make([]byte, length)
	}
	err := world(n,
		func(s *Schedule, t Team) { bcast(s, t, bufs[t.Me], root) },
		func(r int) error {
			clear(bufs[r])
			copy(bufs[root], want)
			return nil
		},
		func(r int) error { return same(bufs[r], want) })
	if err != nil {
		t.Fatalf("%d bytes from %d of %d ranks: %v", length, root, n, err)
	}
}

type reducer func(s *Schedule, t Team, in, out []byte, root int)

func TestReduce_everyRootAndOrder(t *testing.T) {
	algorithms := variants[reducer]{"choice": Reduce, "binomial": ReduceBinomial, "rabenseifner": ReduceRabenseifner}
	for i, place := range placements {
		algorithms[fmt.Sprint("hosts", i)] = func(s *Schedule, t Team, in, out []byte, root int) {
			Reduce(s, hosted(t, place), in, out, root)
		}
	}
	share := slotted()
	for i, place := range placements {
		algorithms[fmt.Sprint("hosts with slots", i)] = func(s *Schedule, t Team, in, out []byte, root int) { Reduce(s, share(hosted(t, place)), in, out, root) }
	}
	algorithms["choice of slots"] = func(s *Schedule, t Team, in, out []byte, root int) { Reduce(s, share(t), in, out, root) }
	algorithms["slots"] = func(s *Schedule, t Team, in, out []byte, root int) { ReduceSlots(s, share(t), in, out, root) }
	algorithms.each(t, func(t *testing.T, reduce reducer) {
		for _, n := range sizes {
			for root := range n {
				for _, count := range []int{1, n, 3*n + 1} {
					for _, red := range reductions {
						testReduce(t, reduce, red, n, root, count)
					}
				}
			}
		}
		for _, red := range reductions {
			testReduce(t, reduce, red, 1, 0, 0)
			testReduce(t, reduce, red, 5, 3, 20_000)
			testReduce(t, reduce, red, 6, 1, 40_000) // in segments
			testReduce(t, reduce, red, 2, 0, 60_000)
		}
	})
}

func testReduce(t *testing.T, reduce reducer, red reduction, n, root, count int) {
	t.Helper()
	length := count * red.elem
	want := red.fold(length, 0, n)
	in, out := make([][]byte, n), make([]byte, 0)
	for r := range in {
		in[r] = words(length)
	}
	if out = words(length); root%2 == 0 {
		out = in[root] // in place
	}
	err := world(n,
		func(s *Schedule, t Team) {
			s.Reduction(red.op, red.elem, red.commutes)
			result := out
			if t.Me != root {
				result = nil
			}
			reduce(s, t, in[t.Me], result, root)
		},
		func(r int) error {
			clear(out)
			for r := range in {
				fill(in[r], r)
			}
			return nil
		},
		func(r int) error {
			if r != root {
				return same(in[r], filled(length, r)) // it is not changed
			}
			return same(out, want)
		})
	if err != nil {
		t.Fatalf("%d elements of %T to %d of %d ranks: %v", count, red.op, root, n, err)
	}
}

type allreducer func(s *Schedule, t Team, in, v []byte)

func TestAllreduce_everyOrder(t *testing.T) {
	share := slotted()
	algorithms := variants[allreducer]{
		"choice": Allreduce, "linear": AllreduceLinear,
		"slots":        func(s *Schedule, t Team, in, v []byte) { Allreduce(s, share(t), in, v) },
		"doubling":     where(AllreduceDoubling),
		"rabenseifner": where(AllreduceRabenseifner),
		"ring": where(func(s *Schedule, t Team, v []byte) {
			if s.commutes {
				AllreduceRing(s, t, v)
			} else {
				Allreduce(s, t, v, v)
			}
		}),
	}
	for i, place := range placements {
		algorithms[fmt.Sprint("hosts", i)] = func(s *Schedule, t Team, in, v []byte) { Allreduce(s, hosted(t, place), in, v) }
		share := slotted()
		algorithms[fmt.Sprint("hosts with slots", i)] = func(s *Schedule, t Team, in, v []byte) { Allreduce(s, share(hosted(t, place)), in, v) }
		algorithms[fmt.Sprint("multileader", i)] = func(s *Schedule, t Team, in, v []byte) {
			if t = hosted(t, place); t.Hosts != nil && s.commutes {
				AllreduceMultiLeader(s, t, in, v)
			} else {
				Allreduce(s, t, in, v)
			}
		}
	}
	algorithms.each(t, func(t *testing.T, allreduce allreducer) {
		for _, n := range sizes {
			for _, count := range []int{0, 1, 3, n, n + 1, 5*n - 1, 1000} {
				for _, red := range reductions {
					testAllreduce(t, allreduce, red, n, count)
				}
			}
		}
		for _, red := range reductions {
			testAllreduce(t, allreduce, red, 3, 20_000)
			testAllreduce(t, allreduce, red, 5, 140_000)
		}
	})
}

func testAllreduce(t *testing.T, allreduce allreducer, red reduction, n, count int) {
	t.Helper()
	length := count * red.elem
	want := red.fold(length, 0, n)
	in, v := make([][]byte, n), make([][]byte, n)
	for r := range v {
		in[r], v[r] = words(length), words(length)
		if (n+count)%2 == 0 { // in place
			in[r] = v[r]
		}
	}
	err := world(n,
		func(s *Schedule, t Team) {
			s.Reduction(red.op, red.elem, red.commutes)
			allreduce(s, t, in[t.Me], v[t.Me])
		},
		func(r int) error { fill(in[r], r); return nil },
		func(r int) error {
			if (n+count)%2 != 0 {
				if err := same(in[r], filled(length, r)); err != nil {
					return err
				}
			}
			return same(v[r], want)
		})
	if err != nil {
		t.Fatalf("%d elements of %T on %d ranks: %v", count, red.op, n, err)
	}
}

// where makes an Allreduce of one that works in place only.
func where(allreduce func(s *Schedule, t Team, v []byte)) allreducer {
	return func(s *Schedule, t Team, in, v []byte) {
		s.Copy(v, in)
		allreduce(s, t, v)
	}
}

// TestGather also tests Scatter, which is the same the other way round.
func TestGather_everyRootAndLength(t *testing.T) {
	type pair struct {
		gather  func(s *Schedule, t Team, mine, all []byte, root int)
		scatter func(s *Schedule, t Team, all, mine []byte, root int)
	}
	even := func(s *Schedule, all []byte, t Team) [][]byte {
		if all == nil {
			return nil
		}
		return s.Even(all, t.Size)
	}
	share := slotted()
	algorithms := variants[pair]{
		"choice": {Gather, Scatter},
		"slots": {
			func(s *Schedule, t Team, mine, all []byte, root int) { Gather(s, share(t), mine, all, root) },
			func(s *Schedule, t Team, all, mine []byte, root int) { Scatter(s, share(t), all, mine, root) },
		},
		"parts through slots": {
			func(s *Schedule, t Team, mine, all []byte, root int) {
				t = share(t)
				Gatherv(s, t, mine, even(s, all, t), root)
			},
			func(s *Schedule, t Team, all, mine []byte, root int) {
				t = share(t)
				Scatterv(s, t, even(s, all, t), mine, root)
			},
		},
		"binomial": {GatherBinomial, ScatterBinomial},
		"linear": {
			func(s *Schedule, t Team, mine, all []byte, root int) { GatherLinear(s, t, mine, even(s, all, t), root) },
			func(s *Schedule, t Team, all, mine []byte, root int) {
				ScatterLinear(s, t, even(s, all, t), mine, root)
			},
		},
	}
	for i, place := range append(slices.Clone(placements), inPairs) {
		share := slotted()
		algorithms[fmt.Sprint("hosts with slots", i)] = pair{
			func(s *Schedule, t Team, mine, all []byte, root int) {
				Gather(s, share(hosted(t, place)), mine, all, root)
			},
			func(s *Schedule, t Team, all, mine []byte, root int) {
				Scatter(s, share(hosted(t, place)), all, mine, root)
			},
		}
	}
	algorithms.each(t, func(t *testing.T, algorithm pair) {
		for _, n := range sizes {
			for root := range n {
				for _, each := range []int{1, 3, 1000} {
					testGather(t, algorithm.gather, algorithm.scatter, n, root, each, root%2 == 0)
				}
			}
		}
		testGather(t, algorithm.gather, algorithm.scatter, 6, 1, 5000, false)
		testGather(t, algorithm.gather, algorithm.scatter, 3, 1, 30_000, true)
		testGather(t, algorithm.gather, algorithm.scatter, 3, 2, 40_000, false)
	})
}

func testGather(t *testing.T, gather, scatter func(s *Schedule, t Team, a, b []byte, root int), n, root, each int, inPlace bool) {
	t.Helper()
	want := filled(n*each, root)
	all, mine := make([]byte, n*each), make([][]byte, n)
	for r := range mine {
		mine[r] = make([]byte, each)
	}
	if inPlace {
		mine[root] = all[root*each : (root+1)*each]
	}
	at := func(r int) []byte {
		if r == root {
			return all
		}
		return nil
	}
	err := world(n,
		func(s *Schedule, t Team) { gather(s, t, mine[t.Me], at(t.Me), root) },
		func(r int) error {
			if r == 0 {
				clear(all)
				for r := range mine {
					copy(mine[r], want[r*each:])
				}
			}
			return nil
		},
		func(int) error { return same(all, want) })
	if err != nil {
		t.Fatalf("Gather of %d bytes to %d of %d ranks: %v", each, root, n, err)
	}
	err = world(n,
		func(s *Schedule, t Team) { scatter(s, t, at(t.Me), mine[t.Me], root) },
		func(r int) error {
			clear(mine[r])
			copy(all, want)
			return nil
		},
		func(r int) error { return same(mine[r], want[r*each:(r+1)*each]) })
	if err != nil {
		t.Fatalf("Scatter of %d bytes from %d of %d ranks: %v", each, root, n, err)
	}
}

type allgatherer func(s *Schedule, t Team, mine []byte, blocks [][]byte)

func TestAllgather_everyLength(t *testing.T) {
	whole := func(blocks [][]byte) []byte { return blocks[0][:len(blocks)*len(blocks[0])] }
	algorithms := variants[allgatherer]{
		"choice": Allgatherv, "bruck": AllgatherBruck, "ring": AllgatherRing, "linear": AllgatherLinear,
		"even": func(s *Schedule, t Team, mine []byte, blocks [][]byte) {
			Allgather(s, t, mine, whole(blocks))
		},
		"doubling": func(s *Schedule, t Team, mine []byte, blocks [][]byte) {
			if t.Size == powerBelow(t.Size) {
				AllgatherDoubling(s, t, mine, whole(blocks))
			} else {
				Allgather(s, t, mine, whole(blocks))
			}
		},
	}
	for i, place := range placements {
		algorithms[fmt.Sprint("multileader", i)] = func(s *Schedule, t Team, mine []byte, blocks [][]byte) {
			if t = hosted(t, place); t.Hosts != nil {
				AllgatherMultiLeader(s, t, mine, blocks)
			} else {
				Allgatherv(s, t, mine, blocks)
			}
		}
	}
	share := slotted()
	algorithms["slots"] = func(s *Schedule, t Team, mine []byte, blocks [][]byte) { Allgatherv(s, share(t), mine, blocks) }
	for i, place := range placements {
		for j, with := range []func(Team) Team{func(t Team) Team { return t }, slotted()} {
			algorithms[fmt.Sprint("hosts", i, j)] = func(s *Schedule, t Team, mine []byte, blocks [][]byte) {
				if t = hosted(t, place); t.Hosts != nil {
					AllgatherHosts(s, with(t), mine, whole(blocks))
				} else {
					Allgather(s, t, mine, whole(blocks))
				}
			}
			algorithms[fmt.Sprint("hosts, v", i, j)] = func(s *Schedule, t Team, mine []byte, blocks [][]byte) {
				list := blocks
				if j == 1 { // not side by side
					list = s.Blocks(len(blocks))
					for i, b := range blocks {
						list[i] = s.Temp(len(b))
					}
				}
				Allgatherv(s, with(hosted(t, place)), mine, list)
				for i, b := range blocks {
					s.Copy(b, list[i])
				}
			}
		}
	}
	for name, allgather := range algorithms {
		even := name == "even" || name == "doubling" || strings.HasPrefix(name, "hosts")
		t.Run(name, func(t *testing.T) {
			for _, n := range sizes {
				for _, each := range []int{0, 1, 3, 50, 10_000} {
					for _, inPlace := range []bool{true, false} {
						if err := testAllgather(allgather, n, each, even, inPlace); err != nil {
							t.Fatalf("%d bytes on %d ranks, in place %v: %v", each, n, inPlace, err)
						}
					}
				}
			}
		})
	}
}

func testAllgather(allgather allgatherer, n, each int, even, inPlace bool) error {
	lengths := make([]int, n)
	total := 0
	for r := range lengths {
		if lengths[r] = each; !even {
			lengths[r] = each * (r % 4)
		}
		total += lengths[r]
	}
	want := filled(total, n)
	all, mine, wants := make([][]byte, n), make([][]byte, n), cut(want, lengths)
	for r := range all {
		all[r] = make([]byte, total)
		if mine[r] = slices.Clone(wants[r]); inPlace {
			mine[r] = cut(all[r], lengths)[r]
		}
	}
	return world(n,
		func(s *Schedule, t Team) { allgather(s, t, mine[t.Me], cut(all[t.Me], lengths)) },
		func(r int) error {
			clear(all[r])
			copy(mine[r], wants[r])
			return nil
		},
		func(r int) error { return same(all[r], want) })
}

// cut cuts b into blocks.
func cut(b []byte, lengths []int) [][]byte {
	blocks := make([][]byte, len(lengths))
	for i, n := range lengths {
		blocks[i], b = b[:n], b[n:]
	}
	return blocks
}

// overSome makes every other block one of a cursor, from the first or the second on.
func overSome(s *Schedule, first int, list []Block) []Block {
	for i := first % 2; i < len(list); i += 2 {
		list[i] = Block{cursor: s.place(list[i]) + 1}
	}
	return list
}

func TestAlltoall_everyLength(t *testing.T) {
	type algorithm func(s *Schedule, t Team, out, in []byte)
	share := slotted()
	blocks := func(f func(*Schedule, Team, []Block, []Block)) algorithm {
		return func(s *Schedule, t Team, out, in []byte) { f(s, t, s.EvenParts(out, t.Size), s.EvenParts(in, t.Size)) }
	}
	cursors := func(f func(*Schedule, Team, []Block, []Block)) algorithm { // of every other block, of either end
		return func(s *Schedule, t Team, out, in []byte) {
			f(s, t, overSome(s, t.Me, s.EvenParts(out, t.Size)), overSome(s, t.Me/2, s.EvenParts(in, t.Size)))
		}
	}
	algorithms := variants[algorithm]{
		"choice": Alltoall, "v": blocks(Alltoallv), "cursors": cursors(Alltoallv), "cursors pairwise": cursors(AlltoallPairwise),
		"bruck": AlltoallBruck, "pairwise": blocks(AlltoallPairwise), "linear": blocks(AlltoallLinear),
		"slots": func(s *Schedule, t Team, out, in []byte) { Alltoall(s, share(t), out, in) },
	}
	partShare := slotted()
	algorithms["parts"] = blocks(func(s *Schedule, t Team, out, in []Block) { Alltoallv(s, partShare(t), out, in) })
	uneven := func(r int) int { return min(r/8, 1) } // whose slots have not the same length
	for i, place := range append(slices.Clone(placements), uneven) {
		share := slotted()
		algorithms[fmt.Sprint("hosts", i)] = func(s *Schedule, t Team, out, in []byte) {
			if t = hosted(t, place); t.Hosts != nil && len(out) > 0 {
				AlltoallHosts(s, share(t), out, in)
			} else {
				Alltoall(s, t, out, in)
			}
		}
	}
	algorithms.each(t, func(t *testing.T, alltoall algorithm) {
		for _, n := range append(sizes, 35) {
			for _, each := range []int{0, 1, 3, 100, 500, 16 << 10, 40_000} {
				if each*n > 150_000 {
					continue
				}
				out, in, want := make([][]byte, n), make([][]byte, n), make([][]byte, n)
				for r := range n {
					out[r], in[r] = filled(n*each, r), make([]byte, n*each)
				}
				for r := range n {
					for k := range n {
						want[r] = append(want[r], out[k][r*each:(r+1)*each]...)
					}
				}
				err := world(n,
					func(s *Schedule, t Team) { alltoall(s, t, out[t.Me], in[t.Me]) },
					func(r int) error { clear(in[r]); return nil },
					func(r int) error { return same(in[r], want[r]) })
				if err != nil {
					t.Fatalf("%d bytes on %d ranks: %v", each, n, err)
				}
			}
		}
	})
}

func TestNeighbors_twiceTheSame(t *testing.T) {
	// A ring of two: both neighbours are the other rank. What goes up comes
	// from below.
	const each = 5
	out, in := make([][]byte, 2), make([][]byte, 2)
	for r := range out {
		out[r], in[r] = filled(3*each, r), make([]byte, 3*each)
	}
	err := world(2,
		func(s *Schedule, t Team) {
			other := 1 - t.Me
			peers := []int{other, other, -1}
			Neighbors(s, t, peers, overSome(s, t.Me, s.EvenParts(out[t.Me], 3)), peers, s.EvenParts(in[t.Me], 3), []int{1, 0, 2})
		},
		func(r int) error { clear(in[r]); return nil },
		func(r int) error {
			from := out[1-r]
			return same(in[r], slices.Concat(from[each:2*each], from[:each], make([]byte, each)))
		})
	if err != nil {
		t.Fatal(err)
	}
}
