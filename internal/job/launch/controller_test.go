package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/test/testenv"
)

func TestRun_ranksExchange(t *testing.T) {
	stand := []string{self, "as-launcher"}
	for name, c := range map[string]Config{
		"local":    {Ranks: 5},
		"one":      {Ranks: 1},
		"testbed":  {Ranks: 4, Testbed: 2, Fabric: "udp"},
		"shared":   {Ranks: 5, Testbed: 2, Fabric: "xdp", Queues: QueuesShared},
		"steered":  {Ranks: 5, Testbed: 2, Fabric: "xdp", Queues: QueuesSteered},
		"hosts":    {Ranks: 5, Hosts: []Host{{Name: "a", Slots: 0}, {Name: "b", Slots: 0}, {Name: "c", Slots: 0}}, Launcher: stand, Agent: []string{self, AgentArg}, Device: "lo", Fabric: "udp"},
		"defaults": {},
	} {
		for _, mode := range []string{"exchange", "pmiexchange"} {
			t.Run(name+" "+mode, func(t *testing.T) { testExchange(t, c, mode) })
		}
	}
}

func testExchange(t *testing.T, c Config, mode string) {
	if c.Testbed > 0 {
		testenv.NeedRoot(t)
	}
	n := max(1, c.Ranks)
	c.Program, c.Args = self, []string{"as-rank", mode}
	out, err := runJob(t, c)
	if err != nil || strings.Count(out, "\n") != n || strings.Contains(out, "put") {
		t.Fatalf("%v\n%s", err, out)
	}
	keys := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		keys[line[strings.LastIndex(line, " "):]] = true
	}
	if len(keys) != 1 {
		t.Errorf("ranks have different keys:\n%s", out)
	}
}

// A shell that greets before it runs the agent does no harm, and is heard.
func TestRun_welcome(t *testing.T) {
	var errOut safeBuffer
	err := Run(Config{
		Program: "true", Hosts: []Host{{Name: "a"}, {Name: "welcome"}}, Launcher: []string{self, "as-launcher"},
		Agent: []string{self, AgentArg}, Device: "lo", Fabric: "udp", Stderr: &errOut,
	})
	if want := "Welcome!\n\nYou have mail.\n"; err != nil || errOut.String() != want {
		t.Errorf("%v, %q, want %q", err, errOut.String(), want)
	}
}

// Ranks that speak PMI-1 fail as all others do.
func TestRun_pmiRankFails(t *testing.T) {
	for mode, c := range map[string]struct {
		code int
		text string
	}{
		"pmiabort":   {77, "rank 1 on "},
		"pmidie":     {137, "SIGKILL"},
		"pmileave":   {1, "without Finalize"},
		"pmigarbage": {ExitLauncher, "rank 1: PMI: unknown command \"dance\""},
	} {
		out, err := runJob(t, rankConfig(3, mode, "1"))
		if ExitCode(err) != c.code || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: %v, status %d; want %q, %d\n%s", mode, err, ExitCode(err), c.text, c.code, out)
		}
	}
}

func TestRun_testbedGivesEachRankANIC(t *testing.T) {
	testenv.NeedRoot(t)
	if err := probeXDP(); err != nil {
		testenv.NoXDP(t, err)
	}
	c := Config{Ranks: 4, Testbed: 2, Fabric: "xdp", Queues: QueuesPerRank, Program: "sh", TagOutput: true,
		Args: []string{"-c", `echo $XWARP_HOST.$XWARP_LOCAL_RANK $XWARP_FABRIC; readlink /proc/self/ns/net; grep -o xw0 /proc/net/dev`}}
	out, err := runJob(t, c)
	if err != nil {
		t.Fatal(err)
	}
	spaces := map[string]bool{}
	for rank, want := range []string{"0.0 xdp", "0.1 xdp", "1.0 xdp", "1.1 xdp"} {
		tag := fmt.Sprintf("[%d] ", rank)
		if !strings.Contains(out, tag+want+"\n") || !strings.Contains(out, tag+"xw0\n") {
			t.Errorf("rank %d: want %q and a NIC in\n%s", rank, want, out)
		}
		_, rest, _ := strings.Cut(out, tag+"net:")
		ns, _, _ := strings.Cut(rest, "\n")
		spaces[ns] = true
	}
	if len(spaces) != 4 {
		t.Errorf("namespaces %v, want four", spaces)
	}
}

// Linux shares processors out by session, so that ranks which give their core to one another
// must be in one; and a signal that is for the rank of a host is for its children, but for no
// other rank.
func TestRun_ranksShareASession(t *testing.T) {
	c := Config{Ranks: 3, Program: "sh", Args: []string{"-c", `echo $$ $(cut -d" " -f5,6 /proc/$$/stat)`}}
	out, err := runJob(t, c)
	if err != nil {
		t.Fatal(err)
	}
	sessions := map[int]bool{}
	for line := range strings.Lines(out) {
		var pid, group, session int
		if _, err := fmt.Sscan(line, &pid, &group, &session); err != nil || group != pid || session == pid {
			t.Errorf("process, group and session are %q: %v", line, err)
		}
		sessions[session] = true
	}
	if len(sessions) != 1 || strings.Count(out, "\n") != c.Ranks {
		t.Errorf("want one session of three ranks:\n%s", out)
	}
}

func TestRun_rankFails(t *testing.T) {
	for _, c := range []struct {
		mode   []string
		code   int
		rank   int
		signal unix.Signal
		text   string
	}{
		{[]string{"die", "1", "3"}, 3, 1, 0, "exited with status 3"},
		{[]string{"die", "2", "SIGKILL"}, 137, 2, unix.SIGKILL, "killed by signal 9 (SIGKILL)"},
		{[]string{"die", "0", "SIGHUP"}, 129, 0, unix.SIGHUP, "killed by signal 1 (SIGHUP)"},
		{[]string{"joinandleave", "1"}, 1, 1, 0, "without Finalize"},
		{[]string{"joinanddie", "0"}, 5, 0, 0, "exited with status 5"},
	} {
		t.Run(strings.Join(c.mode, "_"), func(t *testing.T) {
			out, err := runJob(t, rankConfig(3, c.mode[0], c.mode[1:]...))
			if re, ok := errors.AsType[*RankError](err); !ok || re.Rank != c.rank || re.Signal != c.signal || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("error %v, want rank %d: %s", err, c.rank, c.text)
			}
			if ExitCode(err) != c.code {
				t.Errorf("exit status %d, want %d", ExitCode(err), c.code)
			}
			if c.mode[0] == "die" && out != "last words\n" {
				t.Errorf("output %q", out)
			}
		})
	}
}

func TestRun_rankAborts(t *testing.T) {
	_, err := runJob(t, rankConfig(3, "abort", "2"))
	if ae, ok := errors.AsType[*AbortError](err); !ok || ae.Rank != 2 || ae.Code != 77 || ae.Why != "because" || ExitCode(err) != 77 {
		t.Errorf("error %v", err)
	}
}

// A rank that ends well while the others wait for it would hang the job.
func TestRun_rankDesertsAFence(t *testing.T) {
	c := Config{Ranks: 3, Program: "sh", Args: []string{"-c", `[ $XWARP_RANK = 1 ] || exec ` + self + ` as-rank fencealone`}}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Args[1] = strings.ReplaceAll(c.Args[1], self, exe)
	_, err = runJob(t, c)
	if re, ok := errors.AsType[*RankError](err); !ok || re.Rank != 1 || !strings.Contains(err.Error(), "while others wait") {
		t.Errorf("error %v", err)
	}
}

func TestRun_malformedBootLine(t *testing.T) {
	_, err := runJob(t, rankConfig(2, "garbage", "1"))
	if _, ok := errors.AsType[*HostError](err); !ok || !strings.Contains(err.Error(), "rank 1: malformed line") {
		t.Errorf("error %v", err)
	}
}

func TestRun_startTimeoutNamesTheMissing(t *testing.T) {
	c := Config{Ranks: 4, StartTimeout: 300 * time.Millisecond, Program: "sh",
		Args: []string{"-c", `case $XWARP_RANK in 1|3) sleep 1000;; *) exec "$0" as-rank fencealone;; esac`}}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Args = append(c.Args, exe)
	_, err = runJob(t, c)
	var te *TimeoutError
	if !errors.As(err, &te) || ExitCode(err) != ExitTimeout {
		t.Fatalf("error %v", err)
	}
	// On a busy machine those who come may be late, too.
	if !slices.Contains(te.Missing, 1) || !slices.Contains(te.Missing, 3) || len(te.Missing)+te.Arrived != 4 {
		t.Errorf("missing %v, %d arrived", te.Missing, te.Arrived)
	}
}

func TestRun_programCannotStart(t *testing.T) {
	for program, code := range map[string]int{
		"no-such-program-anywhere": ExitNotFound,
		"./no-such-program":        ExitNotFound,
		"/etc/passwd":              ExitCannotRun,
		"/etc":                     ExitCannotRun,
	} {
		_, err := runJob(t, Config{Program: program, Ranks: 2})
		if _, ok := errors.AsType[*StartError](err); !ok || ExitCode(err) != code {
			t.Errorf("%s: %v, status %d; want %d", program, err, ExitCode(err), code)
		}
	}
}

// Who misses a program is told on which host, where it was looked for, and what to do;
// a path is given only of what is there.
func TestRun_programMissesThere(t *testing.T) {
	home, dir, bin := t.TempDir(), t.TempDir(), t.TempDir()
	for _, path := range []string{dir + "/here", bin + "/mine"} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho $0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "/usr/bin:"+home) // of the agent there, as the stand-in for ssh has it
	for _, tt := range []struct {
		app  App
		env  []string
		want string
	}{
		{App{Program: "gone"}, nil, "cannot run gone on a: no such program in PATH there (/usr/bin:" + home + "): give the path that it has on that host, or add its directory with -x PATH=DIR:..."},
		{App{Program: "here"}, nil, "cannot run here on a: no such program in PATH there (/usr/bin:" + home + "): the one in " + dir + " is called ./here"},
		{App{Program: "bin/gone"}, nil, "cannot run bin/gone on a: there is no " + dir + "/bin/gone: give the path that it has on that host (--wdir says where a relative one begins), or copy it there"},
		{App{Program: "gone", Env: []string{"PATH=" + bin}}, nil, "in PATH there (" + bin + "):"},
		{App{Program: "mine"}, []string{"PATH=" + bin}, bin + "/mine\n"},
		{App{Program: "./here"}, nil, dir + "/here\n"},
	} {
		c := Config{
			Program: tt.app.Program, Own: Own{OwnEnv: tt.app.Env}, Env: tt.env, Dir: dir, Hosts: []Host{{Name: "a", Slots: 1}},
			Launcher: []string{self, "as-launcher"}, Agent: []string{self, AgentArg}, Device: "lo", Fabric: "udp",
		}
		out, err := runJob(t, c)
		if err != nil {
			out = err.Error()
		}
		if !strings.Contains(out, tt.want) || err != nil && ExitCode(err) != ExitNotFound {
			t.Errorf("%+v: %q, status %d; want %q", tt, out, ExitCode(err), tt.want)
		}
	}
}

func TestRun_hostFails(t *testing.T) {
	base := rankConfig(2, "hang", "-1")
	base.Launcher, base.Agent = []string{self, "as-launcher"}, []string{self, AgentArg}
	base.Device, base.Fabric = "lo", "udp"
	t.Run("broken", func(t *testing.T) {
		c := base
		c.Hosts = []Host{{Name: "good", Slots: 0}, {Name: "broken", Slots: 0}}
		_, err := runJob(t, c)
		if he, ok := errors.AsType[*HostError](err); !ok || he.Host != "broken" || !strings.Contains(err.Error(), "exit status 255") || ExitCode(err) != ExitLauncher {
			t.Errorf("error %v", err)
		}
	})
	t.Run("silent", func(t *testing.T) {
		c := base
		c.Hosts, c.StartTimeout = []Host{{Name: "good"}, {Name: "silent"}}, 500*time.Millisecond
		_, err := runJob(t, c)
		if te, ok := errors.AsType[*TimeoutError](err); !ok || !slices.Contains(te.Hosts, "silent") || ExitCode(err) != ExitTimeout {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no launcher", func(t *testing.T) {
		c := base
		c.Hosts, c.Launcher = []Host{{Name: "a", Slots: 0}}, []string{"no-such-launcher"}
		_, err := runJob(t, c)
		if _, ok := errors.AsType[*HostError](err); !ok || ExitCode(err) != ExitLauncher {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no xrun there", func(t *testing.T) {
		c := base
		c.Hosts, c.Agent = []Host{{Name: "a"}}, []string{"/opt/none/xrun", AgentArg}
		_, err := runJob(t, c)
		if err == nil || !strings.Contains(err.Error(), "there is no /opt/none/xrun: install xwarp on that host, or say with --agent-path") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("not an agent", func(t *testing.T) {
		for says, want := range map[string]string{
			"welcome to host a": "its agent did not start (exit status 0)", // a welcome, and then nothing
			`{"op":"welcome"}`:  `unknown report "welcome"`,
			"{a":                "malformed report",
		} {
			c := base
			c.Hosts, c.Agent = []Host{{Name: "a", Slots: 0}}, []string{"/bin/echo", says}
			_, err := runJob(t, c)
			if _, ok := errors.AsType[*HostError](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", says, err, want)
			}
		}
	})
}

func TestRun_remoteRanksGetTheirEnvironment(t *testing.T) {
	c := rankConfig(2, "env", "MINE")
	c.Hosts, c.Launcher, c.Agent = []Host{{Name: "a", Slots: 2}}, []string{self, "as-launcher"}, []string{self, AgentArg}
	c.Device, c.Fabric = "lo", "udp"
	c.Env = []string{"MINE=yours"}
	out, err := runJob(t, c)
	if err != nil || out != "yours\nyours\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRun_binds(t *testing.T) {
	for _, bind := range []Bind{BindCore, BindNUMA} {
		want, _, err := (&startOrder{Bind: Binding{To: bind}}).bindings()
		if err != nil {
			t.Fatal(err)
		}
		c := rankConfig(3, "cpus")
		c.Bind, c.OrderOutput = bind, true
		out, err := runJob(t, c)
		text := ""
		for rank := range 3 {
			text += fmt.Sprintln("cpus", want[rank%len(want)])
		}
		if err != nil || out != text {
			t.Errorf("%s: %q, %v; want %q", bind, out, err, text)
		}
	}
}

func TestRun_startsInADirectory(t *testing.T) {
	dir := t.TempDir()
	out, err := runJob(t, Config{Program: "pwd", Dir: dir, Ranks: 2})
	if err != nil || out != dir+"\n"+dir+"\n" {
		t.Errorf("%q, %v; want %s", out, err, dir)
	}
	if _, err = runJob(t, Config{Program: "pwd", Dir: dir + "/none"}); err == nil || !strings.Contains(err.Error(), "/none") || ExitCode(err) != ExitCannotRun {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestRun_timeout(t *testing.T) {
	c := rankConfig(2, "sleep")
	c.Timeout = 100 * time.Millisecond
	_, err := runJob(t, c)
	if _, ok := errors.AsType[*LimitError](err); !ok || ExitCode(err) != ExitTimeout || !strings.Contains(err.Error(), "100ms") {
		t.Errorf("error %v, status %d", err, ExitCode(err))
	}
}

func TestRun_killsWhatRanksLeave(t *testing.T) {
	out, err := runJob(t, rankConfig(2, "leavechild"))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRun_rejectsBadConfig(t *testing.T) {
	_, err := runJob(t, Config{})
	if _, ok := errors.AsType[*ConfigError](err); !ok || ExitCode(err) != ExitLauncher {
		t.Errorf("error %v", err)
	}
}
