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
	job, err := Join(os.Stderr)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	lost := job.(boot.Watched).Lost()
	last := job.Rank() == job.Size()-1
	switch {
	case mode == "exchange":
		for round := range 3 {
			if err := exchange(job, round); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		host, local := job.Host()
		fmt.Printf("rank %d of %d on %d.%d key %x\n", job.Rank(), job.Size(), host, local, job.Key())
		if err := job.Finalize(); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	case mode == "abort" && last:
		job.Abort(77, "because")
	case mode == "die" && last:
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	case mode == "leave" && last:
		return 5
	}
	<-lost
	return 1
}
