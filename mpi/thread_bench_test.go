package mpi_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// BenchmarkMultiple_pingPong is ping-pongs of several goroutines between two
// ranks over loopback UDP. Compare its first row with one goroutine at a time
// (serialized) to see what the progress lock costs, and the others with it.
func BenchmarkMultiple_pingPong(b *testing.B) {
	run := func(level mpi.ThreadLevel, threads int) {
		b.Run(fmt.Sprintf("%v-%d", level, threads), func(b *testing.B) {
			err := mpi.RunWith(2, mpi.Config{Threads: level}, func(p *mpi.Proc) error {
				c := p.World()
				if err := c.Barrier(); err != nil {
					return err
				}
				if c.Rank() == 0 {
					b.ResetTimer()
				}
				return goroutines(threads, func(g int) error {
					buf := make([]byte, 8)
					for range b.N/threads + 1 {
						if c.Rank() == 0 {
							if err := mpi.Send(c, buf, 1, g); err != nil {
								return err
							}
						}
						if _, err := mpi.Recv(c, buf, 1-c.Rank(), g); err != nil {
							return err
						}
						if c.Rank() == 1 {
							if err := mpi.Send(c, buf, 0, g); err != nil {
								return err
							}
						}
					}
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	run(mpi.ThreadSerialized, 1)
	for _, threads := range []int{1, 2, 4, 8} {
		run(mpi.ThreadMultiple, threads)
	}
}

// BenchmarkMultiple_toItself is what goroutines of one rank can do in all: each
// sends to itself and receives that.
func BenchmarkMultiple_toItself(b *testing.B) {
	run := func(level mpi.ThreadLevel, threads int) {
		b.Run(fmt.Sprintf("%v-%d", level, threads), func(b *testing.B) {
			err := mpi.RunWith(1, mpi.Config{Threads: level}, func(p *mpi.Proc) error {
				c := p.World()
				var left atomic.Int64
				left.Store(int64(b.N))
				return goroutines(threads, func(g int) error {
					buf := make([]byte, 8)
					for left.Add(-1) >= 0 {
						if err := mpi.Send(c, buf, 0, g); err != nil {
							return err
						}
						if _, err := mpi.Recv(c, buf, 0, g); err != nil {
							return err
						}
					}
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
	run(mpi.ThreadSerialized, 1)
	for _, threads := range []int{1, 2, 4} {
		run(mpi.ThreadMultiple, threads)
	}
}
