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
var peerOptions = getopt.Hints{
	{"N", "use -ppn (ranks on each host), or --hosts"},
	{"npernode ntasks-per-node perhost grr", "use -ppn"},
	{"ntasks", "use -n"},
	{"c cpus-per-task cpus-per-proc cpus-per-rank", "use --bind-to core:N"},
	{"cpu-bind binding", "use --bind-to"},
	{"bind-to-core", "use --bind-to core"},
	{"bind-to-socket", "use --bind-to socket"},
	{"bind-to-none", "use --bind-to none"},
	{"rankfile rf", "use --hostfile and --map-by"},
	{"bynode rr", "use --map-by node"},
	{"byslot", "use --map-by slot"},
	{"rank-by distribution", "use --map-by"},
	{"H w nodelist hostlist machine machines machinelist", "use --hosts"},
	{"default-hostfile", "use --hostfile"},
	{"overcommit O", "use --oversubscribe"},
	{"nooversubscribe", "that is so unless --oversubscribe is given"},
	{"chdir D", "use --wdir"},
	{"export", "use -x NAME for each variable"},
	{"genvall envall", "all variables are passed on here; for other hosts name them with -genvlist"},
	{"genvnone envnone", "start it with env -i"},
	{"mca gmca am tune", "settings are variables called XWARP_..., set with -x"},
	{"i input", "use --stdin"},
	{"o output outfile", "use --outfile-pattern"},
	{"e error errfile", "use --errfile-pattern"},
	{"label", "use -l"},
	{"iface", "use --device"},
	{"K kill-on-bad-exit enable-auto-cleanup disable-recovery", "that is so unless --disable-auto-cleanup is given"},
	{"no-kill enable-recovery dac continuous", "use --disable-auto-cleanup"},
	{"t time", "use --timeout"},
	{"launch-agent prefix", "use --agent-path"},
	{"mpi", "ranks find xrun by themselves, also those that speak PMI"},
	{"print-all-exitcodes", "xrun names the first rank that failed"},
	{"rmk", "the hosts of Slurm, LSF, Grid Engine and PBS are found by themselves; others are named with --hosts"},
	{"pernode", "use -ppn 1"},
	{"npersocket", "use -n and --map-by socket"},
	{"ppr", "use --map-by ppr:N:node, or -ppn"},
	{"bycore", "use --map-by core"},
	{"cpu-list slot-list", "use --bind-to user:LIST, or --cpu-set"},
	{"use-hwthread-cpus", "use --bind-to hwthread"},
	{"membind", "use --bind-to numa: memory comes from where a rank runs"},
	{"topolib demux", "there is one, and it needs no name"},
	{"order-nodes", "write the hosts in the order that they are to be used in"},
	{"nolocal skip-launch-node max-vm-size", "name the hosts to use with --hosts"},
	{"localhost", "hosts reach one another by the names of --hosts"},
	{"bootstrap", "use --launcher"},
	{"bootstrap-exec rsh", "use --launcher-exec"},
	{"noprefix", "that is so: the agent is found by --agent-path"},
	{"enable-x", "use --launcher-exec, with what ssh needs for that"},
	{"disable-x", "that is so"},
	{"nameserver ompi-server report-uri", "jobs do not connect to one another"},
	{"pmi-port", "ranks inherit a socket"},
	{"profile check_mpi", "use --stats"},
	{"prepend-pattern", "use -l, which puts \"[rank] \" in front"},
	{"timestamp-output", "use --trace for when something was called, or pipe the output through ts"},
	{"xml", "use --json for what the ranks have done"},
	{"display-allocation display-devel-map", "use --display-map"},
	{"display-topo", "use --report-bindings"},
	{"max-restarts", "ranks are not started again"},
	{"path", "set PATH, and for other hosts -x PATH"},
	{"preload-binary", "copy the program to the hosts before"},
	{"preload-files", "copy the files to the hosts before"},
	{"tv debug debugger gdb", "start xterm as the program, and in it the debugger with yours"},
	{"xterm", "start xterm as the program, and in it yours"},
	{"enable-hostname-propagation disable-hostname-propagation", "ranks know the host that they are on"},
	{"usize", "ranks start no other ranks"},
	{"gpus-per-proc", "GPUs are not dealt out: a rank's own is $XWARP_LOCAL_RANK"},
}.ByName()

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
