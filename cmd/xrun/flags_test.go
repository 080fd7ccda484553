package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/job/launch"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

func TestParse(t *testing.T) {
	t.Setenv("PASSED", "on")
	hostfile := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hostfile, []byte("a slots=2 # the first\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("# all\n-n 1 -l -x A=1 ./a -x \"two words\" ''\n\n  -n 2 \\\nb c\nd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want launch.Config
	}{
		{"prog", launch.Config{Program: "prog", StartTimeout: time.Minute}},
		{"-n 4 ./a -n 5 --help", launch.Config{Program: "./a", Args: []string{"-n", "5", "--help"}, Ranks: 4, StartTimeout: time.Minute}},
		{"--n=4 --quiet a", launch.Config{Program: "a", Ranks: 4, StartTimeout: time.Minute}},
		{"-np 4 a", launch.Config{Program: "a", Ranks: 4, StartTimeout: time.Minute}},
		{"-6 --busy-poll=false --ipv6=1 a", launch.Config{Program: "a", Env: []string{"XWARP_IPV6=1", "XWARP_BUSY_POLL=0", "XWARP_IPV6=1"}, StartTimeout: time.Minute}},
		{"--transport ud a", launch.Config{Program: "a", Env: []string{"XWARP_TRANSPORT=ud"}, StartTimeout: time.Minute}},
		{"--testbed 3 --mtu 1500 --switch bridge --fabric xdp:generic -- a -x", launch.Config{Program: "a", Args: []string{"-x"}, Testbed: 3, MTU: 1500, Switch: testbed.Bridge, Fabric: "xdp:generic", StartTimeout: time.Minute}},
		{"--start-timeout 5s --tag-output --bind-to none a", launch.Config{Program: "a", TagOutput: true, Bind: launch.BindNone, StartTimeout: 5 * time.Second}},
		{"--start-timeout 0 -x A=B -x PASSED a", launch.Config{Program: "a", Env: []string{"A=B", "PASSED=on"}, StartTimeout: -1}},
		{"-genv A -1 --env B=C=D -genv=E=F -l -env G  a -env H I", launch.Config{Program: "a", Args: []string{"-env", "H", "I"}, Env: []string{"A=-1", "E=F", "B=C=D", "G="}, TagOutput: true, StartTimeout: time.Minute}},
		{"-n 2 -env A 1 -genv B 2 a : b x : -np 3 -env A=2 ./c -n 4", launch.Config{
			Program: "a", Ranks: 2, Env: []string{"B=2"}, Own: launch.Own{OwnEnv: []string{"A=1"}}, StartTimeout: time.Minute,
			Further: []launch.App{{Program: "b", Args: []string{"x"}}, {Program: "./c", Args: []string{"-n", "4"}, Ranks: 3, Env: []string{"A=2"}}},
		}},
		{"-ppn 2 --map-by numa --bind-to core --wdir /x --timeout 90 --ordered-output a", launch.Config{Program: "a", PerHost: 2, Map: launch.MapNUMA, Bind: launch.BindCore, Dir: "/x", Timeout: 90 * time.Second, OrderOutput: true, StartTimeout: time.Minute}},
		{"--map-by ppr:2:node:pe=3,oversubscribe --report-bindings a", launch.Config{Program: "a", Map: launch.MapSlot, PerHost: 2, Cores: 3, Bind: launch.BindCore, Oversubscribe: true, ReportBindings: true, StartTimeout: time.Minute}},
		{"--map-by package:NOOVERSUBSCRIBE --bind-to core:2 a", launch.Config{Program: "a", Map: launch.MapSocket, Cores: 2, Bind: launch.BindCore, StartTimeout: time.Minute}},
		{"--map-by hwthread a", launch.Config{Program: "a", Map: launch.MapCore, Bind: launch.BindThread, StartTimeout: time.Minute}},
		{"--bind-to none --map-by hwthread a", launch.Config{Program: "a", Map: launch.MapCore, Bind: launch.BindNone, StartTimeout: time.Minute}},
		{"--oversubscribe --map-by host --bind-to core:overload-allowed a", launch.Config{Program: "a", Map: launch.MapNode, Bind: launch.BindCore, Oversubscribe: true, StartTimeout: time.Minute}},
		{"--stdin all --outfile-pattern out.%r --errfile-pattern err a", launch.Config{Program: "a", StdinTo: launch.StdinAll, OutFile: "out.%r", ErrFile: "err", StartTimeout: time.Minute}},
		{"--stdin 3 -genvlist PASSED,PASSED -wd /x a : -wdir y -envlist PASSED b", launch.Config{
			Program: "a", StdinTo: 3, Env: []string{"PASSED=on", "PASSED=on"}, Dir: "/x", StartTimeout: time.Minute,
			Further: []launch.App{{Program: "b", Args: []string{}, Env: []string{"PASSED=on"}, Dir: "y"}},
		}},
		{"--stdin none -envlist PASSED a", launch.Config{Program: "a", StdinTo: launch.StdinNone, Env: []string{"PASSED=on"}, StartTimeout: time.Minute}},
		{"-host a:2 --agent-path /x s : -host b,a c : -n 2 d", launch.Config{
			Program: "s", Own: launch.Own{OwnHosts: []string{"a"}}, Hosts: []launch.Host{{Name: "a", Slots: 2}, {Name: "b"}}, Agent: []string{"/x", launch.AgentArg}, StartTimeout: time.Minute,
			Further: []launch.App{{Program: "c", Args: []string{}, Hosts: []string{"b", "a"}}, {Program: "d", Args: []string{}, Ranks: 2, Hosts: []string{"a"}}},
		}},
		{"--timeout 1h --hostfile HOSTFILE --agent-path /x a", launch.Config{
			Program: "a", Timeout: time.Hour, Hosts: []launch.Host{{Name: "a", Slots: 2}, {Name: "b"}},
			Agent: []string{"/x", launch.AgentArg}, StartTimeout: time.Minute,
		}},
		{"--hosts a,b:2 --device eth1 --agent-path /opt/x/xrun --launcher ssh a", launch.Config{
			Program: "a", Hosts: []launch.Host{{Name: "a"}, {Name: "b", Slots: 2}}, Device: "eth1",
			Agent: []string{"/opt/x/xrun", launch.AgentArg}, StartTimeout: time.Minute,
		}},
		{"--allow-run-as-root -v -q --merge-stderr-to-stdout -prepend-rank --display-map --cpu-set 0-1,3 -s all a", launch.Config{
			Program: "a", MergeOutput: true, TagOutput: true, ReportBindings: true, Processors: []int{0, 1, 3}, StdinTo: launch.StdinAll, StartTimeout: time.Minute,
		}},
		{"--output-filename d%/e --bind-to user:0+1,2 a", launch.Config{
			Program: "a", OutFile: "d%%/e/1/rank.%0r/stdout", ErrFile: "d%%/e/1/rank.%0r/stderr", MakeDirs: true,
			Bind: launch.BindUser, Places: [][]int{{0, 1}, {2}}, StartTimeout: time.Minute,
		}},
		{"--output-filename d:nojobid,nocopy a", launch.Config{Program: "a", OutFile: "d/rank.%0r/stdout", ErrFile: "d/rank.%0r/stderr", MakeDirs: true, StartTimeout: time.Minute}},
		{"--configfile CONFIG -n 3 -x A=2", launch.Config{
			Program: "./a", Args: []string{"-x", "two words", ""}, Ranks: 3, Env: []string{"A=1", "A=2"}, TagOutput: true, StartTimeout: time.Minute,
			Further: []launch.App{{Program: "b", Args: []string{"c"}, Ranks: 2}, {Program: "d", Args: []string{}}},
		}},
		{"--hosts [fd00::1]:2,fd00::2 --agent-path /x a", launch.Config{
			Program: "a", Hosts: []launch.Host{{Name: "fd00::1", Slots: 2}, {Name: "fd00::2"}}, Agent: []string{"/x", launch.AgentArg}, StartTimeout: time.Minute,
		}},
		{"--hosts a --launcher-exec rsh~-x --agent-path /my~dir/xrun a", launch.Config{
			Program: "a", Hosts: []launch.Host{{Name: "a"}}, Launcher: []string{"rsh", "-x"},
			Agent: []string{"'/my dir/xrun'", launch.AgentArg}, StartTimeout: time.Minute,
		}},
	} {
		args := strings.Split(c.args, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(strings.ReplaceAll(args[i], "~", " "), "HOSTFILE", hostfile)
			args[i] = strings.ReplaceAll(args[i], "CONFIG", config)
		}
		got, _, err := parse(args)
		got.Notice = nil
		if len(got.Args) == 0 {
			got.Args = nil
		}
		if len(got.Launcher) == 0 {
			got.Launcher = nil
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, %v; want\n%+v", c.args, got, err, c.want)
		}
	}
}

func TestParse_refuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                           "no program",
		"-n 4":                       "no program",
		"-n 0 a":                     "above 0",
		"a :":                        "no program to run after",
		": a":                        "no program",
		"a : -n 0 b":                 "above 0",
		"a : --testbed 2 b":          "before the first program",
		"-n -1 a":                    "above 0",
		"-n x a":                     "above 0",
		"-n":                         "needs an argument",
		"--testbed 0 a":              "above 0",
		"--mtu 0 a":                  "above 0",
		"--nosuch a":                 "there is no option -nosuch",
		"-N 2 a":                     "there is no option -N: use -ppn",
		"a : --output b c":           "use --outfile-pattern (what is for all",
		"a : -q c":                   "what is for all ranks stands before the first",
		"--map-by ppr:2:numa a":      "want ppr:N:node",
		"--map-by ppr:0:node a":      "want ppr:N:node",
		"--map-by slot:pe=x a":       "pe=x: want a number above 0",
		"--map-by slot:span a":       "unknown modifier \"span\"",
		"--map-by= a":                "empty",
		"--bind-to= a":               "empty",
		"--bind-to core:two a":       "want a number of cores, as in core:2",
		"--bind-to core:0 a":         "want 1 to 1024",
		"--bind-to user:x a":         "as in user:0,1+2,3",
		"--output-filename= a":       "empty",
		"--output-filename d:copy a": "want nocopy or nojobid",
		"--cpu-set x a":              "want processors as in 0-3,8",
		"--cpu-set= a":               "empty",
		"-s some a":                  "want the number of a rank, all or none",
		"--configfile /none":         "no such file",
		"--configfile /dev/null":     "there is no program in it",
		"--configfile /dev/null a":   "leave out those of the command line",
		"--stdin first a":            "want the number of a rank, all or none",
		"-genvlist A=1 a":            "want names",
		"a : -host b c":              "and the first one has none",
		"-host a b : -host a,,c d":   "names separated by commas",
		"--hosts= a":                 "empty",
		"--hosts a,,b a":             "names separated by commas",
		"--fabric= a":                "empty",
		"--transport tcp a":          "want rd, rc, ud or hybrid",
		"--launcher rsh --hosts h a": "unknown launcher",
		"--launcher-exec rsh a":      "for --hosts",
		"--start-timeout -1s a":      "want a time",
		"--start-timeout soon a":     "soon",
		"--json x --trace x a":       "into the same file",
		"-x =x a":                    "NAME",
		"-x NO_SUCH_VARIABLE_I_AM a": "not set",
		"-x XWARP_EAGR=1 a":          "there is no variable XWARP_EAGR: use XWARP_EAGER",
		"a : -env XWARP_SHARD 0 b":   "use XWARP_SHARED",
		"--ipv6=perhaps a":           "want 0 or 1",
		"-genv A":                    "want NAME VALUE",
		"-env A 1":                   "no program",
		"-genv":                      "needs an argument",
		"--timeout soon a":           "want a time",
		"--timeout -1s a":            "want a time",
		"-ppn 0 a":                   "above 0",
		"--hosts a -f b c":           "either in",
		"-f /no/such/file a":         "no such file",
		"--hostfile /dev/null a":     "no host in it",
		"--tag-output=perhaps a":     "perhaps",
	} {
		_, _, err := parse(strings.Fields(args))
		if _, ok := errors.AsType[*launch.ConfigError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestParse_misspeltVariable(t *testing.T) {
	t.Setenv("XWARP_HOME", "/opt/xwarp") // somebody's own
	if _, _, err := parse([]string{"-q", "a"}); err != nil {
		t.Error(err)
	}
	t.Setenv("XWARP_TRANPORT", "rc")
	_, _, err := parse([]string{"a"})
	if _, ok := errors.AsType[*launch.ConfigError](err); !ok || !strings.Contains(err.Error(), "there is no variable XWARP_TRANPORT: use XWARP_TRANSPORT") {
		t.Error(err)
	}
}

// What an option of a peer's is called here is an option.
func TestPeerOptions(t *testing.T) {
	var c launch.Config
	var o options
	fs := flagSet(&c, &o)
	for name, text := range peerOptions {
		if fs.Lookup(name) != nil {
			t.Errorf("-%s is an option, and no other is needed", name)
		}
		for _, word := range strings.Fields(text) {
			if here, ok := strings.CutPrefix(strings.Trim(word, ",.;:()"), "-"); ok && fs.Lookup(strings.TrimPrefix(here, "-")) == nil && word != "-i" {
				t.Errorf("-%s: %s is no option", name, word)
			}
		}
	}
}

// What mpiexec of others knows, as their help lists it (MPICH 4.0 and its aliases, Open MPI
// 4.1, and the most used of Intel MPI), is an option here too, or there is a hint.
func TestPeerOptions_complete(t *testing.T) {
	const mpich = `genv genvlist genvnone genvall f hostfile machinefile machine machines machinelist host hosts hostlist ppn profile
		prepend-rank l prepend-pattern outfile-pattern errfile-pattern outfile errfile wdir configfile env envlist envnone envall n np
		launcher launcher-exec bootstrap bootstrap-exec enable-x disable-x rmk topolib binding bind-to map-by membind demux verbose v
		debug info version print-all-exitcodes iface nameserver disable-auto-cleanup dac enable-auto-cleanup
		disable-hostname-propagation enable-hostname-propagation order-nodes localhost usize pmi-port skip-launch-node gpus-per-proc`
	const openMPI = `allow-run-as-root am app bind-to bind-to-core bind-to-socket bycore bynode byslot c np continuous cpu-list cpu-set
		cpus-per-proc cpus-per-rank debug debugger default-hostfile disable-recovery display-allocation display-devel-map display-map
		display-topo enable-recovery gmca H host hostfile launch-agent machinefile map-by max-restarts max-vm-size mca
		merge-stderr-to-stdout N n nolocal nooversubscribe noprefix npernode npersocket ompi-server output-filename oversubscribe path
		pernode ppr prefix preload-files q quiet rank-by report-bindings report-uri rf rankfile s preload-binary stdin
		tag-output timeout timestamp-output tune tv use-hwthread-cpus v verbose V version wd wdir x xml xterm`
	const intel = `print-rank-map perhost rr grr s check_mpi gdb`
	var c launch.Config
	var o options
	fs := flagSet(&c, &o)
	for _, name := range strings.Fields(mpich + " " + openMPI + " " + intel) {
		if _, hint := peerOptions[name]; !hint && fs.Lookup(name) == nil {
			t.Errorf("-%s is no option, and there is no hint", name)
		}
	}
}

// In an allocation its hosts are used, unless the command line names others.
func TestParse_allocation(t *testing.T) {
	t.Setenv("SLURM_JOB_NODELIST", "n[1-2]")
	t.Setenv("SLURM_TASKS_PER_NODE", "3(x2)")
	for args, want := range map[string]string{
		"-q a": "[{n1 3 0 <nil>} {n2 3 0 <nil>}]", "-q --hosts b a": "[{b 0 0 <nil>}]", "-q --testbed 2 a": "[]",
		"-q --launcher-exec rsh a": "[{n1 3 0 <nil>} {n2 3 0 <nil>}]",
	} {
		c, _, err := parse(strings.Fields(args))
		if err != nil || fmt.Sprint(c.Hosts) != want || c.Ranks != 0 {
			t.Errorf("%s: %v, %v; want %s", args, c.Hosts, err, want)
		}
	}
	t.Setenv("SLURM_TASKS_PER_NODE", "3")
	_, _, err := parse([]string{"a"})
	if _, ok := errors.AsType[*launch.ConfigError](err); !ok || !strings.Contains(err.Error(), "name the hosts with --hosts") {
		t.Error(err)
	}
}

// Every flag is in the help, and the help names no other.
func TestUsage_listsEveryFlag(t *testing.T) {
	var c launch.Config
	var o options
	var known []string
	flagSet(&c, &o).VisitAll(func(f *flag.Flag) {
		known = append(known, f.Name)
		if !regexp.MustCompile("-" + regexp.QuoteMeta(f.Name) + "[ ,.;)\n]").MatchString(usage()) {
			t.Errorf("the help does not name --%s", f.Name)
		}
	})
	for _, word := range strings.Fields(usage()) {
		name, ok := strings.CutPrefix(strings.TrimRight(word, ".,;)"), "--")
		if name, _, _ = strings.Cut(name, "="); ok && name != "name" && name != "help" && !slices.Contains(known, name) {
			t.Errorf("the help names --%s", name)
		}
	}
	for _, line := range strings.Split(usage(), "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}
