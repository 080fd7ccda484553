package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// program finds what ranks run, once.
func (a *agent) program(app int) (path string, err error) {
	if path = a.programs[app]; path != "" {
		return path, nil
	}
	if path, err = a.start.path(a.start.Apps[app]); err == nil {
		err = a.start.checkForeign(app, path)
	}
	if dir := a.start.libraries(app, path); err == nil && dir != "" {
		env := &a.start.Apps[app].Env
		old, _ := lookupIn(slices.Concat(a.start.Env, *env), libraryPath)
		*env = append(*env, strings.TrimSuffix(libraryPath+"="+dir+":"+old, ":"))
	}
	a.programs[app] = path
	return path, err
}

// path finds the program on this host: in the PATH that its ranks get, or one with a
// slash from the directory that it is to start in. The process is in that of the job.
func (s *startOrder) path(a App) (string, error) {
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return "", err
	}
	if !strings.Contains(a.Program, "/") {
		search, _ := lookupIn(slices.Concat(s.Env, a.Env), "PATH")
		return lookIn(search, a.Program, dir)
	}
	path := a.Program
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path) // a relative one would be seen from there, too
	}
	if _, err = exec.LookPath(path); errors.Is(err, fs.ErrNotExist) {
		return "", &missingError{fmt.Sprintf("there is no %s: give the path that it has on that host (--wdir says where a relative one begins), or copy it there", path)}
	}
	return path, err
}

// lookIn finds a program in the directories of search. dir is where it would start.
func lookIn(search, name, dir string) (string, error) {
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			continue // as package exec has it
		}
		if path, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return path, nil
		}
	}
	remedy := "give the path that it has on that host, or add its directory with -x PATH=DIR:..."
	if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
		remedy = fmt.Sprintf("the one in %s is called ./%s", dir, name)
	}
	return "", &missingError{fmt.Sprintf("no such program in PATH there (%s): %s", search, remedy)}
}

// missingError says where a program was looked for, and what to do.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }
func (e *missingError) Unwrap() error { return fs.ErrNotExist }

// reason returns what is wrong, without the name of the program, which the
// controller adds.
func reason(err error) string {
	ee, unfit := errors.AsType[*exec.Error](err)
	if !unfit {
		return explain(err).Error()
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return ee.Err.Error()
}
