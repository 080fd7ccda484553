package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

// A program of another MPI: Debian's MPICH, which speaks PMI-1.
const foreign = `
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	int rank, size;
	long one, sum;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	one = rank + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: %ld\n", rank, size, sum);
	fflush(stdout);
	if (argc > 1 && rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
`

func buildForeign(t *testing.T) string {
	t.Helper()
	mpicc, err := exec.LookPath("mpicc.mpich")
	if err != nil {
		t.Skip("MPICH's compiler is not installed (Debian: libmpich-dev)")
	}
	return compile(t, mpicc, foreign)
}

func compile(t *testing.T, cc, text string, libraries ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "foreign.c"), filepath.Join(dir, "foreign")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, append([]string{"-o", program, source}, libraries...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func TestXrun_programsOfMPICH(t *testing.T) {
	program := buildForeign(t)
	for name, args := range map[string][]string{
		"here":    {"-n", "4"},
		"testbed": {"-n", "4", "--testbed", "2", "--fabric", "udp", "--map-by", "node"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "testbed" {
				testenv.NeedRoot(t)
			}
			out, errOut, status := xrun(t, append(args, "--ordered-output", program)...)
			want := "rank 0 of 4: 10\nrank 1 of 4: 10\nrank 2 of 4: 10\nrank 3 of 4: 10\n"
			if status != 0 || out != want {
				t.Errorf("status %d, %q, %s", status, out, errOut)
			}
		})
	}
	out, errOut, status := xrun(t, "-n", "3", program, "42")
	if status != 42 || !strings.Contains(errOut, "rank 2 on ") || !strings.Contains(errOut, "aborted the job with code 42") {
		t.Errorf("abort: status %d, %q, %s", status, out, errOut)
	}
}

// A program that speaks PMI-2, through the library that comes with Slurm.
const version2 = `
#include <slurm/pmi2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
	int spawned, size, rank, appnum, found, len, r, bad = 0;
	char job[256], key[64], value[1024], want[1024];
	bad |= PMI2_Init(&spawned, &size, &rank, &appnum);
	bad |= PMI2_Job_GetId(job, sizeof job);
	snprintf(key, sizeof key, "k%d", rank);
	snprintf(value, sizeof value, "value; of = %d", rank);
	bad |= PMI2_KVS_Put(key, value);
	bad |= PMI2_KVS_Fence();
	for (r = 0; r < size; r++) {
		snprintf(key, sizeof key, "k%d", r);
		snprintf(want, sizeof want, "value; of = %d", r);
		bad |= PMI2_KVS_Get(job, r, key, value, sizeof value, &len);
		bad |= strcmp(value, want) != 0;
	}
	if (rank % 2 == 0) {
		snprintf(key, sizeof key, "from %d", rank);
		bad |= PMI2_Info_PutNodeAttr(key, "even");
	}
	snprintf(key, sizeof key, "from %d", rank / 2 * 2);
	bad |= PMI2_Info_GetNodeAttr(key, value, sizeof value, &found, 1) || !found;
	bad |= PMI2_Info_GetJobAttr("PMI_process_mapping", want, sizeof want, &found) || !found;
	printf("rank %d of %d: %s %s %d\n", rank, size, value, want, bad);
	fflush(stdout);
	if (argc > 1 && rank == size - 1)
		PMI2_Abort(1, argv[1]);
	PMI2_KVS_Fence();
	return PMI2_Finalize() | bad;
}
`

func TestXrun_programsThatSpeakPMI2(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler")
	}
	if _, err := os.Stat("/usr/include/slurm/pmi2.h"); err != nil {
		t.Skip("Slurm's library for PMI-2 is not installed (Debian: libpmi2-0-dev)")
	}
	program := compile(t, cc, version2, "-lpmi2")
	out, errOut, status := xrun(t, "-n", "4", "--ordered-output", program)
	want := ""
	for rank := range 4 {
		want += fmt.Sprintf("rank %d of 4: even (vector,(0,1,4)) 0\n", rank)
	}
	if status != 0 || out != want {
		t.Errorf("status %d, %q, %s", status, out, errOut)
	}
	out, errOut, status = xrun(t, "-n", "3", program, "no more of this")
	if status != 1 || !strings.Contains(errOut, "aborted the job with code 1: no more of this") {
		t.Errorf("abort: status %d, %q, %s", status, out, errOut)
	}
}
