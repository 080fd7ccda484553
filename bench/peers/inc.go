package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xwarp/xwarp/bench"
)

// ABIs are the binary interfaces of xwarp's libraries for programs in C, as xmpicc knows them.
func ABIs() []string { return []string{"mpi", "mpich"} }

// Xmpicc is the compiler script for them, which make abi puts beside the program self.
func Xmpicc(self string) (string, error) {
	path := filepath.Join(filepath.Dir(self), "xmpicc")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there are no libraries for programs in C: run make abi: %w", err)
	}
	return path, nil
}

// inC starts ranks of xwarp that are peer/peer.c, compiled for one of the ABIs. The launcher
// finds the library.
func (m Measurement) inC(abi string, w Where, largest int) (_ *Job, err error) {
	dir, err := os.MkdirTemp("", "xperf-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // all ranks run by then
	program, err := m.tests.in(dir, m.Xmpicc, "-abi", abi)
	if err != nil {
		return nil, err
	}
	j, err := Ours([]string{program}, w, m.Fabric, largest, envCores+"="+bench.JoinInts(w.Cores))
	if err == nil {
		j.Library = "C, " + abi
	}
	return j, err
}
