package abi_test

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// suite are the programs that together call every function there is. What they write is what
// they write on MPICH 4.0, but for those with arguments and newer, which has what that does not.
var suite = []struct{ ranks, program, args, want string }{
	{"4", "every_coll", "", "every_coll"},
	{"2", "every_p2p", "", "every_p2p"},
	{"2", "every_rma", "", "every_rma"},
	{"2", "classes", "", "classes"},
	{"2", "classes", "ours", "classes_ours"},
	{"2", "checks", "", "checks"},
	{"2", "checks", "ours", "checks_ours"},
	{"1", "tools", "", "tools"},
	{"1", "tools", "ours", "tools_ours"},
	{"2", "newer", "", "newer"},
	{"4", "corners", "", "corners"},
	{"4", "corners", "ours", "corners_ours"},
	{"3", "threads", "0", "threads"},
	{"3", "threads", "1", "threads"},
	{"3", "threads", "2", "threads"},
	{"3", "threads", "3", "threads"},
	{"1", "callbacks", "", "callbacks"},
	{"1", "callbacks", "ours", "callbacks"},
}

func TestSuite(t *testing.T) {
	for _, compiler := range abis() {
		for _, c := range suite {
			if c.program == "newer" && compiler == "debian" {
				continue
			}
			t.Run(c.program+c.args+"/"+compiler, func(t *testing.T) {
				program := compile(t, compiler, c.program)
				want, err := os.ReadFile(filepath.Join("testdata", c.want+".want"))
				if err != nil {
					t.Fatal(err)
				}
				out, err := xrun(append([]string{"-n", c.ranks, program}, strings.Fields(c.args)...)...)
				if err != nil || out != string(want) {
					t.Errorf("%v; it writes\n%s\nand not\n%s", err, out, want)
				}
			})
		}
	}
}

// What the programs are to write is what they write on MPICH.
func TestSuite_onMPICH(t *testing.T) {
	if _, err := exec.LookPath("mpiexec.mpich"); err != nil {
		t.Skip("MPICH is not installed")
	}
	for _, c := range suite {
		if c.program == "newer" || c.args == "ours" {
			continue
		}
		args := c.args
		if c.program == "every_coll" {
			args = "blocking and nonblocking" // Debian's persistent MPI_Gather and MPI_Scatter are wrong
		}
		t.Run(c.program+c.args, func(t *testing.T) {
			program := compile(t, "debian", c.program)
			want, err := os.ReadFile(filepath.Join("testdata", c.want+".want"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("mpiexec.mpich", append([]string{"-n", c.ranks, program}, strings.Fields(args)...)...)
			out, err := cmd.Output() // it warns of what programs leave behind
			if err != nil || string(out) != string(want) {
				t.Errorf("%v; it writes\n%s\nand not\n%s", err, out, want)
			}
		})
	}
}

// More ranks than there are processors, by far.
func TestSuite_32ranks(t *testing.T) {
	out, err := xrun("-n", "32", compile(t, "mpi", "every_coll"), "once")
	if err != nil || strings.Contains(out, "and not") || !strings.Contains(out, "Neighbor_alltoallw") {
		t.Errorf("%v; it writes\n%s", err, out)
	}
}

// Every function that there is, docs/ABI.md says, is called by a program of testdata.
func TestSuite_every(t *testing.T) {
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	called := map[string]bool{}
	sources, err := filepath.Glob("testdata/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		f, err := elf.Open(compile(t, "mpi", strings.TrimSuffix(filepath.Base(source), ".c")))
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := f.ImportedSymbols()
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			called[strings.TrimPrefix(s.Name, "P")] = true
		}
	}
	doc, err := os.ReadFile("../docs/ABI.md")
	if err != nil {
		t.Fatal(err)
	}
	there, _, _ := strings.Cut(string(doc), "## What is not")
	names := regexp.MustCompile(`(?m)^(MPI_\w+)(\[_c\])?$`).FindAllStringSubmatch(there, -1)
	if len(names) < 300 {
		t.Fatalf("%d functions are in docs/ABI.md", len(names))
	}
	for _, n := range names {
		for _, form := range []string{"", "_c"}[:1+len(n[2])/4] {
			if !called[n[1]+form] {
				t.Errorf("no program calls %s", n[1]+form)
			}
		}
	}
}

// Programs that were compiled with the mpi.h of MPICH 4.2 call functions where that of 4.0 has
// macros.
func TestSuite_conversions(t *testing.T) {
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	f, err := elf.Open(filepath.Join(libraries.dir, "lib/libmpich.so.12"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, s := range symbols {
		there[s.Name] = s.Section != elf.SHN_UNDEF
	}
	for kind := range strings.FieldsSeq("Comm Errhandler File Group Info Message Op Request Session Status Type Win") {
		for _, name := range []string{"MPI_" + kind + "_c2f", "MPI_" + kind + "_f2c"} {
			if !there[name] || !there["P"+name] {
				t.Errorf("the library has no %s", name)
			}
		}
	}
}
