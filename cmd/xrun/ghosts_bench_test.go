package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/mpi"
)

const overlapRounds = 300

// overlapMain is an origin that accumulates, and a target that computes for so many
// microseconds between two calls. The origin says how long an operation takes, the median
// in microseconds.
func overlapMain(w *mpi.Comm) error {
	micros, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	win, _, err := mpi.WinAllocate[int64](w, 1, nil)
	if err != nil {
		return err
	}
	const over = 1
	if w.Rank() == 1 {
		for found := false; !found; {
			for end := time.Now().Add(time.Duration(micros) * time.Microsecond); time.Now().Before(end); {
			}
			if _, found, err = w.Iprobe(0, over); err != nil {
				return err
			}
		}
		_, err = mpi.Recv(w, []byte(nil), 0, over)
		return errors.Join(err, win.Free())
	}
	took := make([]time.Duration, overlapRounds)
	err = win.LockAll(0)
	for i := range took {
		began := time.Now()
		err = errors.Join(err, mpi.Accumulate(win, []int64{1}, 1, 0, mpi.OpSum), win.Flush(1))
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	fmt.Printf("%.1f\n", float64(took[overlapRounds/2].Nanoseconds())/1000)
	return errors.Join(err, win.UnlockAll(), mpi.Send(w, []byte(nil), 1, over), win.Free())
}

// How long an Accumulate with its Flush takes the origin while the target computes: with a
// ghost that does not grow with what the target does between its calls.
func BenchmarkXrun_ghostsOverlap(b *testing.B) {
	testenv.NeedRoot(b)
	for _, ghosts := range []string{"0", "1"} {
		for _, micros := range []string{"0", "100", "300", "1000"} {
			b.Run(ghosts+"_ghosts_"+micros+"_us", func(b *testing.B) {
				sum := 0.0
				for range b.N {
					out, err := command("-n", "2", "--ghosts", ghosts, "--testbed", "2", self, asServed, "overlap", micros).Output()
					took, wrong := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
					if err := errors.Join(err, wrong); err != nil {
						b.Fatal(err)
					}
					sum += took
				}
				b.ReportMetric(sum/float64(b.N), "us/accumulate")
			})
		}
	}
}
