package main

import (
	"fmt"

	"github.com/xwarp/xwarp/mpi"
)

// Tags of messages.
const (
	tagRows   = iota // rows of the matrix, from rank 0
	tagHalo          // entries of a vector, between neighbours
	tagAnswer        // rows of the answer, to rank 0
)

// ranks is a matrix by rows, a run of them on each rank.
type ranks struct {
	comm   *mpi.Comm
	bounds []int32
	a      *csr // our rows, columns renumbered by newHalo
	diag   []float64
	halo   halo
	x      []float64   // the rows of a vector that we have, then those we need
	out    [][]float64 // per peer: the rows that it needs
	wait   []mpi.Request
}

// scatter gives each rank its rows of the matrix, which only rank 0 has.
func scatter(comm *mpi.Comm, all *csr) (*ranks, error) {
	bounds := make([]int32, comm.Size()+1)
	if comm.Rank() == 0 {
		bounds = partition(all.ptr, comm.Size())
	}
	if err := mpi.Bcast(comm, bounds, 0); err != nil {
		return nil, err
	}
	a, err := scatterRows(comm, all, bounds)
	if err != nil {
		return nil, fmt.Errorf("giving out the rows: %w", err)
	}
	r := &ranks{comm: comm, bounds: bounds, a: a, diag: a.diagonal(int(bounds[comm.Rank()]))}
	r.halo = newHalo(a, bounds, comm.Rank())
	r.x = make([]float64, a.rows()+r.halo.size)
	for _, p := range r.halo.peers {
		r.out = append(r.out, make([]float64, len(p.send)))
	}
	return r, nil
}

func scatterRows(comm *mpi.Comm, all *csr, bounds []int32) (*csr, error) {
	if comm.Rank() == 0 {
		for to := 1; to < comm.Size(); to++ {
			if err := sendRows(comm, all.slice(bounds[to], bounds[to+1]), to); err != nil {
				return nil, err
			}
		}
		return all.slice(bounds[0], bounds[1]), nil
	}
	rows := bounds[comm.Rank()+1] - bounds[comm.Rank()]
	a := &csr{ptr: make([]int32, rows+1)}
	if _, err := mpi.Recv(comm, a.ptr, 0, tagRows); err != nil {
		return nil, err
	}
	a.col, a.val = make([]int32, a.ptr[rows]), make([]float64, a.ptr[rows])
	if _, err := mpi.Recv(comm, a.col, 0, tagRows); err != nil {
		return nil, err
	}
	_, err := mpi.Recv(comm, a.val, 0, tagRows)
	return a, err
}

func sendRows(comm *mpi.Comm, a *csr, to int) error {
	if err := mpi.Send(comm, a.ptr, to, tagRows); err != nil {
		return err
	}
	if err := mpi.Send(comm, a.col, to, tagRows); err != nil {
		return err
	}
	return mpi.Send(comm, a.val, to, tagRows)
}

func (r *ranks) diagonal() []float64 { return r.diag }

// multiply first swaps the entries of x that neighbours need: only those.
func (r *ranks) multiply(y, x []float64) error {
	r.wait = r.wait[:0]
	for _, p := range r.halo.peers {
		req, err := mpi.Irecv(r.comm, r.x[p.from:p.to], p.rank, tagHalo)
		if err != nil {
			return err
		}
		r.wait = append(r.wait, req)
	}
	for i, p := range r.halo.peers {
		for k, row := range p.send {
			r.out[i][k] = x[row]
		}
		req, err := mpi.Isend(r.comm, r.out[i], p.rank, tagHalo)
		if err != nil {
			return err
		}
		r.wait = append(r.wait, req)
	}
	copy(r.x, x)
	if err := mpi.Waitall(r.wait); err != nil {
		return fmt.Errorf("swapping with neighbours: %w", err)
	}
	r.a.multiply(y, r.x)
	return nil
}

func (r *ranks) sum(v []float64) error {
	return mpi.Allreduce(r.comm, mpi.InPlace[float64](), v, mpi.Sum)
}

// gather collects a vector on rank 0. Other ranks get nil.
func (r *ranks) gather(x []float64) ([]float64, error) {
	if r.comm.Rank() != 0 {
		return nil, mpi.Send(r.comm, x, 0, tagAnswer)
	}
	n := r.comm.Size()
	all := make([]float64, r.bounds[n])
	copy(all, x)
	for from := 1; from < n; from++ {
		if _, err := mpi.Recv(r.comm, all[r.bounds[from]:r.bounds[from+1]], from, tagAnswer); err != nil {
			return nil, err
		}
	}
	return all, nil
}
