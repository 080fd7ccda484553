package pmi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mappingKey is what launchers put into the table to say which ranks share a
// host.
const mappingKey = "PMI_process_mapping"

// block is a part of a mapping: the hosts first, first+1, ..., of which each
// gets perHost ranks.
type block struct{ first, hosts, perHost int }

var mappingForm = regexp.MustCompile(`^\(vector((?:,\(\d+,\d+,\d+\))+)\)$`)

// parseMapping reads a mapping such as "(vector,(0,2,4),(2,1,8))" and returns
// the number of the host of each of size ranks. The blocks repeat until all
// ranks have a host.
func parseMapping(s string, size int) ([]int, error) {
	parts := mappingForm.FindStringSubmatch(s)
	if parts == nil {
		return nil, fmt.Errorf("%s %.64q: want (vector,(host,hosts,ranks),...)", mappingKey, s)
	}
	var blocks []block
	for triple := range strings.SplitSeq(strings.Trim(parts[1], ",()"), "),(") {
		var b block
		for i, into := range []*int{&b.first, &b.hosts, &b.perHost} {
			n, err := strconv.Atoi(strings.Split(triple, ",")[i])
			if err != nil || n > 1<<24 || n == 0 && i > 0 {
				return nil, fmt.Errorf("%s %.64q: block (%s)", mappingKey, s, triple)
			}
			*into = n
		}
		blocks = append(blocks, b)
	}
	hosts := make([]int, 0, size)
	for {
		for _, b := range blocks {
			for i := range b.hosts * b.perHost {
				if len(hosts) == size {
					return hosts, nil
				}
				hosts = append(hosts, b.first+i/b.perHost)
			}
		}
	}
}

// FormatMapping returns the mapping that says which host each rank is on, as
// NewServer takes it.
func FormatMapping(hosts []int) string {
	var blocks []block
	for i := 0; i < len(hosts); {
		n := 1
		for i+n < len(hosts) && hosts[i+n] == hosts[i] {
			n++
		}
		last := len(blocks) - 1
		if last >= 0 && blocks[last].perHost == n && blocks[last].first+blocks[last].hosts == hosts[i] {
			blocks[last].hosts++
		} else {
			blocks = append(blocks, block{hosts[i], 1, n})
		}
		i += n
	}
	s := "(vector"
	for _, b := range blocks[:period(blocks)] {
		s += fmt.Sprintf(",(%d,%d,%d)", b.first, b.hosts, b.perHost)
	}
	return s + ")"
}

// period returns how many blocks there are before they repeat.
func period(blocks []block) int {
	for n := 1; n < len(blocks); n++ {
		if slices.Equal(blocks[n:], blocks[:len(blocks)-n]) {
			return n
		}
	}
	return len(blocks)
}
