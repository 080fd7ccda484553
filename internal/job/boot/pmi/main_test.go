package pmi

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// The test binary is also the program that launchers start.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-rank" {
		os.Exit(rankMain(os.Args[2]))
	}
	os.Exit(m.Run())
}

func rankMain(mode string) int {
	j, err := Join(os.Stderr)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	lost := j.(boot.Watched).Lost()
	last := j.Rank() == j.Size()-1
	if mode == "exchange" {
		for round := range 3 {
			if err := exchange(j, round); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		host, local := j.Host()
		fmt.Printf("rank %d of %d on %d.%d key %x\n", j.Rank(), j.Size(), host, local, j.Key())
		if err := j.Finalize(); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	// Hydra falls over a rank that it has killed and still owes an answer, and then
	// returns another status: here no rank waits for one.
	if err := j.(*job).barrier(); err != nil {
		fmt.Println(err)
		return 1
	}
	switch {
	case mode == "abort" && last:
		j.Abort(77, "because")
	case mode == "die" && last:
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case mode == "leave" && last:
		return 5
	}
	<-lost
	return 1
}
