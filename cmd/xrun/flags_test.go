package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/launch"
	"github.com/xwarp/xwarp/internal/testbed"
)

func TestParse(t *testing.T) {
	t.Setenv("PASSED", "on")
	hostfile := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hostfile, []byte("a slots=2 # the first\nb\n"), 0o600); err != nil {
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
		{"--transport ud a", launch.Config{Program: "a", Env: []string{"XWARP_TRANSPORT=ud"}, StartTimeout: time.Minute}},
		{"--testbed 3 --mtu 1500 --switch bridge --fabric xdp:generic -- a -x", launch.Config{Program: "a", Args: []string{"-x"}, Testbed: 3, MTU: 1500, Switch: testbed.Bridge, Fabric: "xdp:generic", StartTimeout: time.Minute}},
		{"--start-timeout 5s --tag-output --bind-to none a", launch.Config{Program: "a", TagOutput: true, Bind: launch.BindNone, StartTimeout: 5 * time.Second}},
		{"--start-timeout 0 -x A=B -x PASSED a", launch.Config{Program: "a", Env: []string{"A=B", "PASSED=on"}, StartTimeout: -1}},
		{"-genv A -1 --env B=C=D -genv=E=F -l -env G  a -env H I", launch.Config{Program: "a", Args: []string{"-env", "H", "I"}, Env: []string{"A=-1", "E=F", "B=C=D", "G="}, TagOutput: true, StartTimeout: time.Minute}},
		{"-n 2 -env A 1 -genv B 2 a : b x : -np 3 -env A=2 ./c -n 4", launch.Config{
			Program: "a", Ranks: 2, Env: []string{"B=2"}, OwnEnv: []string{"A=1"}, StartTimeout: time.Minute,
			Further: []launch.App{{Program: "b", Args: []string{"x"}}, {Program: "./c", Args: []string{"-n", "4"}, Ranks: 3, Env: []string{"A=2"}}},
		}},
		{"-ppn 2 --map-by numa --bind-to core --wdir /x --timeout 90 --ordered-output a", launch.Config{Program: "a", PerHost: 2, Map: launch.MapNUMA, Bind: launch.BindCore, Dir: "/x", Timeout: 90 * time.Second, OrderOutput: true, StartTimeout: time.Minute}},
		{"--timeout 1h --hostfile HOSTFILE --agent-path /x a", launch.Config{
			Program: "a", Timeout: time.Hour, Hosts: []launch.Host{{Name: "a", Slots: 2}, {Name: "b"}},
			Agent: []string{"/x", launch.AgentArg}, StartTimeout: time.Minute,
		}},
		{"--hosts a,b:2 --device eth1 --agent-path /opt/x/xrun --launcher ssh a", launch.Config{
			Program: "a", Hosts: []launch.Host{{Name: "a"}, {Name: "b", Slots: 2}}, Device: "eth1",
			Agent: []string{"/opt/x/xrun", launch.AgentArg}, StartTimeout: time.Minute,
		}},
		{"--hosts a --launcher-exec rsh~-x --agent-path /my~dir/xrun a", launch.Config{
			Program: "a", Hosts: []launch.Host{{Name: "a"}}, Launcher: []string{"rsh", "-x"},
			Agent: []string{"'/my dir/xrun'", launch.AgentArg}, StartTimeout: time.Minute,
		}},
	} {
		args := strings.Split(c.args, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(strings.ReplaceAll(args[i], "~", " "), "HOSTFILE", hostfile)
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
		"--nosuch a":                 "-nosuch",
		"--hosts= a":                 "empty",
		"--hosts a,,b a":             "names separated by commas",
		"--fabric= a":                "empty",
		"--transport tcp a":          "use one of rd, rc, ud, hybrid",
		"--launcher rsh --hosts h a": "unknown launcher",
		"--launcher-exec rsh a":      "for --hosts",
		"--start-timeout -1s a":      "want a time",
		"--start-timeout soon a":     "soon",
		"-x =x a":                    "NAME",
		"-x NO_SUCH_VARIABLE_I_AM a": "not set",
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
		var ce *launch.ConfigError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// Every flag is in the help, and the help names no other.
func TestUsage_listsEveryFlag(t *testing.T) {
	var c launch.Config
	var o options
	var known []string
	flagSet(&c, &o).VisitAll(func(f *flag.Flag) {
		known = append(known, f.Name)
		if !strings.Contains(usage, "-"+f.Name+" ") {
			t.Errorf("the help does not name --%s", f.Name)
		}
	})
	for _, word := range strings.Fields(usage) {
		name, ok := strings.CutPrefix(strings.TrimRight(word, ".,;"), "--")
		if name, _, _ = strings.Cut(name, "="); ok && name != "name" && name != "help" && !slices.Contains(known, name) {
			t.Errorf("the help names --%s", name)
		}
	}
	for _, line := range strings.Split(usage, "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}
