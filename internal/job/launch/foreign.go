package launch

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Programs of Open MPI find no launcher of theirs under xrun, and each would be
// a job of one rank, which does the same work as the others. What they are linked with
// tells; of scripts, and of programs that other programs start, that is not known.

// A foreignError says that a program cannot be a rank here.
type foreignError struct{ program, library string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s was built for Open MPI (it is linked with %s), whose ranks find one another by Open MPI's launcher only: start it with that (mpiexec.openmpi, mpirun), or build it with MPICH (mpicc.mpich) for xrun", e.program, e.library)
}

// checkForeign refuses a program of Open MPI, also as what a wrapper starts.
func (s *startOrder) checkForeign(app int, path string) error {
	a := s.Apps[app]
	path = a.inner(path)
	if library := linkedWith(path, s.searchPath(a), isOpenMPI); library != "" {
		return &foreignError{path, library}
	}
	return nil
}

// libraries returns the folder with the libraries of ours that a program is linked with by
// their names, if there is one and they are wanted: bin/xrun has them in lib.
func (s *startOrder) libraries(app int, path string) string {
	a := s.Apps[app]
	if word, _ := lookupIn(slices.Concat(s.Env, a.Env), config.EnvABI); word == "off" {
		return ""
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(self)), "lib")
	ours := func(library string) bool {
		_, err := os.Stat(filepath.Join(dir, library))
		return err == nil && (strings.HasPrefix(library, "libmpi") || strings.HasPrefix(library, "libpmpi"))
	}
	if linkedWith(a.inner(path), s.searchPath(a), ours) == "" {
		return ""
	}
	return dir
}

// inner is the program that a wrapper starts, or the one that is none.
func (a App) inner(path string) string {
	if slices.Contains(wrappers[:], filepath.Base(path)) {
		for _, arg := range a.Args {
			if inner, err := exec.LookPath(arg); err == nil && !slices.Contains(wrappers[:], filepath.Base(inner)) {
				return inner
			}
		}
	}
	return path
}

// libraryPath is where the dynamic linker looks first.
const libraryPath = "LD_LIBRARY_PATH"

func (s *startOrder) searchPath(a App) []string {
	return searchPath(func(name string) string {
		value, _ := lookupIn(slices.Concat(s.Env, a.Env), name)
		return value
	})
}

// wrappers start the program that their arguments name.
var wrappers = [...]string{"env", "nice", "ionice", "nohup", "setsid", "stdbuf", "chrt", "taskset", "numactl", "time", "timeout", "gdb", "strace", "ltrace", "valgrind", "perf"}

// maxLibraries is more than a program is linked with.
const maxLibraries = 500

// linkedWith returns the library of a kind that an ELF file is linked with, itself or
// through others, or "". search is where libraries are found.
func linkedWith(path string, search []string, kind func(library string) bool) string {
	seen := map[string]bool{}
	for queue := []string{path}; len(queue) > 0 && len(seen) < maxLibraries; queue = queue[1:] {
		needed, runpath := linked(queue[0])
		for _, library := range needed {
			switch {
			case kind(library):
				return library
			case seen[library]:
				continue
			}
			seen[library] = true
			for _, dir := range slices.Concat(runpath, search) {
				file := filepath.Join(dir, library)
				if _, err := os.Stat(file); err == nil {
					queue = append(queue, file)
					break
				}
			}
		}
	}
	return ""
}

// isOpenMPI reports whether only Open MPI has a library of that name. libmpi.so.12 may as
// well be MPICH's or Intel's: what it is linked with itself tells.
func isOpenMPI(library string) bool {
	theirs := []string{"libmpi.so.20", "libmpi.so.40", "libopen-rte.so", "libopen-pal.so", "libprrte.so", "liboshmem.so", "libmpi_mpifh.so", "libmpi_usempi", "libmpi_cxx.so"}
	return slices.ContainsFunc(theirs, func(prefix string) bool { return strings.HasPrefix(library, prefix) })
}

// linked returns the libraries that an ELF file names, and where it says that they are.
// What is no ELF file has none.
func linked(path string) (needed, dirs []string) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	needed, err = f.ImportedLibraries()
	if err != nil {
		return nil, nil
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		list, _ := f.DynString(tag) // one that cannot be read is none
		for _, paths := range list {
			for dir := range strings.SplitSeq(paths, ":") {
				dirs = append(dirs, strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path)).Replace(dir))
			}
		}
	}
	return needed, dirs
}

// searchPath returns where the dynamic linker looks for libraries (ld.so(8)).
func searchPath(env func(string) string) (dirs []string) {
	dirs = filepath.SplitList(env(libraryPath))
	configs, _ := filepath.Glob("/etc/ld.so.conf.d/*.conf")
	for _, file := range append([]string{"/etc/ld.so.conf"}, configs...) {
		text, _ := os.ReadFile(file) // there may be none
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
				dirs = append(dirs, line)
			}
		}
	}
	return append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}
