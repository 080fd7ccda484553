package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/xwarp/xwarp/internal/job/launch"
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

// furtherApp reads a part of the command line after the first one. It returns the
// hosts that it names, too.
func furtherApp(args []string) (a launch.App, hosts []launch.Host, err error) {
	fs := flag.NewFlagSet("xrun", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.Func("n", "", positive(&a.Ranks))
	fs.Func("np", "", positive(&a.Ranks))
	fs.Func("env", "", func(s string) error { return addPair(&a.Env, s) })
	fs.Func("envlist", "", func(s string) error { return addEnvList(&a.Env, s) })
	fs.Func("wdir", "", nonEmpty(&a.Dir))
	fs.Func("wd", "", nonEmpty(&a.Dir))
	for _, name := range []string{"host", "hosts"} {
		fs.Func(name, "", func(s string) (err error) {
			hosts, err = launch.ParseHosts(s)
			return err
		})
	}
	if err := fs.Parse(joinPairs(fs, args)); err != nil {
		return a, nil, fmt.Errorf("%w (what is for all ranks stands before the first program; after a %q only -n, -env, -envlist, -wdir and -host)", explain(err), between)
	}
	if fs.NArg() == 0 {
		return a, nil, errors.New("no program to run after a \"" + between + "\"")
	}
	a.Program, a.Args, a.Hosts = fs.Arg(0), fs.Args()[1:], hostNames(hosts)
	return a, hosts, nil
}

func hostNames(hosts []launch.Host) (names []string) {
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}

// addHosts adds the hosts that further programs have named to those of the job. The
// first program and those that have named none keep to the ones that are there.
func addHosts(c *launch.Config, more []launch.Host) error {
	if len(more) == 0 {
		return nil
	}
	if len(c.Hosts) == 0 {
		return &launch.ConfigError{Problem: "a program after a \"" + between + "\" has a -host, and the first one has none: say where that runs, too"}
	}
	c.OwnHosts = hostNames(c.Hosts)
	for i := range c.Further {
		if c.Further[i].Hosts == nil {
			c.Further[i].Hosts = c.OwnHosts
		}
	}
	for _, h := range more {
		if !slices.ContainsFunc(c.Hosts, func(o launch.Host) bool { return o.Name == h.Name }) {
			c.Hosts = append(c.Hosts, h)
		}
	}
	return nil
}
