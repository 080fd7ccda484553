package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseHosts reads a list as in "a,b:2,n[01-16]:8": names with the number of ranks
// that fit, and names with numbers as Slurm writes them. A host that is there again
// has room for more, as Open MPI has it.
func ParseHosts(list string) ([]Host, error) {
	var hosts []Host
	for _, entry := range splitHosts(list) {
		more, err := hostEntry(entry)
		if err == nil {
			hosts, err = addHosts(hosts, more)
		}
		if err != nil {
			return nil, configErrorf("host list %.200q: %v", list, err)
		}
	}
	return hosts, nil
}

// ParseHostfile reads a file of hosts: a name per line, or several with numbers as in
// n[01-16], with the number of ranks that fit as MPICH (a:2) or Open MPI (a slots=2
// max_slots=4) writes it. What follows a "#" is a comment. A host that is there again
// has room for more.
func ParseHostfile(text string) ([]Host, error) {
	var hosts []Host
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		more, err := hostLine(words)
		if err == nil {
			hosts, err = addHosts(hosts, more)
		}
		if err != nil {
			return nil, configErrorf("host file, line %d: %v", number, err)
		}
	}
	if len(hosts) == 0 {
		return nil, configErrorf("host file: there is no host in it; want lines such as a, a:2, a slots=2 or n[01-16]:2")
	}
	return hosts, nil
}

// addHosts appends hosts, or makes room on those that are there.
func addHosts(hosts, more []Host) ([]Host, error) {
	for _, h := range more {
		i := slices.IndexFunc(hosts, func(o Host) bool { return o.Name == h.Name })
		if i < 0 {
			hosts = append(hosts, h)
			continue
		}
		o := &hosts[i]
		if o.Max > 0 || h.Max > 0 {
			o.Max = max(1, o.Max, o.Slots) + max(1, h.Max, h.Slots)
		}
		if o.Slots = max(1, o.Slots) + max(1, h.Slots); o.Slots > MaxRanks || o.Max > MaxRanks {
			return nil, fmt.Errorf("more than %d ranks on %s", MaxRanks, h.Name)
		}
	}
	if len(hosts) > MaxRanks {
		return nil, fmt.Errorf("more than %d hosts", MaxRanks)
	}
	return hosts, nil
}

func hostLine(words []string) ([]Host, error) {
	if len(splitHosts(words[0])) > 1 {
		return nil, fmt.Errorf("%.64q: want one host per line", words[0])
	}
	hosts, err := hostEntry(words[0])
	if err != nil {
		return nil, err
	}
	first := &hosts[0]
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		wrong := err != nil || n < 1 || n > MaxRanks
		switch {
		case name == "slots" && !wrong && first.Slots == 0:
			first.Slots = n
		case (name == "max_slots" || name == "max-slots") && !wrong && first.Max == 0:
			first.Max = n
		default:
			return nil, fmt.Errorf("%.64q: want a number of ranks as in %s slots=2 max_slots=4", w, first.Name)
		}
	}
	if first.Max > 0 && first.Max < first.Slots {
		return nil, fmt.Errorf("max_slots=%d is less than slots=%d", first.Max, first.Slots)
	}
	for i := range hosts {
		hosts[i].Slots, hosts[i].Max = first.Slots, first.Max
	}
	return hosts, nil
}

// hostEntry reads a name, or several in one, with the number of ranks behind it.
func hostEntry(entry string) ([]Host, error) {
	name, slots := entry, 0
	if i := strings.LastIndexByte(entry, ':'); i > strings.LastIndexByte(entry, ']') {
		var err error
		name = entry[:i]
		if slots, err = strconv.Atoi(entry[i+1:]); err != nil || slots < 1 || slots > MaxRanks {
			return nil, fmt.Errorf("%.64q is no number of ranks", entry[i+1:])
		}
	}
	names, err := expandNames(name)
	if err != nil {
		return nil, err
	}
	var hosts []Host
	for _, n := range names {
		if n == "" || strings.HasPrefix(n, "-") || strings.ContainsAny(n, ":[]") {
			return nil, fmt.Errorf("%.64q: want names separated by commas, as in a,b:2,n[01-16]:8", entry)
		}
		hosts = append(hosts, Host{Name: n, Slots: slots})
	}
	return hosts, nil
}
