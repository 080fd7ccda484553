package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ParseHosts reads a list as in "a,b:2,n[01-16]:8": names with the number of ranks
// that fit, and names with numbers as Slurm writes them. An IPv6 address is a host as it
// is, and has brackets where a number follows it: fd00::1, [fd00::1]:2. A host that is
// there again has room for more, as Open MPI has it.
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
// max_slots=4) writes it. As in files of MPICH, binding=user:0,1 ties the ranks of that
// host, and user=NAME is the user to log in as. What follows a "#" is a comment. A host that
// is there again has room for more.
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
	login := ""
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		wrong := err != nil || n < 1 || n > MaxRanks
		switch {
		case name == "slots" && !wrong && first.Slots == 0:
			first.Slots = n
		case (name == "max_slots" || name == "max-slots") && !wrong && first.Max == 0:
			first.Max = n
		case name == "binding" && first.Own == nil:
			own, err := ParseBinding(value)
			if err != nil {
				return nil, fmt.Errorf("%.64q: %w", w, err)
			}
			first.Own = &own
		case name == "user" && login == "" && value != "" && !strings.HasPrefix(value, "-"):
			login = value + "@"
		default:
			return nil, fmt.Errorf("%.64q: want a number of ranks as in %s slots=2 max_slots=4, or binding=user:0,1 or user=NAME", w, first.Name)
		}
	}
	if first.Max > 0 && first.Max < first.Slots {
		return nil, fmt.Errorf("max_slots=%d is less than slots=%d", first.Max, first.Slots)
	}
	for i := range hosts {
		hosts[i].Name = login + hosts[i].Name
		hosts[i].Slots, hosts[i].Max, hosts[i].Own = first.Slots, first.Max, first.Own
	}
	return hosts, nil
}

// hostEntry reads a name, or several in one, with the number of ranks behind it.
func hostEntry(entry string) ([]Host, error) {
	name, number, numbered, err := splitSlots(entry)
	if err != nil {
		return nil, err
	}
	room := 0
	if numbered {
		if room, err = slots(number); err != nil {
			return nil, err
		}
	}
	if strings.Contains(name, ":") {
		return []Host{{Name: name, Slots: room}}, nil
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
		hosts = append(hosts, Host{Name: n, Slots: room})
	}
	return hosts, nil
}

// splitSlots cuts off the number of ranks. What is an IPv6 address as a whole has none:
// it takes brackets to tell one from the last part of the address. Only such names have
// colons.
func splitSlots(entry string) (name, number string, numbered bool, err error) {
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Is6() {
		return addr.String(), "", false, nil
	}
	literal, rest, closed := strings.Cut(strings.TrimPrefix(entry, "["), "]")
	if strings.HasPrefix(entry, "[") && closed && strings.Contains(literal, ":") {
		addr, err := netip.ParseAddr(literal)
		number, numbered = strings.CutPrefix(rest, ":")
		if err != nil || !addr.Is6() || !numbered && rest != "" {
			return "", "", false, fmt.Errorf("%.64q: want an IPv6 address as in fd00::1 or, with a number of ranks, [fd00::1]:2", entry)
		}
		return addr.String(), number, numbered, nil
	}
	if i := strings.LastIndexByte(entry, ':'); i > strings.LastIndexByte(entry, ']') {
		name, number, numbered = entry[:i], entry[i+1:], true
	} else {
		name = entry
	}
	if strings.Contains(name, ":") {
		return "", "", false, fmt.Errorf("%.64q is neither an IPv6 address nor a name: want fd00::1, [fd00::1]:2 or name:2", entry)
	}
	return name, number, numbered, nil
}

// ParseBinding reads what ranks are bound to as mpiexec has it: WHAT, core:N for N cores
// each, user:0,1+2,3 for processors one by one (here 0, then 1 with 2, then 3), or rr for
// the processors in turn. More ranks than there are places share them, whatever Open MPI's
// modifiers say.
func ParseBinding(s string) (b Binding, err error) {
	what, rest, _ := strings.Cut(s, ":")
	switch b.To = Bind(what); what {
	case "":
		return b, errors.New("it is empty")
	case "package":
		b.To = BindSocket
	case "rr":
		b.To = BindThread
	case "user":
		b.Places, err = parsePlaces(rest)
		return b, err
	}
	if err := b.To.check(); err != nil {
		return b, err
	}
	switch rest {
	case "", "overload-allowed", "if-supported":
		return b, nil
	}
	if b.Cores, err = strconv.Atoi(rest); err != nil {
		return b, fmt.Errorf("unknown modifier %q: want a number of cores, as in core:2", rest)
	}
	return b, checkCores(b.To, b.Cores)
}

func parsePlaces(s string) (places [][]int, err error) {
	for place := range strings.SplitSeq(s, ",") {
		var cpus []int
		for number := range strings.SplitSeq(place, "+") {
			cpu, err := strconv.Atoi(number)
			if err != nil || cpu < 0 || cpu >= maxCPUs {
				return nil, fmt.Errorf("user:%.64s: want processors for each rank, as in user:0,1+2,3", s)
			}
			cpus = append(cpus, cpu)
		}
		places = append(places, cpus)
	}
	return places, nil
}
