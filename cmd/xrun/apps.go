package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/xwarp/xwarp/internal/launch"
)

// between stands between the programs of a job on the command line, as mpiexec has it
// (MPI 4.1, section 11.5).
const between = ":"

// splitPrograms returns the parts of the command line, one for each program. A colon
// by itself belongs to none of them.
func splitPrograms(args []string) [][]string {
	var parts [][]string
	for {
		i := slices.Index(args, between)
		if i < 0 {
			return append(parts, args)
		}
		parts, args = append(parts, args[:i]), args[i+1:]
	}
}

// furtherApp reads a part of the command line after the first one.
func furtherApp(args []string) (launch.App, error) {
	var a launch.App
	fs := flag.NewFlagSet("xrun", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Func("n", "", positive(&a.Ranks))
	fs.Func("np", "", positive(&a.Ranks))
	fs.Func("env", "", func(s string) error { return addPair(&a.Env, s) })
	fs.Func("envlist", "", func(s string) error { return addEnvList(&a.Env, s) })
	fs.Func("wdir", "", nonEmpty(&a.Dir))
	fs.Func("wd", "", nonEmpty(&a.Dir))
	if err := fs.Parse(joinPairs(fs, args)); err != nil {
		return a, fmt.Errorf("%w (what is for all ranks stands before the first program; after a %q only -n, -env, -envlist and -wdir)", explain(err), between)
	}
	if fs.NArg() == 0 {
		return a, errors.New("no program to run after a \"" + between + "\"")
	}
	a.Program, a.Args = fs.Arg(0), fs.Args()[1:]
	return a, nil
}
