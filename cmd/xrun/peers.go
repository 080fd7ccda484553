package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/xwarp/xwarp/cmd/internal/getopt"
	"github.com/xwarp/xwarp/internal/job/launch"
)

// peerOptions are options of MPICH's and Open MPI's mpiexec and of Slurm's srun that
// have another name here, or need none.
var peerOptions = map[string]string{
	"N":                            "use -ppn (ranks on each host), or --hosts",
	"npernode":                     "use -ppn",
	"ntasks-per-node":              "use -ppn",
	"ntasks":                       "use -n",
	"c":                            "use --bind-to core:N",
	"cpus-per-task":                "use --bind-to core:N",
	"cpus-per-proc":                "use --bind-to core:N",
	"cpus-per-rank":                "use --bind-to core:N",
	"cpu-bind":                     "use --bind-to",
	"binding":                      "use --bind-to",
	"bind-to-core":                 "use --bind-to core",
	"bind-to-socket":               "use --bind-to socket",
	"bind-to-none":                 "use --bind-to none",
	"rankfile":                     "use --hostfile and --map-by",
	"bynode":                       "use --map-by node",
	"byslot":                       "use --map-by slot",
	"rank-by":                      "use --map-by",
	"distribution":                 "use --map-by",
	"H":                            "use --hosts",
	"w":                            "use --hosts",
	"nodelist":                     "use --hosts",
	"default-hostfile":             "use --hostfile",
	"overcommit":                   "use --oversubscribe",
	"O":                            "use --oversubscribe",
	"nooversubscribe":              "that is so unless --oversubscribe is given",
	"chdir":                        "use --wdir",
	"D":                            "use --wdir",
	"export":                       "use -x NAME for each variable",
	"genvall":                      "all variables are passed on here; for other hosts name them with -genvlist",
	"envall":                       "all variables are passed on here; for other hosts name them with -genvlist",
	"genvnone":                     "start it with env -i",
	"envnone":                      "start it with env -i",
	"mca":                          "settings are variables called XWARP_..., set with -x",
	"i":                            "use --stdin",
	"input":                        "use --stdin",
	"o":                            "use --outfile-pattern",
	"output":                       "use --outfile-pattern",
	"e":                            "use --errfile-pattern",
	"error":                        "use --errfile-pattern",
	"label":                        "use -l",
	"iface":                        "use --device",
	"K":                            "that is so unless --disable-auto-cleanup is given",
	"kill-on-bad-exit":             "that is so unless --disable-auto-cleanup is given",
	"no-kill":                      "use --disable-auto-cleanup",
	"enable-recovery":              "use --disable-auto-cleanup",
	"t":                            "use --timeout",
	"time":                         "use --timeout",
	"launch-agent":                 "use --agent-path",
	"mpi":                          "ranks find xrun by themselves, also those that speak PMI",
	"print-all-exitcodes":          "xrun names the first rank that failed",
	"rmk":                          "the hosts of Slurm, LSF, Grid Engine and PBS are found by themselves; others are named with --hosts",
	"hostlist":                     "use --hosts",
	"machine":                      "use --hosts",
	"machines":                     "use --hosts",
	"machinelist":                  "use --hosts",
	"perhost":                      "use -ppn",
	"rr":                           "use --map-by node",
	"grr":                          "use -ppn",
	"pernode":                      "use -ppn 1",
	"npersocket":                   "use -n and --map-by socket",
	"ppr":                          "use --map-by ppr:N:node, or -ppn",
	"bycore":                       "use --map-by core",
	"cpu-list":                     "use --bind-to user:LIST, or --cpu-set",
	"slot-list":                    "use --bind-to user:LIST, or --cpu-set",
	"use-hwthread-cpus":            "use --bind-to hwthread",
	"membind":                      "use --bind-to numa: memory comes from where a rank runs",
	"topolib":                      "there is one, and it needs no name",
	"rf":                           "use --hostfile and --map-by",
	"order-nodes":                  "write the hosts in the order that they are to be used in",
	"nolocal":                      "name the hosts to use with --hosts",
	"skip-launch-node":             "name the hosts to use with --hosts",
	"localhost":                    "hosts reach one another by the names of --hosts",
	"max-vm-size":                  "name the hosts to use with --hosts",
	"bootstrap":                    "use --launcher",
	"bootstrap-exec":               "use --launcher-exec",
	"rsh":                          "use --launcher-exec",
	"prefix":                       "use --agent-path",
	"noprefix":                     "that is so: the agent is found by --agent-path",
	"enable-x":                     "use --launcher-exec, with what ssh needs for that",
	"disable-x":                    "that is so",
	"demux":                        "there is one, and it needs no name",
	"nameserver":                   "jobs do not connect to one another",
	"ompi-server":                  "jobs do not connect to one another",
	"pmi-port":                     "ranks inherit a socket",
	"profile":                      "use --stats",
	"prepend-pattern":              "use -l, which puts \"[rank] \" in front",
	"outfile":                      "use --outfile-pattern",
	"errfile":                      "use --errfile-pattern",
	"timestamp-output":             "use --trace for when something was called, or pipe the output through ts",
	"xml":                          "use --json for what the ranks have done",
	"display-allocation":           "use --display-map",
	"display-devel-map":            "use --display-map",
	"display-topo":                 "use --report-bindings",
	"dac":                          "use --disable-auto-cleanup",
	"enable-auto-cleanup":          "that is so unless --disable-auto-cleanup is given",
	"disable-recovery":             "that is so unless --disable-auto-cleanup is given",
	"continuous":                   "use --disable-auto-cleanup",
	"max-restarts":                 "ranks are not started again",
	"path":                         "set PATH, and for other hosts -x PATH",
	"preload-binary":               "copy the program to the hosts before",
	"preload-files":                "copy the files to the hosts before",
	"gmca":                         "settings are variables called XWARP_..., set with -x",
	"am":                           "settings are variables called XWARP_..., set with -x",
	"tune":                         "settings are variables called XWARP_..., set with -x",
	"check_mpi":                    "use --stats",
	"tv":                           "start xterm as the program, and in it the debugger with yours",
	"debug":                        "start xterm as the program, and in it the debugger with yours",
	"debugger":                     "start xterm as the program, and in it the debugger with yours",
	"gdb":                          "start xterm as the program, and in it the debugger with yours",
	"xterm":                        "start xterm as the program, and in it yours",
	"enable-hostname-propagation":  "ranks know the host that they are on",
	"disable-hostname-propagation": "ranks know the host that they are on",
	"report-uri":                   "jobs do not connect to one another",
	"usize":                        "ranks start no other ranks",
	"gpus-per-proc":                "GPUs are not dealt out: a rank's own is $XWARP_LOCAL_RANK",
}

// explain says in place of package flag's words which option there is.
func explain(err error) error { return getopt.Explain(err, peerOptions) }

// peerFlags are options of mpiexec of MPICH, Open MPI and Intel MPI that have their
// meaning here too.
func peerFlags(fs *flag.FlagSet, c *launch.Config, o *options) {
	for _, name := range []string{"allow-run-as-root", "v", "verbose"} {
		fs.Bool(name, false, "") // root may; and --quiet is what ends it
	}
	fs.BoolVar(&o.quiet, "q", false, "")
	fs.BoolVar(&o.version, "V", false, "")
	fs.BoolVar(&o.version, "info", false, "")
	fs.BoolVar(&c.TagOutput, "prepend-rank", false, "")
	fs.BoolVar(&c.MergeOutput, "merge-stderr-to-stdout", false, "")
	fs.BoolVar(&c.ReportBindings, "display-map", false, "")
	fs.BoolVar(&c.ReportBindings, "print-rank-map", false, "")
	fs.Func("output-filename", "", func(s string) error { return setOutputDir(c, o, s) })
	fs.Func("s", "", func(s string) error { return setStdin(c, s) })
	fs.Func("cpu-set", "", func(s string) (err error) {
		c.Processors, err = launch.ParseProcessors(s)
		return err
	})
	fs.Func("configfile", "", nonEmpty(&o.configFile))
	fs.Func("app", "", nonEmpty(&o.configFile))
}

// setOutputDir reads --output-filename as Open MPI's mpiexec has it: a directory, in which
// each rank of job 1 gets one of its own.
func setOutputDir(c *launch.Config, o *options, s string) error {
	dir, modifiers, _ := strings.Cut(s, ":")
	if dir == "" {
		return errors.New("it is empty")
	}
	o.outputDir = dir
	inside := strings.ReplaceAll(dir, "%", "%%") + "/1"
	for m := range strings.SplitSeq(modifiers, ",") {
		switch strings.ToLower(m) {
		case "", "nocopy":
		case "nojobid":
			inside = strings.TrimSuffix(inside, "/1")
		default:
			return fmt.Errorf("unknown modifier %q: want nocopy or nojobid", m)
		}
	}
	c.OutFile, c.ErrFile = inside+"/rank.%0r/stdout", inside+"/rank.%0r/stderr"
	c.MakeDirs = true
	return nil
}
