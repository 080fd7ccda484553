package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// inCName is what a library for C is called in results.
func inCName(abi string) string { return "C, " + abi }

// inC starts ranks of xwarp that are peer/peer.c, compiled for one of the ABIs, to wait for
// orders as Rank does. The launcher finds the library, and places them as it does ranks in Go.
func (m Measurement) inC(abi string, w Where, largest int) (_ *Job, err error) {
	dir, err := os.MkdirTemp("", "xperf-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // all ranks run by then
	program, err := m.tests.in(dir, m.Xmpicc, "-abi", abi, "-DXPERF_SLEEPS")
	if err != nil {
		return nil, err
	}
	j, err := Ours([]string{program}, w, m.Fabric, largest)
	if err == nil {
		j.Library = inCName(abi)
	}
	return j, err
}
