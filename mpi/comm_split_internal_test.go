package mpi

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestNumaNode(t *testing.T) {
	for name, c := range map[string]struct {
		allowed string
		nodes   map[string]string
		want    int
		ok      bool
	}{
		"bound to the second": {"4-5", map[string]string{"node0": "0-3", "node1": "4-7"}, 1, true},
		"one node only":       {"0-3", map[string]string{"node0": "0-3"}, 0, true},
		"over both":           {"3-4", map[string]string{"node0": "0-3", "node1": "4-7"}, 0, false},
		"scattered":           {"0,2", map[string]string{"node0": "0,2,4", "node1": "1,3,5"}, 0, true},
		"rubbish":             {"x", map[string]string{"node0": "0-3"}, 0, false},
		"no nodes":            {"0-3", nil, 0, false},
	} {
		root := t.TempDir()
		write := func(path, text string) {
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t"+c.allowed+"\nMems_allowed:\t1\n")
		for node, cpus := range c.nodes {
			write("sys/devices/system/node/"+node+"/cpulist", cpus+"\n")
		}
		if got, ok := numaNode(root); got != c.want || ok != c.ok {
			t.Errorf("%s: node %d, %v", name, got, ok)
		}
	}
	if _, ok := numaNode(filepath.Join(t.TempDir(), "nothing")); ok {
		t.Error("a node without a kernel")
	}
}

func TestCPUList(t *testing.T) {
	for s, want := range map[string][]int{"0-2,7\n": {0, 1, 2, 7}, "5": {5}, "": nil, "1-": nil, "-1": nil, "3-1": nil, "0-99999999": nil} {
		if got := cpuList(s); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func TestSmaller(t *testing.T) {
	at := func(host, node int) int64 { return int64(host*pieces + 1 + node) }
	const no = Undefined
	for name, c := range map[string]struct{ pieces, want []int64 }{
		"two hosts":              {[]int64{at(0, 0), at(3, 0), at(0, 1), at(3, noNode)}, []int64{0, 3, 0, 3}},
		"two nodes of one host":  {[]int64{at(2, 0), at(2, 1), at(2, 1)}, []int64{at(2, 0), at(2, 1), at(2, 1)}},
		"one is bound to none":   {[]int64{at(1, 4), at(1, noNode), at(1, 4)}, []int64{at(1, 4), no, at(1, 4)}},
		"all are bound to none":  {[]int64{at(1, noNode), at(1, noNode)}, []int64{no, no}},
		"all on one node":        {[]int64{at(0, 0), at(0, 0)}, []int64{no, no}},
		"one node, and no color": {[]int64{at(0, 0), no, at(0, 0)}, []int64{no, no, no}},
		"hosts, and no color":    {[]int64{no, at(5, 0), at(6, 0)}, []int64{no, 5, 6}},
	} {
		var all, got []int64
		for _, p := range c.pieces {
			all = append(all, p, 7)
		}
		smaller(all)
		for i := 0; i < len(all); i += 2 {
			got = append(got, all[i])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
