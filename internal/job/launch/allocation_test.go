package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAllocation(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "hosts")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		env        []string
		from, want string
	}{
		{nil, "", "[]"},
		{[]string{"SLURM_TASKS_PER_NODE=2", "LSB_HOSTS="}, "", "[]"},
		{[]string{"HYDRA_HOST_FILE=" + file("a:2\nb # x\n"), "SLURM_JOB_NODELIST=n"}, "HYDRA_HOST_FILE", "[{a 2 0 <nil>} {b 0 0 <nil>}]"},
		{[]string{"SLURM_JOB_NODELIST=n[1-3],m", "SLURM_TASKS_PER_NODE=2(x3),1", "PBS_NODEFILE=/none"}, "SLURM_JOB_NODELIST", "[{n1 2 0 <nil>} {n2 2 0 <nil>} {n3 2 0 <nil>} {m 1 0 <nil>}]"},
		{[]string{"SLURM_NODELIST=n[1-2]", "SLURM_NTASKS=5"}, "SLURM_NODELIST", "[{n1 3 0 <nil>} {n2 2 0 <nil>}]"},
		{[]string{"SLURM_JOB_NODELIST=n"}, "SLURM_JOB_NODELIST", "[{n 0 0 <nil>}]"},
		{[]string{"LSB_MCPU_HOSTS=a 2 b 4 ", "LSB_HOSTS=x"}, "LSB_MCPU_HOSTS", "[{a 2 0 <nil>} {b 4 0 <nil>}]"},
		{[]string{"LSB_HOSTS=a b b"}, "LSB_HOSTS", "[{a 1 0 <nil>} {b 2 0 <nil>}]"},
		{[]string{"PE_HOSTFILE=" + file("a 2 all.q@a <NULL>\nb 1 all.q@b 0,0\n"), "PBS_NODEFILE=/none"}, "PE_HOSTFILE", "[{a 2 0 <nil>} {b 1 0 <nil>}]"},
		{[]string{"PBS_NODEFILE=" + file("a\na\nb\n")}, "PBS_NODEFILE", "[{a 2 0 <nil>} {b 0 0 <nil>}]"},
	} {
		hosts, from, err := Allocation(lookupEnv(c.env))
		if err != nil || from != c.from || fmt.Sprint(hosts) != c.want {
			t.Errorf("%v: %v from %q, %v; want %s from %q", c.env, hosts, from, err, c.want, c.from)
		}
	}
	for want, env := range map[string][]string{
		"unset HYDRA_HOST_FILE":                   {"HYDRA_HOST_FILE=/none"},
		"no host in it":                           {"PE_HOSTFILE=/dev/null"},
		"want a host and how":                     {"PE_HOSTFILE=" + file("a\n")},
		"\"many\" is no number of ranks":          {"PE_HOSTFILE=" + file("a many q\n")},
		"names and numbers in turn":               {"LSB_MCPU_HOSTS=a 2 b"},
		"\"b\" is no number of ranks":             {"LSB_MCPU_HOSTS=a b"},
		"for 2 hosts, and there are 3":            {"SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2(x2)"},
		"want numbers as in 2(x3),1":              {"SLURM_JOB_NODELIST=n", "SLURM_TASKS_PER_NODE=2(x"},
		"SLURM_TASKS_PER_NODE is \"0\": want":     {"SLURM_JOB_NODELIST=n", "SLURM_TASKS_PER_NODE=0"},
		"SLURM_NTASKS is 1, and there are 2":      {"SLURM_JOB_NODELIST=n[1-2]", "SLURM_NTASKS=1"},
		"SLURM_NTASKS is \"x\"":                   {"SLURM_JOB_NODELIST=n[1-2]", "SLURM_NTASKS=x"},
		"name the hosts with --hosts":             {"SLURM_NODELIST=n[1-", "SLURM_NTASKS=1"},
		"host list \"-x\": \"-x\": want names":    {"SLURM_NODELIST=-x"},
		"\"-x\": want names separated by commas":  {"LSB_HOSTS=-x"},
		"no such file or directory; name the hos": {"PBS_NODEFILE=/none"},
	} {
		hosts, _, err := Allocation(lookupEnv(env))
		if _, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v; want %q", env, hosts, err, want)
		}
	}
}

// lookupEnv looks variables up in a list.
func lookupEnv(env []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range env {
			if n, value, _ := strings.Cut(e, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}
