// Gen makes what differs only by the table of functions: for each ABI a header, the C
// functions and the Go functions that they call, into bin/_abi, where make abi builds them;
// and, with -constants, the constants that package capi is compiled with, and docs/ABI.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	checkedIn := flag.Bool("constants", false, "write what is checked in: the constants of package capi and docs/ABI.md")
	root := flag.String("root", ".", "root of the repository")
	out := flag.String("out", "bin/_abi", "where the folders of the libraries go, below the root")
	flag.Parse()
	if err := run(*root, *out, *checkedIn); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(root, out string, checkedIn bool) error {
	in, err := readInput(root)
	if err != nil {
		return err
	}
	if checkedIn {
		return in.writeCheckedIn(root)
	}
	for _, abi := range abis {
		dir := filepath.Join(root, out, abi.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		files := map[string]string{
			"mpi.h": in.header(abi), "shim.c": in.shim(abi), "entry.go": in.entries(),
			"library.go": in.parts["library.go"], "library.h": in.parts["library.h"], "library.c": in.parts["library.c"],
			"legacy.c": in.parts["legacy.c"],
		}
		for name, text := range files {
			if err := writeChanged(filepath.Join(dir, name), text); err != nil {
				return err
			}
		}
	}
	return writeChanged(filepath.Join(root, out, "exports.map"), exportsMap)
}

// writeChanged leaves a file that is as it should be alone, for make and the build cache.
func writeChanged(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// exportsMap is the version script of the linker: what programs see.
const exportsMap = "{ global: MPI_*; PMPI_*; MPIX_*; PMPIX_*; MPIR_*; MPII_*; sigaction; signal; local: *; };\n"
