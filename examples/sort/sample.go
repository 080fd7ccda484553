package main

import (
	"slices"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// sortAll sorts the numbers of all ranks: rank 0 gets the smallest, and so on. It
// changes keys.
func sortAll(comm *mpi.Comm, keys []uint64) ([]uint64, error) {
	size := comm.Size()
	slices.Sort(keys)
	limits, err := splitters(comm, keys)
	if err != nil {
		return nil, err
	}
	out := make([]int64, size)
	from := 0
	for r, limit := range limits {
		to, _ := slices.BinarySearch(keys, limit)
		out[r] = int64(to - from)
		from = to
	}
	out[size-1] = int64(len(keys) - from)
	in := make([]int64, size)
	if err := mpi.Alltoall(comm, out, in); err != nil {
		return nil, err
	}
	sendCounts, recvCounts := job.Ints(out), job.Ints(in)
	total := 0
	for _, n := range recvCounts {
		total += n
	}
	got := make([]uint64, total)
	if err := mpi.Alltoallv(comm, keys, sendCounts, nil, got, recvCounts, nil); err != nil {
		return nil, err
	}
	return merge(got, recvCounts), nil
}

// splitters returns the numbers at which the parts of the ranks begin, but for
// the first one.
func splitters(comm *mpi.Comm, sorted []uint64) ([]uint64, error) {
	const perRank = 64 // samples for each part: with more the parts are more equal
	size := comm.Size()
	mine := make([]uint64, perRank*size)
	for i := range mine {
		if len(sorted) > 0 {
			mine[i] = sorted[(2*i+1)*len(sorted)/(2*len(mine))]
		}
	}
	all := make([]uint64, len(mine)*size)
	if err := mpi.Allgather(comm, mine, all); err != nil {
		return nil, err
	}
	slices.Sort(all)
	limits := make([]uint64, size-1)
	for i := range limits {
		limits[i] = all[(i+1)*len(all)/size]
	}
	return limits, nil
}

// merge merges runs that are sorted, pair by pair.
func merge(keys []uint64, runs []int) []uint64 {
	other := make([]uint64, len(keys))
	for len(runs) > 1 {
		at := 0
		merged := runs[:0:0]
		for i := 0; i < len(runs); i += 2 {
			a := keys[at : at+runs[i]]
			var b []uint64
			if i+1 < len(runs) {
				b = keys[at+runs[i] : at+runs[i]+runs[i+1]]
			}
			mergeTwo(other[at:], a, b)
			at += len(a) + len(b)
			merged = append(merged, len(a)+len(b))
		}
		keys, other, runs = other, keys, merged
	}
	return keys
}

func mergeTwo(dst, a, b []uint64) {
	for len(a) > 0 && len(b) > 0 {
		if b[0] < a[0] {
			dst[0], b = b[0], b[1:]
		} else {
			dst[0], a = a[0], a[1:]
		}
		dst = dst[1:]
	}
	copy(dst, a)
	copy(dst[len(a):], b)
}
