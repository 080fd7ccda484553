package mpi_test

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/mpi"
)

// A library works in a session of its own: its messages meet nobody else's, and the
// program need not give it a communicator.
func ExampleSession() {
	library := func(p *mpi.Proc, v float64) (sum float64, err error) {
		s, err := p.SessionInit(nil, nil)
		if err != nil {
			return 0, err
		}
		g, err := s.GroupFromPset(mpi.PsetWorld)
		if err != nil {
			return 0, err
		}
		c, err := s.CommCreateFromGroup(g, "org.example.library", nil, nil)
		if err != nil {
			return 0, err
		}
		all := []float64{v}
		err = mpi.Allreduce(c, nil, all, mpi.Sum)
		return all[0], errors.Join(err, c.Free(), s.Finalize())
	}
	err := mpi.Run(3, func(p *mpi.Proc) error {
		rank := p.World().Rank()
		sum, err := library(p, float64(rank))
		if rank == 0 {
			fmt.Println("the sum is", sum)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: the sum is 3
}

// A goroutine computes while messages are on their way; both are waited for in one call.
func ExampleProc_GrequestStart() {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		c, peer := p.World(), 1-p.World().Rank()
		theirs, factorial := []int{0}, 1
		work := &mpi.Grequest{}
		done, err := p.GrequestStart(work)
		if err != nil {
			return err
		}
		go func() {
			for i := 2; i <= 10; i++ {
				factorial *= i
			}
			_ = work.Complete() // fails only when it is complete already
		}()
		in, err := mpi.Irecv(c, theirs, peer, 0)
		if err != nil {
			return err
		}
		out, err := mpi.Isend(c, []int{c.Rank()}, peer, 0)
		if err != nil {
			return err
		}
		if err := mpi.Waitall([]mpi.Request{done, in, out}); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(factorial, "and a message from", theirs[0])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 3628800 and a message from 1
}
