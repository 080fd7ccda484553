package abi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// objectWays are the ways in which programs about communicators, windows and the like run on
// 4 ranks, and what they are to write: what they write on MPICH 4. That of sessions cannot
// run there, for it makes a session after the last one has ended.
var objectWays = map[string][][]string{
	"comms":      {{}},
	"topologies": {{}},
	"attributes": {{}},
	"sessions":   {{}},
	"rma":        {{}, {"--ghosts", "1"}},
}

func TestObjects(t *testing.T) {
	for name, ways := range objectWays {
		want, err := os.ReadFile(filepath.Join("testdata", name+".want"))
		if err != nil {
			t.Fatal(err)
		}
		for _, compiler := range abis() {
			t.Run(name+"/"+compiler, func(t *testing.T) {
				program := compile(t, compiler, name)
				for _, way := range ways {
					out, err := xrun(append(way, "-n", "4", program)...)
					if err != nil || out != string(want) {
						t.Errorf("xrun %v: %v; it writes\n%s\nand not\n%s", way, err, out, want)
					}
				}
			})
		}
	}
}

// Windows and communicators whose ranks have no memory in common. The argument of rma leaves
// out windows that need it.
func TestObjects_apart(t *testing.T) {
	for _, name := range []string{"comms", "rma"} {
		t.Run(name, func(t *testing.T) {
			program := compile(t, "mpich", name)
			want, err := xrun("-n", "4", program, "apart")
			if err != nil {
				t.Fatal(err)
			}
			out, err := xrun("--fabric", "udp", "--x", "XWARP_SHARED=0", "-n", "4", program, "apart")
			if err != nil || out != want {
				t.Errorf("%v; it writes\n%s\nand not\n%s", err, out, want)
			}
		})
	}
}

// A Fortran program has windows, collectives in place, attributes and generalized requests, through MPICH's Fortran
// library.
func TestFortran(t *testing.T) {
	compiler, err := exec.LookPath("mpif90.mpich")
	if err != nil || libraries.missing != "" {
		t.Skip("MPICH's compiler script for Fortran, or a C compiler, is not installed")
	}
	program := filepath.Join(t.TempDir(), "fortran")
	if out, err := run(compiler, "-o", program, "testdata/fortran.f90"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := xrun("-n", "3", program)
	if want := "0 3 4 0 2 2 T T T 42 T 3 16"; err != nil || strings.Join(strings.Fields(out), " ") != want {
		t.Errorf("%v: it writes %q and not %s", err, out, want)
	}
}

// A process that has had sessions only calls MPI_Init.
func TestSessions_thenInit(t *testing.T) {
	program := compile(t, "mpi", "sessions")
	want, err := os.ReadFile(filepath.Join("testdata", "sessions.want"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := xrun("-n", "4", program, "init")
	if err != nil || out != string(want)+"ranks 4\n" {
		t.Errorf("%v: %s", err, out)
	}
}
