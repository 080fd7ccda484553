package coll

import (
	"slices"
	"strconv"
	"testing"
)

func TestFirstFit_firstRowThatFits(t *testing.T) {
	rows := []rule{{upTo: 10, use: binomial}, {ranks: 4, use: chain}, {use: ring}}
	for _, c := range []struct {
		bytes, ranks int
		want         algorithm
	}{{0, 2, binomial}, {10, 9, binomial}, {11, 4, chain}, {11, 3, ring}} {
		if got, ok := firstFit(rows, c.bytes, c.ranks); got != c.want || !ok {
			t.Errorf("%d bytes, %d ranks: %v, want %v", c.bytes, c.ranks, got, c.want)
		}
	}
	if _, ok := firstFit(rows[:1], 11, 2); ok {
		t.Error("no row is for 11 bytes")
	}
}

// TestTables_fitAll looks for rows that no other row can stand in for: the last one
// of each table, and algorithms that a collective does not have.
func TestTables_fitAll(t *testing.T) {
	for _, tab := range tables {
		for _, rows := range [][]rule{tab.flat, tab.hosts} {
			if rows == nil {
				continue
			}
			if last := rows[len(rows)-1]; last.upTo != 0 || last.ranks != 0 {
				t.Errorf("%s: the last row is not for all", tab.name)
			}
		}
		for _, r := range slices.Concat(tab.flat, tab.near, tab.oneHost) {
			if !slices.Contains(tab.has, r.use) {
				t.Errorf("%s has no %v where nobody shares a host", tab.name, r.use)
			}
		}
		for _, r := range tab.hosts {
			if !slices.Contains(slices.Concat(tab.has, tab.onHosts), r.use) {
				t.Errorf("%s has no %v on hosts", tab.name, r.use)
			}
		}
	}
}

func TestParseTables_rowsComeFirst(t *testing.T) {
	set, err := ParseTables("bcast:100:4=scatter, bcast=chain\nbcast.hosts:50=binomial", strconv.Atoi)
	if err != nil {
		t.Fatal(err)
	}
	shared := NewHosts([]int{0, 0, 1, 1})
	for _, c := range []struct {
		team  Team
		bytes int
		want  algorithm
	}{
		{Team{Size: 4, Tables: set}, 100, scatter},
		{Team{Size: 3, Tables: set}, 100, chain},
		{Team{Size: 4, Tables: set}, 101, chain},
		{Team{Size: 4, Tables: set, Hosts: shared}, 50, binomial},
		{Team{Size: 4, Tables: set, Hosts: shared}, 51, hosts}, // built in
		{Team{Size: 4}, 100, binomial},
	} {
		if got := c.team.choose(ofBcast, c.bytes); got != c.want {
			t.Errorf("%d bytes on %d ranks: %v, want %v", c.bytes, c.team.Size, got, c.want)
		}
	}
}

func TestParseTables_refuses(t *testing.T) {
	for _, text := range []string{
		"bcast", "bcast=", "bcast=ring", "bcast=multileader", "cast=chain", "gather.hosts=linear", "alltoall.hosts=spread",
		"bcast.hosts=slots", "allgather.hosts=slots",
		"bcast:x=chain", "bcast:1:x=chain", "bcast:1:-1=chain", "bcast:1:1:1=chain", "=chain",
	} {
		if _, err := ParseTables(text, strconv.Atoi); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if set, err := ParseTables("", strconv.Atoi); err != nil || (Team{Size: 2, Tables: set}).choose(ofBcast, 1) != binomial {
		t.Errorf("no rows: %v", err)
	}
}

func FuzzParseTables(f *testing.F) {
	f.Add("bcast:64k:4=scatter allreduce.hosts=multileader")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseTables(text, strconv.Atoi)
		if err != nil {
			return
		}
		for c := range collectives {
			if use := (Team{Size: 2, Tables: set}).choose(c, 1); !slices.Contains(tables[c].has, use) {
				t.Errorf("%q: %s by %v", text, tables[c].name, use)
			}
		}
	})
}
