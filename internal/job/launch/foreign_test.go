package launch

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeELF makes a file that is linked with libraries, found in a runpath, and no program
// that could run.
func writeELF(t *testing.T, name, runpath string, libraries ...string) {
	t.Helper()
	names := []byte{0}
	var entries []elf.Dyn64
	add := func(tag elf.DynTag, s string) {
		entries = append(entries, elf.Dyn64{Tag: int64(tag), Val: uint64(len(names))})
		names = append(append(names, s...), 0)
	}
	for _, l := range libraries {
		add(elf.DT_NEEDED, l)
	}
	if runpath != "" {
		add(elf.DT_RUNPATH, runpath)
	}
	var dynamic bytes.Buffer
	if err := binary.Write(&dynamic, binary.LittleEndian, append(entries, elf.Dyn64{})); err != nil {
		t.Fatal(err)
	}
	const header, section = 64, 64
	at := uint64(header)
	sections := []elf.Section64{
		{},
		{Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))},
		{Type: uint32(elf.SHT_DYNAMIC), Off: at + uint64(len(names)), Size: uint64(dynamic.Len()), Link: 1, Entsize: 16},
	}
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: header,
		Shoff: at + uint64(len(names)+dynamic.Len()), Shentsize: section, Shnum: uint16(len(sections)), Shstrndx: 1,
	}
	var file bytes.Buffer
	for _, part := range []any{h, names, dynamic.Bytes(), sections} {
		if err := binary.Write(&file, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(name, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestOpenMPI(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeELF(t, at("lib/libmine.so"), "", "libc.so.6", "libmpi.so.40")
	writeELF(t, at("lib/libmpi.so.12"), "$ORIGIN", "libopen-rte.so.12")
	writeELF(t, at("libmpi.so.12"), "", "libmpich.so.12", "libc.so.6")
	writeELF(t, at("lib/libself.so"), "$ORIGIN", "libself.so")
	writeELF(t, at("direct"), "", "libc.so.6", "libmpi.so.40")
	writeELF(t, at("fortran"), "", "libmpi_usempif08.so.40")
	writeELF(t, at("through"), "/none:$ORIGIN/lib", "libmine.so")
	writeELF(t, at("old"), "$ORIGIN/lib", "libmpi.so.12")
	writeELF(t, at("mpich"), "$ORIGIN", "libmpi.so.12")
	writeELF(t, at("searched"), "", "libmine.so")
	writeELF(t, at("circle"), "$ORIGIN/lib", "libself.so")
	if err := os.WriteFile(at("script"), []byte("#!/bin/sh\nexec ./direct\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"direct": "libmpi.so.40", "fortran": "libmpi_usempif08.so.40", "through": "libmpi.so.40", "old": "libopen-rte.so.12",
		"searched": "libmpi.so.40", "mpich": "", "circle": "", "script": "", "none": "",
	} {
		if got := linkedWith(at(name), []string{at("lib")}, isOpenMPI); got != want {
			t.Errorf("%s is linked with %q, want %q", name, got, want)
		}
	}
	if got := linkedWith(at("searched"), nil, isOpenMPI); got != "" {
		t.Errorf("a library that is not found is %q", got)
	}
	if got := linkedWith("/proc/self/exe", nil, isOpenMPI); got != "" {
		t.Errorf("this test is linked with %q", got)
	}
}

func TestRun_programsOfOpenMPI(t *testing.T) {
	dir := t.TempDir()
	writeELF(t, dir+"/prog", "", "libmpi.so.40")
	t.Setenv("PATH", os.Getenv("PATH")+":"+dir)
	for _, c := range []Config{
		{Program: dir + "/prog"},
		{Program: "prog"},
		{Program: "./prog", Dir: dir},
		{Program: "env", Args: []string{"A=1", "nice", "-n", "1", dir + "/prog", "x"}},
		{Program: "sleep", Args: []string{"1000"}, Further: []App{{Program: "prog"}}},
	} {
		c.Ranks = 2
		out, err := runJob(t, c)
		var se *StartError
		if !errors.As(err, &se) || ExitCode(err) != ExitCannotRun || out != "" || !strings.Contains(err.Error(), "was built for Open MPI (it is linked with libmpi.so.40)") {
			t.Errorf("%s %v: %q, %v", c.Program, c.Args, out, err)
		}
	}
	if out, err := runJob(t, Config{Program: "echo", Args: []string{dir + "/prog"}}); err != nil || out == "" {
		t.Errorf("an argument that is no program to start: %q, %v", out, err)
	}
}

// What Open MPI's own compiler makes is recognised.
func TestOpenMPI_itself(t *testing.T) {
	cc, err := exec.LookPath("mpicc.openmpi")
	if err != nil {
		t.Skip("Open MPI's compiler is not installed (Debian: libopenmpi-dev)")
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a.c", []byte("#include <mpi.h>\nint main(int c, char **v) { return MPI_Init(&c, &v) || MPI_Finalize(); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(cc, "-o", dir+"/a", dir+"/a.c").CombinedOutput()
	if strings.Contains(string(out), "mpi.h: No such file") {
		t.Skip("Open MPI's compiler is installed without its header (Debian: libopenmpi-dev)")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := linkedWith(dir+"/a", searchPath(os.Getenv), isOpenMPI); !strings.HasPrefix(got, "libmpi.so.") && !strings.HasPrefix(got, "libopen-") {
		t.Errorf("linked with %q", got)
	}
}

// One rank is of another library. Who comes first does not matter.
func TestRun_ranksOfTwoLibraries(t *testing.T) {
	for first, second := range map[string]string{"exchange": "pmiexchange", "pmiexchange": "exchange"} {
		c := rankConfig(2, first)
		c.Further = []App{{Program: self, Args: []string{"as-rank", second}, Ranks: 1}}
		_, err := runJob(t, c)
		var me *MixedError
		if !errors.As(err, &me) || ExitCode(err) != ExitLauncher || !strings.Contains(err.Error(), "is built with another MPI library") {
			t.Errorf("%s and %s: %v", first, second, err)
			continue
		}
		if (me.PMI == 2) != (second == "pmiexchange") && (me.Own == 2) != (second == "exchange") {
			t.Errorf("%s and %s: %v", first, second, err)
		}
	}
}
