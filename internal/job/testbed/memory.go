package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// memoryDir holds files that are memory (shm_overview(7)).
const memoryDir = "/dev/shm"

// Memory makes a folder for files that programs on the hosts share as memory, and
// returns its path. It goes with the testbed, whatever becomes of them.
func (t *Testbed) Memory() (string, error) {
	dir := filepath.Join(memoryDir, t.Name+"-memory")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("testbed: %w", err)
	}
	return dir, nil
}

// memoryNames returns the folders of testbeds whose names begin with prefix.
func memoryNames(prefix string) ([]string, error) { return namesIn(memoryDir, prefix, true) }

// removeMemory removes the folders whose names begin with prefix.
func removeMemory(prefix string) (removed []string, err error) {
	names, err := memoryNames(prefix)
	errs := []error{err}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(memoryDir, name)); err != nil {
			errs = append(errs, permission(err))
			continue
		}
		removed = append(removed, filepath.Join(memoryDir, name))
	}
	return removed, errors.Join(errs...)
}
