package main

import (
	"fmt"
	"strings"
)

// peerOptions are options of MPICH's and Open MPI's mpiexec and of Slurm's srun that
// have another name here, or need none.
var peerOptions = map[string]string{
	"N":                   "use -ppn (ranks on each host), or --hosts",
	"npernode":            "use -ppn",
	"ntasks-per-node":     "use -ppn",
	"ntasks":              "use -n",
	"c":                   "use --bind-to core:N",
	"cpus-per-task":       "use --bind-to core:N",
	"cpus-per-proc":       "use --bind-to core:N",
	"cpus-per-rank":       "use --bind-to core:N",
	"cpu-bind":            "use --bind-to",
	"binding":             "use --bind-to",
	"bind-to-core":        "use --bind-to core",
	"bind-to-socket":      "use --bind-to socket",
	"bind-to-none":        "use --bind-to none",
	"rankfile":            "use --hostfile and --map-by",
	"bynode":              "use --map-by node",
	"byslot":              "use --map-by slot",
	"rank-by":             "use --map-by",
	"distribution":        "use --map-by",
	"display-map":         "use --report-bindings",
	"H":                   "use --hosts",
	"w":                   "use --hosts",
	"nodelist":            "use --hosts",
	"default-hostfile":    "use --hostfile",
	"overcommit":          "use --oversubscribe",
	"O":                   "use --oversubscribe",
	"nooversubscribe":     "that is so unless --oversubscribe is given",
	"chdir":               "use --wdir",
	"D":                   "use --wdir",
	"export":              "use -x NAME for each variable",
	"genvall":             "all variables are passed on here; for other hosts name them with -genvlist",
	"envall":              "all variables are passed on here; for other hosts name them with -genvlist",
	"genvnone":            "start it with env -i",
	"envnone":             "start it with env -i",
	"mca":                 "settings are variables called XWARP_..., set with -x",
	"i":                   "use --stdin",
	"input":               "use --stdin",
	"o":                   "use --outfile-pattern",
	"output":              "use --outfile-pattern",
	"output-filename":     "use --outfile-pattern FILE.%r",
	"e":                   "use --errfile-pattern",
	"error":               "use --errfile-pattern",
	"label":               "use -l",
	"prepend-rank":        "use -l",
	"iface":               "use --device",
	"configfile":          "write the programs on the command line, with a : between them",
	"app":                 "write the programs on the command line, with a : between them",
	"K":                   "that is so unless --disable-auto-cleanup is given",
	"kill-on-bad-exit":    "that is so unless --disable-auto-cleanup is given",
	"no-kill":             "use --disable-auto-cleanup",
	"enable-recovery":     "use --disable-auto-cleanup",
	"t":                   "use --timeout",
	"time":                "use --timeout",
	"v":                   "it says what the job runs on unless --quiet is given",
	"verbose":             "it says what the job runs on unless --quiet is given",
	"q":                   "use --quiet",
	"V":                   "use --version",
	"allow-run-as-root":   "root may",
	"launch-agent":        "use --agent-path",
	"mpi":                 "ranks find xrun by themselves, also those that speak PMI",
	"print-all-exitcodes": "xrun names the first rank that failed",
	"rmk":                 "use --hosts, as in --hosts $SLURM_JOB_NODELIST",
	"report-uri":          "jobs do not connect to one another",
	"usize":               "ranks start no other ranks",
	"gpus-per-proc":       "GPUs are not dealt out: a rank's own is $XWARP_LOCAL_RANK",
}

// explain says in place of package flag's words which option there is.
func explain(err error) error {
	if err == nil {
		return nil
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return err
	}
	if here, ok := peerOptions[name]; ok {
		return fmt.Errorf("there is no option -%s: %s", name, here)
	}
	return fmt.Errorf("there is no option -%s", name)
}
