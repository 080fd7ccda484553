// Command hello is a first MPI program: every rank greets the next one.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/xwarp/xwarp/mpi"
)

func main() {
	p, err := mpi.Init()
	if err != nil {
		log.Fatal(err)
	}
	c := p.World()
	me, n := c.Rank(), c.Size()
	out, in := []int64{int64(me), int64(os.Getpid())}, make([]int64, 2)
	if _, err := mpi.Sendrecv(c, out, (me+1)%n, 0, in, (me+n-1)%n, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("rank %d of %d: greetings from rank %d, process %d\n", me, n, in[0], in[1])
	if err := p.Finalize(); err != nil {
		log.Fatal(err)
	}
}
