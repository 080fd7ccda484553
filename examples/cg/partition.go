package main

import (
	"slices"
	"sort"
)

// partition gives each of n ranks a run of rows with about as many entries as
// the others have: rank r has the rows bounds[r] to bounds[r+1]-1. Ranks may
// end up without rows when there are more of them than rows.
func partition(ptr []int32, n int) (bounds []int32) {
	rows := len(ptr) - 1
	bounds = make([]int32, n+1)
	for r := 1; r < n; r++ {
		share := int64(ptr[rows]) * int64(r) / int64(n)
		bounds[r] = int32(sort.Search(rows, func(i int) bool { return int64(ptr[i]) >= share }))
	}
	bounds[n] = int32(rows)
	return bounds
}

// peer is a rank that shares entries of vectors with this one.
type peer struct {
	rank int
	send []int32 // rows of ours that it needs, counted from our first row
	// Its rows that we need arrive behind our own, in x[from:to].
	from, to int
}

// halo is what multiplying our rows takes from other ranks.
type halo struct {
	peers []peer // by rank
	size  int    // entries of others in all
}

// newHalo finds out with which ranks this one shares what, and renumbers the columns
// of its rows a in place: its own come first, those of others behind, in the
// order in which they arrive. No rank has to be asked: the matrix is symmetric,
// so the rows that a peer needs of us are those in which we need it.
func newHalo(a *csr, bounds []int32, rank int) halo {
	var h halo
	lo, hi := bounds[rank], bounds[rank+1]
	place := map[int32]int32{} // column of another rank -> where its entry will be
	for p := range len(bounds) - 1 {
		if p == rank {
			continue
		}
		pr := share(a, bounds[p], bounds[p+1], place)
		if len(pr.send) == 0 {
			continue
		}
		pr.rank = p
		base := int(hi-lo) + h.size
		need := make([]int32, 0, len(place))
		for col := range place {
			if bounds[p] <= col && col < bounds[p+1] {
				need = append(need, col)
			}
		}
		slices.Sort(need) // the peer sends its rows in order
		for k, col := range need {
			place[col] = int32(base + k)
		}
		pr.from, pr.to = base, base+len(need)
		h.size += len(need)
		h.peers = append(h.peers, pr)
	}
	for k, col := range a.col {
		if lo <= col && col < hi {
			a.col[k] = col - lo
		} else {
			a.col[k] = place[col]
		}
	}
	return h
}

// share returns a peer with our rows that have columns from lo to hi-1, and
// notes these columns in need.
func share(a *csr, lo, hi int32, need map[int32]int32) (p peer) {
	for i := range a.rows() {
		row := a.col[a.ptr[i]:a.ptr[i+1]]
		k, _ := slices.BinarySearch(row, lo)
		if k == len(row) || row[k] >= hi {
			continue
		}
		p.send = append(p.send, int32(i))
		for ; k < len(row) && row[k] < hi; k++ {
			need[row[k]] = 0
		}
	}
	return p
}
