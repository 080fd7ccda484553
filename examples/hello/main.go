// Command hello is a first MPI program: every rank greets the next one.
package main

import (
	"fmt"
	"os"

	"github.com/xwarp/xwarp/mpi"
)

func main() {
	p, err := mpi.Init()
	if err == nil {
		err = greet(p.World())
	}
	if err == nil {
		err = p.Finalize()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func greet(comm *mpi.Comm) error {
	me, n := comm.Rank(), comm.Size()
	out := []int64{int64(me), int64(os.Getpid())}
	in := make([]int64, 2)
	if _, err := mpi.Sendrecv(comm, out, (me+1)%n, 0, in, (me+n-1)%n, 0); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d: greetings from rank %d, process %d\n", me, n, in[0], in[1])
	return comm.Barrier()
}
