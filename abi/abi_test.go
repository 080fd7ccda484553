// Package abi_test runs programs in C, compiled for both ABIs and with MPICH's own compiler
// script where that is installed, on the libraries of this folder.
package abi_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// dir is where TestMain has built, or why it has not.
type built struct{ dir, missing string }

var libraries built

func TestMain(m *testing.M) {
	os.Exit(func() int {
		for _, tool := range []string{"gcc", "make"} {
			if _, err := exec.LookPath(tool); err != nil {
				libraries.missing = "there is no " + tool
				return m.Run()
			}
		}
		var err error
		if libraries.dir, err = os.MkdirTemp("", "xwarp-abi"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(libraries.dir) }()
		for _, args := range [][]string{{"make", "-s", "-C", "..", "abi", "LDFLAGS=-s -w", "ABI_DIR=" + libraries.dir}, {"go", "build", "-o", libraries.dir + "/bin/", "../cmd/xrun"}} {
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "MAKEFLAGS=")
			if out, err := cmd.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "%v: %v\n%s", args, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// compilers are ways to compile a program.
var compilers = map[string][]string{
	"mpi": {"xmpicc", "-abi", "mpi"}, "mpich": {"xmpicc", "-abi", "mpich"}, "debian": {"mpicc.mpich"},
}

// abis are the compilers that all programs are run of. MPICH's own makes the same of them as
// ours with -abi mpich does: TestHeader.
func abis() []string {
	if os.Getenv("XWARP_LONG") == "1" {
		return []string{"mpi", "mpich", "debian"}
	}
	return []string{"mpi", "mpich"}
}

// files are those that compilers have made, by compiler and file: each is made once.
var files sync.Map

// made returns the file of that name that a compiler makes with arguments.
func made(t testing.TB, compiler, name string, args ...string) string {
	t.Helper()
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	path := filepath.Join(libraries.dir, "bin", compilers[compiler][0])
	if compiler == "debian" {
		var err error
		if path, err = exec.LookPath(compilers[compiler][0]); err != nil {
			t.Skip("MPICH's compiler script is not installed")
		}
	}
	file := filepath.Join(libraries.dir, "programs", compiler, name)
	once, _ := files.LoadOrStore(file, sync.OnceValue(func() error {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		args = slices.Concat(compilers[compiler][1:], []string{"-Wall", "-pthread", "-o", file}, args)
		out, err := run(path, args...)
		if err != nil {
			err = fmt.Errorf("%s %v: %w\n%s", path, args, err, out)
		}
		return err
	}))
	if err := once.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return file
}

// object returns a program of testdata that is not linked yet.
func object(t testing.TB, compiler, name string) string {
	t.Helper()
	warnings := "-Werror" // in Debian's header MPI_STATUSES_IGNORE is too short an array
	if compiler == "debian" {
		warnings = "-w"
	}
	return made(t, compiler, name+".o", warnings, "-c", filepath.Join("testdata", name+".c"))
}

// compile returns a program of testdata.
func compile(t testing.TB, compiler, name string) string {
	t.Helper()
	return made(t, compiler, name, object(t, compiler, name))
}

// run returns what a command writes, and its error.
func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// xrun returns what a job writes.
func xrun(args ...string) (string, error) {
	return run(filepath.Join(libraries.dir, "bin/xrun"), append([]string{"--quiet"}, args...)...)
}

// Our mpi.h for MPICH's ABI is the same to a compiler as MPICH's own: objects are equal, byte
// for byte.
func TestHeader(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".c")
		if name == "newer" {
			continue // than MPICH 4.0
		}
		var objects [2][]byte
		for i, compiler := range []string{"mpich", "debian"} {
			if objects[i], err = os.ReadFile(object(t, compiler, name)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(objects[0], objects[1]) {
			t.Errorf("%s is another program with MPICH's mpi.h", name)
		}
	}
}

// Programs write the same on our libraries and on MPICH.
func TestPrograms(t *testing.T) {
	for _, program := range []string{"p2p"} {
		want, err := os.ReadFile(filepath.Join("testdata", program+".out"))
		if err != nil {
			t.Fatal(err)
		}
		for _, compiler := range abis() {
			t.Run(program+"/"+compiler, func(t *testing.T) {
				path := compile(t, compiler, program)
				ways := [][]string{{"-n", "2"}, {"-n", "2", "--fabric", "udp", "--x", "XWARP_SHARED=0"}}
				if compiler == "debian" {
					ways = append(ways, []string{"-n", "2", "--abi", "off"})
				}
				for _, way := range ways {
					out, err := xrun(append(way, path)...)
					if err != nil || out != string(want) {
						t.Errorf("xrun %v: %v; it writes\n%s\nand not\n%s", way, err, out, want)
					}
				}
			})
		}
	}
}

// A process has signals, threads and work besides MPI: what process.c says.
func TestProcess(t *testing.T) {
	const want = "on a stack of its own: 1\non a stack of its own: 1\nhandled: 1\nawake\nlate timers: 1\nown slack: 1\nshell: 3\nchild: 4\n"
	for _, abi := range []string{"mpi", "mpich"} {
		t.Run(abi, func(t *testing.T) {
			program := compile(t, abi, "process")
			t.Setenv("LD_LIBRARY_PATH", filepath.Join(libraries.dir, "lib"))
			out, err := run(program)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 5 || out != want {
				t.Errorf("%v, it writes\n%s\nand not\n%s", err, out, want)
			}
			out, err = run("sh", "-c", "ulimit -v 4000000 && exec "+program)
			if !errors.As(err, &exit) || exit.ExitCode() != 5 || out != want {
				t.Errorf("with 4 GB of addresses: %v, it writes\n%s", err, out)
			}
		})
	}
}

// Python's interpreter is the process: what host.py says.
func TestProcess_python(t *testing.T) {
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	out, err := xrun("-n", "2", python, "testdata/host.py", filepath.Join(libraries.dir, "lib/libmpi_abi.so.1"))
	if err != nil || out != "2 ranks in Python\n" {
		t.Errorf("%v, %s", err, out)
	}
}

// mpi4py, as its wheels are built for MPICH: what with_mpi4py.py says, on one host and on two.
func TestProcess_mpi4py(t *testing.T) {
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import mpi4py, numpy").Run() != nil {
		t.Skip("there is no python3 with mpi4py and numpy")
	}
	t.Setenv("MPI4PY_LIBMPI", filepath.Join(libraries.dir, "lib/libmpich.so.12")) // there may be other ones,
	t.Setenv("LD_LIBRARY_PATH", filepath.Join(libraries.dir, "lib"))              // and this is linked to by its name
	for _, way := range [][]string{{"-n", "4"}, {"-n", "4", "--testbed", "2"}} {
		out, err := xrun(append(way, python, "testdata/with_mpi4py.py")...)
		if err != nil || out != "4 ranks in mpi4py\n" {
			t.Errorf("xrun %v: %v, %s", way, err, out)
		}
	}
}

// The first call after 1 ms of computing beside one in a loop, in microseconds, with as many
// processors as there are: 1 us more is the most that is wanted. Where MPICH is installed the
// same program runs on it in turns: what that takes is the caches and the processor.
func BenchmarkFirstCall(b *testing.B) {
	compiler := "mpich" // whose programs look for our library first, whoever starts them
	ways := map[string][]string{"": {filepath.Join(libraries.dir, "bin/xrun"), "--quiet"}}
	if path, err := exec.LookPath("mpiexec.mpich"); err == nil {
		compiler, ways["mpich-"] = "debian", []string{path}
	}
	program := compile(b, compiler, "first")
	sums := map[string]float64{}
	for range b.N {
		for name, launcher := range ways {
			var loop, first float64
			text, err := run(launcher[0], append(launcher[1:], "-n", "1", program)...)
			if _, scan := fmt.Sscan(text, &loop, &first); err != nil || scan != nil {
				b.Fatal(err, scan, text)
			}
			sums["us/"+name+"loop-call"] += loop
			sums["us/"+name+"first-call"] += first
		}
	}
	for unit, sum := range sums {
		b.ReportMetric(sum/float64(b.N), unit)
	}
}

// Programs that fail end with the code that they say, and a line says why.
func TestFail(t *testing.T) {
	for _, abi := range []string{"mpi", "mpich"} {
		program := compile(t, abi, "fail")
		class := map[string][]int{"mpi": {16, 6, 55}, "mpich": {15, 6, 44}}[abi] // MPI_ERR_OTHER, _RANK, _UNSUPPORTED_OPERATION
		for _, c := range []struct {
			way, text string
			code      int
		}{
			{"early", "MPI_Comm_rank: error: MPI_Init was not called", class[0]},
			{"late", "MPI_Comm_rank: error: MPI_Finalize was called before", class[0]},
			{"abort", "called MPI_Abort with code 23", 23},
			{"fatal", "MPI_Send: invalid rank: destination 99", class[1]},
			{"missing", "MPI_Close_port: unsupported operation", class[2]},
			{"exit", "", 9}, {"segv", "", 139}, {"left", "", 0}, {"well", "", 0},
		} {
			out, err := xrun("-n", "2", program, c.way)
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			}
			if code != c.code || !strings.Contains(out, c.text) {
				t.Errorf("%s, %s: code %d, %s; want %d, %s", abi, c.way, code, out, c.code, c.text)
			}
		}
	}
}

// NetPIPE as Debian has compiled it checks what it receives.
func TestNetPIPE(t *testing.T) {
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	if _, err := exec.LookPath("NPmpich2"); err != nil {
		t.Skip("Debian's netpipe-mpich2 is not installed")
	}
	ways := []string{"--fabric udp --x XWARP_SHARED=0", ""}
	if os.Geteuid() == 0 {
		ways = append(ways, "--testbed 2")
	}
	for _, way := range ways {
		for _, mode := range []string{"-i -n 10", "-a -p 0 -n 10"} {
			args := append(strings.Fields(way), "-n", "2", "NPmpich2", "-l", "1", "-u", "200000", "-o", filepath.Join(t.TempDir(), "np.out"))
			out, err := xrun(append(args, strings.Fields(mode)...)...)
			if err != nil || !strings.Contains(out, " 196608 bytes") && !strings.Contains(out, " 196609 bytes") || strings.Contains(out, "mismatch") {
				t.Errorf("xrun %s NPmpich2 %s: %v\n%s", way, mode, err, out)
			}
		}
	}
}

func TestHello(t *testing.T) {
	for compiler := range compilers {
		t.Run(compiler, func(t *testing.T) {
			program := compile(t, compiler, "hello")
			for _, how := range []string{"", "--fabric udp", "--testbed 2"} {
				if how == "--testbed 2" && os.Geteuid() != 0 {
					t.Skip("AF_XDP over a testbed is for root")
				}
				out, err := xrun(append(strings.Fields(how), "-n", "3", program)...)
				if err != nil || out != "3 ranks, token 3\n" {
					t.Errorf("xrun %s: %v, %q", how, err, out)
				}
			}
			t.Setenv("LD_LIBRARY_PATH", filepath.Join(libraries.dir, "lib"))
			if out, err := run(program); err != nil || out != "1 ranks, token 1\n" {
				t.Errorf("without a launcher: %v, %q", err, out)
			}
		})
	}
}
