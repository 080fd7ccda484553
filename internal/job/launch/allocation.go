package launch

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Allocation returns the hosts that a batch system, or the user for MPICH's mpiexec, has
// named in the environment, and the variable that they are from; none and "" where there
// are none. The first of these that is set counts, in the order of hydra (its ui and
// bootstrap modules): HYDRA_HOST_FILE, a host file; SLURM_JOB_NODELIST or SLURM_NODELIST
// with SLURM_TASKS_PER_NODE or SLURM_NTASKS; LSB_MCPU_HOSTS or LSB_HOSTS; PE_HOSTFILE of
// Grid Engine; PBS_NODEFILE.
func Allocation(lookup func(string) (string, bool)) (hosts []Host, from string, err error) {
	for _, source := range []struct {
		name string
		read func(value string, lookup func(string) (string, bool)) ([]Host, error)
	}{
		{"HYDRA_HOST_FILE", hostfileAt}, {"SLURM_JOB_NODELIST", slurmHosts}, {"SLURM_NODELIST", slurmHosts},
		{"LSB_MCPU_HOSTS", lsfHosts}, {"LSB_HOSTS", lsfSlots}, {"PE_HOSTFILE", gridHosts}, {"PBS_NODEFILE", hostfileAt},
	} {
		value, _ := lookup(source.name)
		if value == "" {
			continue
		}
		hosts, err := source.read(value, lookup)
		if err != nil {
			return nil, source.name, configErrorf("%s: %v; name the hosts with --hosts, or unset %s to run here", source.name, err, source.name)
		}
		return hosts, source.name, nil
	}
	return nil, "", nil
}

func hostfileAt(name string, _ func(string) (string, bool)) ([]Host, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return ParseHostfile(string(text))
}

// slurmHosts reads a list of hosts, and how many ranks fit: 2(x3),1 is two on each of
// three hosts and one on the fourth.
func slurmHosts(list string, lookup func(string) (string, bool)) ([]Host, error) {
	hosts, err := ParseHosts(list)
	if err != nil {
		return nil, err
	}
	const perNode, tasks = "SLURM_TASKS_PER_NODE", "SLURM_NTASKS"
	if text, _ := lookup(perNode); text != "" {
		counts, err := repeated(text)
		if err != nil {
			return nil, fmt.Errorf("%s is %.64q: %w", perNode, text, err)
		}
		if len(counts) != len(hosts) {
			return nil, fmt.Errorf("%s is %.64q, for %s, and there are %d", perNode, text, count(len(counts), "host", "hosts"), len(hosts))
		}
		for i, n := range counts {
			hosts[i].Slots = n
		}
		return hosts, nil
	}
	text, _ := lookup(tasks)
	if text == "" {
		return hosts, nil
	}
	n, err := slots(text)
	if err != nil {
		return nil, fmt.Errorf("%s is %.64q: %w", tasks, text, err)
	}
	for i := range hosts { // spread evenly, as Slurm does
		if hosts[i].Slots = (n + len(hosts) - 1 - i) / len(hosts); hosts[i].Slots == 0 {
			return nil, fmt.Errorf("%s is %d, and there are %d hosts", tasks, n, len(hosts))
		}
	}
	return hosts, nil
}

// repeated reads numbers such as 2(x3),1.
func repeated(text string) (counts []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		number, rest, many := strings.Cut(part, "(x")
		times := 1
		if many {
			if times, err = slots(strings.TrimSuffix(rest, ")")); err != nil || !strings.HasSuffix(rest, ")") {
				return nil, fmt.Errorf("want numbers as in 2(x3),1")
			}
		}
		n, err := slots(number)
		if err != nil || len(counts)+times > MaxRanks {
			return nil, fmt.Errorf("want numbers as in 2(x3),1")
		}
		for range times {
			counts = append(counts, n)
		}
	}
	return counts, nil
}

// slots reads a number of ranks.
func slots(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxRanks {
		return 0, fmt.Errorf("%.64q is no number of ranks", text)
	}
	return n, nil
}

// lsfHosts reads names and numbers in turn.
func lsfHosts(list string, _ func(string) (string, bool)) (hosts []Host, err error) {
	words := strings.Fields(list)
	if len(words)%2 != 0 || len(words) == 0 {
		return nil, fmt.Errorf("%.64q: want names and numbers in turn, as in a 2 b 4", list)
	}
	for i := 0; i < len(words) && err == nil; i += 2 {
		hosts, err = addSlots(hosts, words[i], words[i+1])
	}
	return hosts, err
}

// lsfSlots reads a name for each rank.
func lsfSlots(list string, _ func(string) (string, bool)) (hosts []Host, err error) {
	for _, name := range strings.Fields(list) {
		if hosts, err = addSlots(hosts, name, "1"); err != nil {
			return nil, err
		}
	}
	return hosts, err
}

// gridHosts reads lines of a host, how many ranks fit, a queue and processors.
func gridHosts(file string, _ func(string) (string, bool)) (hosts []Host, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("%.64q: want a host and how many ranks fit", line)
		}
		if hosts, err = addSlots(hosts, words[0], words[1]); err != nil {
			return nil, err
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("there is no host in it")
	}
	return hosts, nil
}

// addSlots makes room on a host for a number of ranks.
func addSlots(hosts []Host, name, number string) ([]Host, error) {
	n, err := slots(number)
	if err != nil {
		return nil, err
	}
	more, err := hostEntry(name)
	if err != nil {
		return nil, err
	}
	for i := range more {
		more[i].Slots = n
	}
	return addHosts(hosts, more)
}
