package launch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestParseCPUList(t *testing.T) {
	for s, want := range map[string][]int{"": nil, "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "5,7-7": {5, 7}} {
		got, err := parseCPUList(s)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", s, got, err, want)
		}
		if again, err := parseCPUList(formatCPUList(got)); err != nil || !slices.Equal(again, want) {
			t.Errorf("%q is written as %q", s, formatCPUList(got))
		}
	}
	for _, s := range []string{"x", "-1", "3-1", "1,", ",", "0-99999999", "1-2-3", "0x3"} {
		if got, err := parseCPUList(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func FuzzParseCPUList(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseCPUList(s)
		for _, cpu := range list {
			if err == nil && (cpu < 0 || cpu >= maxCPUs) {
				t.Errorf("%q: %v", s, list)
			}
		}
	})
}

// Two nodes of two cores of two threads, numbered as usual and as on others.
func machineFS(siblings func(cpu int) string, nodes ...string) fstest.MapFS {
	sys := fstest.MapFS{"node/has_cpu": {Data: []byte("0-1\n")}}
	for cpu := range 8 {
		sys[fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", cpu)] = &fstest.MapFile{Data: []byte(siblings(cpu) + "\n")}
	}
	for i, list := range nodes {
		sys[fmt.Sprintf("node/node%d/cpulist", i)] = &fstest.MapFile{Data: []byte(list + "\n")}
	}
	return sys
}

func TestBindings(t *testing.T) {
	apart := machineFS(func(cpu int) string { return fmt.Sprintf("%d,%d", cpu%4, cpu%4+4) }, "0-1,4-5", "2-3,6-7")
	beside := machineFS(func(cpu int) string { return fmt.Sprintf("%d-%d", cpu&^1, cpu|1) }, "0-3", "4-7")
	threeOne := machineFS(func(cpu int) string { return fmt.Sprintf("%d-%d", cpu&^1, cpu|1) }, "0-5", "6-7")
	sockets := machineFS(func(cpu int) string { return fmt.Sprintf("%d,%d", cpu%4, cpu%4+4) }, "0,4", "1,5", "2,6", "3,7")
	for cpu := range 8 {
		sockets[fmt.Sprintf("cpu/cpu%d/topology/physical_package_id", cpu)] = &fstest.MapFile{Data: fmt.Appendln(nil, cpu%4/2)}
	}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		sys     fstest.MapFS
		allowed []int
		bind    Bind
		order   MapBy
		each    int
		want    string
	}{
		{apart, all, BindCore, MapSlot, 0, "[[0 4] [1 5] [2 6] [3 7]]"},
		{apart, all, BindCore, MapNUMA, 0, "[[0 4] [2 6] [1 5] [3 7]]"},
		{apart, all, BindNUMA, MapCore, 0, "[[0 1 4 5] [0 1 4 5] [2 3 6 7] [2 3 6 7]]"},
		{apart, all, BindNUMA, MapNUMA, 0, "[[0 1 4 5] [2 3 6 7] [0 1 4 5] [2 3 6 7]]"},
		{apart, []int{1, 3, 6}, BindCore, MapNode, 0, "[[1] [3] [6]]"},
		{apart, []int{1, 2, 6}, BindCore, "", 0, "[[1] [2 6]]"},
		{beside, all, BindCore, MapSlot, 0, "[[0 1] [2 3] [4 5] [6 7]]"},
		{beside, all, BindNUMA, MapNUMA, 0, "[[0 1 2 3] [4 5 6 7] [0 1 2 3] [4 5 6 7]]"},
		{apart, all, BindThread, MapSlot, 0, "[[0] [4] [1] [5] [2] [6] [3] [7]]"},
		{apart, all, BindThread, MapNUMA, 0, "[[0] [2] [4] [6] [1] [3] [5] [7]]"},
		{apart, all, BindCore, MapSlot, 2, "[[0 1 4 5] [2 3 6 7]]"},
		{apart, []int{0, 1, 2, 3, 4, 5, 6}, BindCore, MapSlot, 3, "[[0 1 2 4 5 6]]"},
		{threeOne, all, BindCore, MapNUMA, 2, "[[0 1 2 3]]"},
		{threeOne, all, BindCore, MapSlot, 4, "[[0 1 2 3 4 5 6 7]]"},
		{apart, all, BindCore, MapSlot, 3, "[[0 1 2 4 5 6]]"},
		{sockets, all, BindSocket, MapSocket, 0, "[[0 1 4 5] [2 3 6 7] [0 1 4 5] [2 3 6 7]]"},
		{sockets, all, BindCore, MapSocket, 0, "[[0 4] [2 6] [1 5] [3 7]]"},
		{sockets, all, BindNUMA, MapSlot, 0, "[[0 4] [1 5] [2 6] [3 7]]"},
		{fstest.MapFS{}, []int{2, 5}, BindSocket, MapSocket, 0, "[[2 5] [2 5]]"},
		{fstest.MapFS{}, []int{2, 5}, BindCore, MapNUMA, 0, "[[2] [5]]"},
		{fstest.MapFS{}, []int{2, 5}, BindNUMA, MapSlot, 0, "[[2 5] [2 5]]"},
	} {
		b := Binding{To: c.bind, Cores: c.each}
		places, err := b.places(cores(c.sys, c.allowed), c.order)
		if got := fmt.Sprint(places); got != c.want || err != nil {
			t.Errorf("%v %+v by %s: %s, %v; want %s", c.allowed, b, c.order, got, err, c.want)
		}
	}
}

// What cannot be bound to is told, and not bound to something else.
func TestBindings_refuses(t *testing.T) {
	list := cores(fstest.MapFS{}, []int{2, 3, 5})
	for want, b := range map[string]Binding{
		"999 cores for each rank, and this host has 3 to bind to: use --bind-to core:3": {To: BindCore, Cores: 999},
		"--bind-to user: processor 4 cannot be used on this host: want some of 2-3,5":   {To: BindUser, Places: [][]int{{2}, {3, 4}}},
	} {
		if places, err := b.places(list, MapSlot); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v; want %q", b, places, err, want)
		}
	}
}

func TestParseBinding(t *testing.T) {
	for s, want := range map[string]Binding{
		"core:2":                {To: BindCore, Cores: 2},
		"package":               {To: BindSocket},
		"rr":                    {To: BindThread},
		"user:0+2,1":            {To: BindUser, Places: [][]int{{0, 2}, {1}}},
		"core:overload-allowed": {To: BindCore},
	} {
		if got, err := ParseBinding(s); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "board", "core:two", "core:0", "core:1025", "numa:2", "user", "user:", "user:1,", "user:x", "user:-1", "user:1024", "user:0++1"} {
		if got, err := ParseBinding(s); err == nil {
			t.Errorf("%q: %+v", s, got)
		}
	}
}
