package pmi

import (
	"fmt"
	"strconv"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// foreign are the launchers that start many processes and speak no PMI with them,
// by the variable that tells these how many they are.
var foreign = [...]struct{ size, name, remedy string }{
	{"OMPI_COMM_WORLD_SIZE", "Open MPI's mpiexec, which does not speak PMI", "use xrun, or MPICH's mpiexec (mpiexec.hydra)"},
	{"SLURM_STEP_NUM_TASKS", "srun without PMI", "use srun --mpi=pmi2"},
}

// A ForeignError says that the process is one of many that a launcher has started
// which it cannot talk with. As jobs of one rank each they would do the same work
// many times over, without an error.
type ForeignError struct {
	Variable, Launcher, Remedy string
	Size                       int
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("pmi: this is one of %d processes of %s: %s; or unset %s to run each of them alone",
		e.Size, e.Launcher, e.Remedy, e.Variable)
}

// alone returns boot.ErrNoLauncher, or a *ForeignError. The children of a rank still
// have the PMI_RANK that it had, and are not meant to be ranks. An error is what no rank
// ever had.
func alone(lookup func(string) (string, bool)) error {
	if text, child := lookup(EnvRank); child {
		rank, err := number(EnvRank, text, 0, EnvRank)
		if err != nil {
			return err
		}
		if text, ok := lookup(EnvSize); ok {
			if size, err := number(EnvSize, text, 1, EnvSize); err != nil {
				return err
			} else if rank >= size {
				return fmt.Errorf("pmi: %s is %d, and %s is %d%s", EnvRank, rank, EnvSize, size, remedy(EnvRank))
			}
		}
		return boot.ErrNoLauncher
	}
	for _, f := range foreign {
		text, _ := lookup(f.size)
		if size, err := strconv.Atoi(text); err == nil && size > 1 {
			return &ForeignError{f.size, f.name, f.remedy, size}
		}
	}
	return boot.ErrNoLauncher
}
