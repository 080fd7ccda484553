package coll

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// algorithm is one of the ways to do a collective.
type algorithm uint8

const (
	binomial     algorithm = iota // a tree with the fewest rounds
	bruck                         // the fewest rounds, blocks are copied
	chain                         // from one to the next, in segments
	doubling                      // the fewest rounds, in place; of Allgather, bruck unless ranks are a power of two
	halving                       // doubling the other way round
	hosts                         // a leader on each host
	linear                        // all messages at once: from or to the root, or each to all others
	pairwise                      // round after round with another rank
	rabenseifner                  // reduce-scatter and allgather with few rounds
	multiLeader                   // several leaders on each host, in segments
	ring                          // to the next one only
	scatter                       // scatter and allgather
	slots                         // through memory that the ranks of a host have in common
)

var algorithmNames = [...]string{
	binomial: "binomial", bruck: "bruck", chain: "chain", doubling: "doubling", halving: "halving",
	hosts: "hosts", linear: "linear", pairwise: "pairwise", rabenseifner: "rabenseifner",
	multiLeader: "multileader", ring: "ring", scatter: "scatter", slots: "slots",
}

// collective is one of those that have several algorithms.
type collective uint8

const (
	ofAllgather collective = iota
	ofAllreduce
	ofAlltoall
	ofBcast
	ofGather // and scatter
	ofReduce
	ofReduceScatter
	collectives
)

// rule is a row of a selection table: the algorithm for vectors up to a size, on a
// number of ranks from ranks on, up to most. The first row that fits is taken; the last one
// fits all.
type rule struct {
	upTo  int // bytes, or 0 for any size
	ranks int
	most  int // 0 for any number
	use   algorithm
}

// table is how a collective is done: on ranks each on a host of its own, or all on
// one, and on hosts that have several ranks.
type table struct {
	name         string
	flat, hosts  []rule
	near         []rule      // before oneHost, for ranks of one host that have Slots
	oneHost      []rule      // before flat, for ranks of one host
	nearHosts    []rule      // before hosts, where those of all hosts have Slots
	has, onHosts []algorithm // onHosts: further ones there
}

var tables = [collectives]table{
	ofAllgather: allgatherTable, ofAllreduce: allreduceTable, ofAlltoall: alltoallTable, ofBcast: bcastTable,
	ofGather: gatherTable, ofReduce: reduceTable, ofReduceScatter: reduceScatterTable,
}

// Tables are rows that come before those of the selection tables that are built
// in. The zero value has none.
type Tables struct{ flat, hosts [collectives][]rule }

// choose returns the algorithm for so many bytes.
func (t Team) choose(c collective, bytes int) algorithm {
	if t.Hosts == nil || !tables[c].levels() {
		return t.chooseFlat(c, bytes)
	}
	if t.Tables != nil {
		if use, ok := firstFit(t.Tables.hosts[c], bytes, t.Size); ok {
			return use
		}
	}
	if t.Slots != nil && t.Hosts.least > 1 {
		if use, ok := firstFit(tables[c].nearHosts, bytes, t.Size); ok {
			return use
		}
	}
	use, ok := firstFit(tables[c].hosts, bytes, t.Size)
	if !ok {
		return t.chooseFlat(c, bytes)
	}
	return use
}

// levels reports whether it matters which ranks share a host.
func (t *table) levels() bool { return t.hosts != nil || t.nearHosts != nil }

// chooseFlat is choose for ranks of one host, or each on a host of its own, or where that is not known.
func (t Team) chooseFlat(c collective, bytes int) algorithm {
	if t.Tables != nil {
		if use, ok := firstFit(t.Tables.flat[c], bytes, t.Size); ok && (use != slots || t.slotted()) {
			return use
		}
	}
	if t.slotted() {
		if use, ok := firstFit(tables[c].near, bytes, t.Size); ok {
			return use
		}
	}
	if t.slotted() || t.OneHost {
		if use, ok := firstFit(tables[c].oneHost, bytes, t.Size); ok {
			return use
		}
	}
	use, _ := firstFit(tables[c].flat, bytes, t.Size)
	return use
}

// firstFit returns what the first row that fits says.
func firstFit(rows []rule, bytes, ranks int) (use algorithm, ok bool) {
	for _, r := range rows {
		if (r.upTo == 0 || bytes <= r.upTo) && ranks >= r.ranks && (r.most == 0 || ranks <= r.most) {
			return r.use, true
		}
	}
	return 0, false
}

// ParseTables reads rows such as
//
//	bcast:64k=binomial bcast:1m:4=scatter allreduce.hosts=multileader
//
// which are separated by spaces or commas: a collective, with .hosts for hosts that
// have several ranks, up to how many bytes (none or 0: any number), from how many
// ranks on, and the algorithm. size reads a number of bytes.
func ParseTables(text string, size func(string) (int, error)) (*Tables, error) {
	set := &Tables{}
	for _, row := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }) {
		if err := set.add(row, size); err != nil {
			return nil, err
		}
	}
	return set, nil
}

func (set *Tables) add(row string, size func(string) (int, error)) (err error) {
	when, use, _ := strings.Cut(row, "=")
	parts := strings.Split(when, ":")
	name, isHosts := strings.CutSuffix(parts[0], ".hosts")
	c := slices.IndexFunc(tables[:], func(t table) bool { return t.name == name })
	if c < 0 || isHosts && !tables[c].levels() || len(parts) > 3 {
		return fmt.Errorf("%.64q is no row: want COLLECTIVE[.hosts][:BYTES[:RANKS]]=ALGORITHM, as in bcast:64k=binomial or allreduce.hosts=multileader", row)
	}
	r := rule{use: algorithm(max(0, slices.Index(algorithmNames[:], use)))}
	has := tables[c].has
	if isHosts { // which have no slots in common
		has = slices.DeleteFunc(slices.Concat(has, tables[c].onHosts), func(a algorithm) bool { return a == slots })
	}
	if !slices.Contains(has, r.use) || algorithmNames[r.use] != use {
		return fmt.Errorf("%.64q: %s has no algorithm %q there, but %v", row, name, use, has)
	}
	if len(parts) > 1 && parts[1] != "" {
		if r.upTo, err = size(parts[1]); err != nil {
			return fmt.Errorf("%.64q: %w", row, err)
		}
	}
	if len(parts) > 2 {
		if r.ranks, err = strconv.Atoi(parts[2]); err != nil || r.ranks < 0 || r.ranks > math.MaxInt32 {
			return fmt.Errorf("%.64q: %.32q is no number of ranks", row, parts[2])
		}
	}
	into := &set.flat[c]
	if isHosts {
		into = &set.hosts[c]
	}
	*into = append(*into, r)
	return nil
}

// String implements fmt.Stringer.
func (use algorithm) String() string { return algorithmNames[use] }
