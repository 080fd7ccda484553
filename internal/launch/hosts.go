package launch

import (
	"slices"
	"strconv"
	"strings"
)

// ParseHosts reads a list as in "a,b:2,c": names with the number of ranks that
// fit.
func ParseHosts(list string) ([]Host, error) {
	var hosts []Host
	for _, entry := range strings.Split(list, ",") {
		h := Host{Name: entry}
		if name, slots, ok := strings.Cut(entry, ":"); ok {
			n, err := strconv.Atoi(slots)
			if err != nil || n < 1 || n > MaxRanks {
				return nil, configErrorf("host list %q: %q is no number of ranks", list, slots)
			}
			h = Host{name, n}
		}
		if h.Name == "" || strings.HasPrefix(h.Name, "-") {
			return nil, configErrorf("host list %q: want names separated by commas, as in a,b:2", list)
		}
		if slices.ContainsFunc(hosts, func(o Host) bool { return o.Name == h.Name }) {
			return nil, configErrorf("host list %q: %s is there twice; write %s:2 for two ranks on it", list, h.Name, h.Name)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// ParseHostfile reads a file of hosts: a name per line, with the number of
// ranks that fit as MPICH (a:2) or Open MPI (a slots=2) writes it. What follows
// a "#" is a comment. A host that is there again has room for more.
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
		h, err := hostLine(words)
		if err != nil {
			return nil, configErrorf("host file, line %d: %v", number, err)
		}
		i := slices.IndexFunc(hosts, func(o Host) bool { return o.Name == h.Name })
		if i < 0 {
			hosts = append(hosts, h)
			continue
		}
		hosts[i].Slots = max(1, hosts[i].Slots) + max(1, h.Slots)
		if hosts[i].Slots > MaxRanks {
			return nil, configErrorf("host file, line %d: more than %d ranks on %s", number, MaxRanks, h.Name)
		}
	}
	if len(hosts) == 0 {
		return nil, configErrorf("host file: there is no host in it; want lines such as a, a:2 or a slots=2")
	}
	return hosts, nil
}

func hostLine(words []string) (Host, error) {
	if strings.Contains(words[0], ",") {
		return Host{}, configErrorf("%.64q: want one host per line", words[0])
	}
	list, err := ParseHosts(words[0])
	if err != nil {
		return Host{}, err
	}
	h := list[0]
	for _, w := range words[1:] {
		n, err := strconv.Atoi(strings.TrimPrefix(w, "slots="))
		if err != nil || !strings.HasPrefix(w, "slots=") || n < 1 || n > MaxRanks || h.Slots > 0 {
			return Host{}, configErrorf("%.64q: want a number of ranks as in %s slots=2", w, h.Name)
		}
		h.Slots = n
	}
	return h, nil
}
