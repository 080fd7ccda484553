package pmi

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/job/boot"
)

func TestAlone(t *testing.T) {
	for _, c := range []struct {
		env  string
		want string // "" when nobody has launched it
	}{
		{"", ""},
		{"OMPI_COMM_WORLD_SIZE=4", "one of 4 processes of Open MPI's mpiexec, which does not speak PMI: use xrun"},
		{"OMPI_COMM_WORLD_SIZE=1", ""},
		{"OMPI_COMM_WORLD_SIZE=many", ""},
		{"SLURM_STEP_NUM_TASKS=2", "one of 2 processes of srun without PMI: use srun --mpi=pmi2; or unset SLURM_STEP_NUM_TASKS"},
		{"SLURM_NTASKS=2 SLURM_PROCID=0", ""},       // the script of an sbatch
		{"SLURM_STEP_NUM_TASKS=2 PMI_RANK=1", ""},   // a child of a rank
		{"OMPI_COMM_WORLD_SIZE=2 PMI_RANK=0", ""},   // a child of a rank of an xrun in there
		{"SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0", ""},  // a task for itself
		{"OMPI_COMM_WORLD_SIZE= SLURM_PROCID=", ""}, // cleared by hand
		{"PMI_RANK=1 PMI_SIZE=2", ""},
		{"PMI_RANK=x", `PMI_RANK is "x": want a number of at least 0; start the program with xrun or mpiexec, or without any PMI_RANK to run it alone`},
		{"PMI_RANK=-1 PMI_SIZE=4", `PMI_RANK is "-1"`},
		{"PMI_RANK=0 PMI_SIZE=zz", `PMI_SIZE is "zz": want a number of at least 1`},
		{"PMI_RANK=4 PMI_SIZE=4", "PMI_RANK is 4, and PMI_SIZE is 4; start"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		err := alone(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if errors.Is(err, boot.ErrNoLauncher) != (c.want == "") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.env, err, c.want)
		}
	}
}

// Where Debian's alternatives make Open MPI's launcher the mpiexec.
func TestJoin_openMPI(t *testing.T) {
	mpiexec, err := exec.LookPath("mpiexec.openmpi")
	if err != nil {
		t.Skip("Open MPI's launcher is not installed (Debian: openmpi-bin)")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(mpiexec, "--allow-run-as-root", "--oversubscribe", "-n", "2", exe, "as-rank", "exchange").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "use xrun, or MPICH's mpiexec") {
		t.Errorf("%v\n%s", err, out)
	}
}
