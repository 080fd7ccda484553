package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program of another MPI: MPICH, which speaks PMI-1.
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
	dir := t.TempDir()
	source, program := filepath.Join(dir, "foreign.c"), filepath.Join(dir, "foreign")
	if err := os.WriteFile(source, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mpicc, "-o", program, source).CombinedOutput(); err != nil {
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
			if name == "testbed" && os.Geteuid() != 0 {
				t.Skip("needs root to make hosts")
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
