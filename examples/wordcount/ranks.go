package main

import (
	"encoding/binary"
	"errors"
	"hash/fnv"

	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// deal gives each rank its part of the text that rank 0 has.
func deal(comm *mpi.Comm, text []byte) ([]byte, error) {
	counts := make([]int64, comm.Size())
	if comm.Rank() == 0 {
		at := cut(text, comm.Size())
		for i := range counts {
			counts[i] = int64(at[i+1] - at[i])
		}
	}
	mine := []int64{0}
	if err := mpi.Scatter(comm, counts, mine, 0); err != nil {
		return nil, err
	}
	part := make([]byte, mine[0])
	return part, mpi.Scatterv(comm, text, job.Ints(counts), nil, part, 0)
}

// shuffle sends each word to the rank that adds it up, and returns what this rank
// has added up.
func shuffle(comm *mpi.Comm, counts map[string]int64) (map[string]int64, error) {
	out := make([][]byte, comm.Size())
	for word, n := range counts {
		h := fnv.New32a()
		_, _ = h.Write([]byte(word)) // never fails, hash.Hash says
		to := h.Sum32() % uint32(len(out))
		out[to] = appendEntry(out[to], entry{word, n})
	}
	var all []byte
	lengths := make([]int64, len(out))
	for i, b := range out {
		all = append(all, b...)
		lengths[i] = int64(len(b))
	}
	coming := make([]int64, len(out))
	if err := mpi.Alltoall(comm, lengths, coming); err != nil {
		return nil, err
	}
	got := make([]byte, total(coming))
	if err := mpi.Alltoallv(comm, all, job.Ints(lengths), nil, got, job.Ints(coming), nil); err != nil {
		return nil, err
	}
	return parse(got)
}

// collect returns the k words that are there most often, on rank 0, of those that
// each rank gives.
func collect(comm *mpi.Comm, mine []entry, k int) ([]entry, error) {
	var b []byte
	for _, e := range mine {
		b = appendEntry(b, e)
	}
	lengths := make([]int64, comm.Size())
	if err := mpi.Gather(comm, []int64{int64(len(b))}, lengths, 0); err != nil {
		return nil, err
	}
	got := make([]byte, total(lengths))
	if err := mpi.Gatherv(comm, b, got, job.Ints(lengths), nil, 0); err != nil || comm.Rank() != 0 {
		return nil, err
	}
	counts, err := parse(got)
	return top(counts, k), err
}

// appendEntry appends a count and a word, with its length before it.
func appendEntry(b []byte, e entry) []byte {
	b = binary.AppendUvarint(b, uint64(e.count))
	b = binary.AppendUvarint(b, uint64(len(e.word)))
	return append(b, e.word...)
}

func parse(b []byte) (map[string]int64, error) {
	counts := map[string]int64{}
	for len(b) > 0 {
		count, n := binary.Uvarint(b)
		length, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || uint64(len(b)-n-m) < length {
			return nil, errors.New("the counts of another rank cannot be read")
		}
		b = b[n+m:]
		counts[string(b[:length])] += int64(count)
		b = b[length:]
	}
	return counts, nil
}

func total(list []int64) int64 {
	sum := int64(0)
	for _, n := range list {
		sum += n
	}
	return sum
}
