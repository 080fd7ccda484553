package cli_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goWrapper is a go command that builds nothing, and notes that it was to.
const goWrapper = `#!/bin/sh
[ "$1" = build ] || exec go "$@"
echo "$@" >>"$0.log"
`

// runMake runs make at the top of the repository, and returns what it says and
// what it would have built: in these tests that is there already.
func runMake(t *testing.T, args ...string) (out, built string, err error) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	wrapper := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(wrapper, []byte(goWrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", append([]string{"-C", "../../..", "GO=" + wrapper, "ABI_DIR=none"}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") }) // whatever this test runs under
	cmd.Env = append(cmd.Env, "DPKG_DEB_COMPRESSOR_TYPE=none")                                             // most of the time would go there
	text, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(wrapper + ".log") // none: nothing was to be built
	return string(text), string(log), err
}

// mustMake is runMake that works. It returns what would have been built.
func mustMake(t *testing.T, args ...string) string {
	t.Helper()
	out, built, err := runMake(t, args...)
	if err != nil {
		t.Fatalf("make %q: %v\n%s", args, err, out)
	}
	return built
}

// files returns the files below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(dir, path)
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func testInstall(t *testing.T, bin string) {
	root := t.TempDir()
	if built := mustMake(t, "install", "BIN="+bin, "DESTDIR="+root, "PREFIX=/opt/x"); !strings.Contains(built, "./cmd/...") {
		t.Errorf("before it, this was built: %q", built)
	}
	got := files(t, root)
	want := []string{"doc/xwarp/README.md", "doc/xwarp/CHANGELOG.md", "doc/xwarp/docs/MPI.md", "xwarp/wireshark/xwarp.lua"}
	for _, name := range all {
		want = append(want, "../bin/"+name, "man/man1/"+name+".1", "bash-completion/completions/"+name)
		output(t, filepath.Join(root, "opt/x/bin", name), "--help")
	}
	for _, path := range want {
		path = filepath.Join("opt/x/share", path)
		if !slices.Contains(got, path) {
			t.Errorf("%s is not installed", path)
		} else if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Size() == 0 || info.Mode()&0o444 != 0o444 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	for _, path := range got { // the examples have names that others use: sort
		if dir, name := filepath.Split(path); dir == "opt/x/bin/" && !slices.Contains(all, name) {
			t.Errorf("%s is installed", path)
		}
	}
	mustMake(t, "uninstall", "DESTDIR="+root, "PREFIX=/opt/x")
	if got := files(t, root); len(got) > 0 {
		t.Errorf("uninstall leaves %q", got)
	}
}

// As with sudo, which often does not know where Go is.
func testInstallWithoutGo(t *testing.T, bin string) {
	root := t.TempDir()
	mustMake(t, "install", "BIN="+bin, "DESTDIR="+root, "GO=nogo")
	output(t, filepath.Join(root, "usr/local/bin/xrun"), "--version")
	if out, _, err := runMake(t, "install", "BIN="+t.TempDir(), "DESTDIR="+root, "GO=nogo"); err == nil || !strings.Contains(out, "make build") {
		t.Errorf("with nothing to install: %v, %s", err, out)
	}
}

func testDeb(t *testing.T, built string) {
	for _, tool := range []string{"dpkg-deb", "md5sum", "gzip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	bin := t.TempDir()
	if err := os.Symlink(built, filepath.Join(bin, "deb")); err != nil {
		t.Fatal(err)
	}
	mustMake(t, "deb", "BIN="+bin)
	packages, err := filepath.Glob(filepath.Join(bin, "xwarp_*-1_*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("%q, %v", packages, err)
	}
	control := output(t, "dpkg-deb", "-f", packages[0])
	for _, field := range []string{"Package: xwarp\n", "\nVersion: ", "\nArchitecture: ", "\nMaintainer: ", "\nInstalled-Size: ", "\nDescription: "} {
		if !strings.Contains(control, field) {
			t.Errorf("no %q in\n%s", field, control)
		}
	}
	if strings.Contains(control, "Depends:") {
		t.Errorf("the programs need nothing:\n%s", control)
	}
	root := t.TempDir()
	output(t, "dpkg-deb", "-R", packages[0], root)
	for _, name := range all {
		output(t, filepath.Join(root, "usr/bin", name), "--version")
		output(t, "gzip", "-t", filepath.Join(root, "usr/share/man/man1", name+".1.gz"))
	}
	sums := exec.Command("md5sum", "--quiet", "-c", "DEBIAN/md5sums")
	sums.Dir = root
	if out, err := sums.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	licenses, err := os.ReadFile(filepath.Join(root, "usr/share/doc/xwarp/copyright"))
	for _, module := range []string{"common-licenses/Apache-2.0", "== Go\n", "== github.com/cilium/ebpf\n", "== golang.org/x/sys\n"} {
		if err != nil || !strings.Contains(string(licenses), module) {
			t.Errorf("the licenses do not name %q: %v", module, err)
		}
	}
}
