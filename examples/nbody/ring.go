package main

import (
	"github.com/xwarp/xwarp/examples/internal/job"
	"github.com/xwarp/xwarp/mpi"
)

// ring passes the bodies of all ranks around.
type ring struct {
	comm         *mpi.Comm
	next, prev   int
	n            int          // bodies of all ranks
	here, coming [2][]float64 // places and masses of one rank's bodies: those at work, those under way
}

func newRing(comm *mpi.Comm, n int) *ring {
	size, me := comm.Size(), comm.Rank()
	r := &ring{comm: comm, next: (me + 1) % size, prev: (me + size - 1) % size, n: n}
	most := (n + size - 1) / size
	for i, per := range [2]int{3, 1} {
		r.here[i], r.coming[i] = make([]float64, per*most), make([]float64, per*most)
	}
	return r
}

// forces sets the acceleration of the bodies of this rank: those of rank me come
// first, then those of rank me-1, and so on.
func (r *ring) forces(mine *bodies) error {
	clear(mine.acc)
	for i, s := range [2][]float64{mine.pos, mine.mass} {
		r.here[i] = r.here[i][:len(s)]
		copy(r.here[i], s)
	}
	size := r.comm.Size()
	var moving [4]mpi.Request
	for hop := range size {
		last := hop == size-1
		if !last {
			if err := r.pass((r.comm.Rank()+size-hop-1)%size, &moving); err != nil {
				return err
			}
		}
		mine.attract(r.here[0], r.here[1])
		if !last {
			if err := mpi.Waitall(moving[:]); err != nil {
				return err
			}
			r.here, r.coming = r.coming, r.here
		}
	}
	return nil
}

// pass starts to send what is here and to receive the bodies of rank owner.
func (r *ring) pass(owner int, moving *[4]mpi.Request) error {
	from, to := job.Part(r.n, r.comm.Size(), owner)
	for i, per := range [2]int{3, 1} {
		r.coming[i] = r.coming[i][:per*(to-from)]
		var err error
		if moving[2*i], err = mpi.Irecv(r.comm, r.coming[i], r.prev, i); err != nil {
			return err
		}
		if moving[2*i+1], err = mpi.Isend(r.comm, r.here[i], r.next, i); err != nil {
			return err
		}
	}
	return nil
}
