package abi_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make install installs compiles and runs programs from where it is, and make uninstall
// removes all of it. To link the commands takes a minute: it is one of them, and all with
// XWARP_LONG=1.
func TestInstall(t *testing.T) {
	if libraries.missing != "" {
		t.Skip(libraries.missing)
	}
	commands := []string{"COMMANDS=xrun"}
	if os.Getenv("XWARP_LONG") == "1" {
		commands = nil
		if out, err := run("go", "build", "-o", libraries.dir+"/bin/", "../cmd/..."); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	root := t.TempDir()
	prefix := filepath.Join(root, "opt/x")
	mk := func(target string) {
		t.Helper()
		args := append([]string{"-s", "-C", "..", target, "GO=nogo", "BIN=" + libraries.dir + "/bin", "ABI_DIR=" + libraries.dir, "DESTDIR=" + root, "PREFIX=/opt/x"}, commands...)
		cmd := exec.Command("make", args...)
		cmd.Env = append(os.Environ(), "MAKEFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	mk("install")
	cxx, fortran := filepath.Join(root, "p.cpp"), "testdata/fortran.f90"
	if err := os.WriteFile(cxx, []byte("#include <mpi.h>\nint main() { return MPI_Init(0, 0) + MPI_Finalize(); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ script, needs, source, want string }{
		{"xmpicc -abi mpi", "cc", "testdata/hello.c", "3 ranks, token 3\n"},
		{"xmpicc -abi mpich", "cc", "testdata/hello.c", "3 ranks, token 3\n"},
		{"xmpicxx -abi mpi", "c++", cxx, ""},
		{"xmpicxx -abi mpich", "c++", cxx, ""},
		{"xmpifort", "mpif90.mpich", fortran, "0 3 4 0 2 2 T T T 42 T 3 16"},
	} {
		if _, err := exec.LookPath(c.needs); err != nil {
			t.Logf("%s is left out: there is no %s", c.script, c.needs)
			continue
		}
		program := filepath.Join(root, "program")
		words := strings.Fields(c.script)
		if out, err := run(filepath.Join(prefix, "bin", words[0]), append(words[1:], "-o", program, c.source)...); err != nil {
			t.Errorf("%s: %v: %s", c.script, err, out)
			continue
		}
		out, err := run(filepath.Join(prefix, "bin/xrun"), "--quiet", "-n", "3", program)
		if err != nil || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(c.want), " ") {
			t.Errorf("%s: %v: %s", c.script, err, out)
		}
		if out, err := run(program); err != nil { // which knows where its library is
			t.Errorf("%s, without a launcher: %v: %s", c.script, err, out)
		}
	}
	if out, err := run(filepath.Join(prefix, "bin/xmpifort"), "-abi", "mpi", fortran); err == nil || !strings.Contains(out, "-abi mpich") {
		t.Errorf("Fortran with -abi mpi: %v: %s", err, out)
	}
	for abi, library := range map[string]string{"mpi": "mpi_abi", "mpich": "mpich"} {
		text, err := os.ReadFile(filepath.Join(prefix, "lib/pkgconfig/xwarp-"+abi+".pc"))
		if err != nil || !strings.Contains(string(text), "prefix=/opt/x\n") || !strings.Contains(string(text), "-l"+library+"\n") || strings.Contains(string(text), "@") {
			t.Errorf("%v: %s", err, text)
		}
	}
	mk("uninstall")
	err := filepath.WalkDir(filepath.Join(root, "opt"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("uninstall leaves %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
