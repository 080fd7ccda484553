package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestMemoryPeers(t *testing.T) {
	for most, want := range map[int][]int{1: {1}, 2: {2}, 9: {2, 4, 8, 9}, 16: {2, 4, 8, 16}} {
		if got := MemoryPeers(most); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v, want %v", most, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	var all []Footprint
	notes, err := Memory(MemoryConfig{Peers: []int{1, 100}, Recvs: 8, Shared: 64, Buffer: 1024}, func(row []Footprint) error {
		all = append(all, row...)
		return nil
	})
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %v, %+v", err, notes, all)
	}
	for i, want := range []struct {
		transport, receives string
		buffers             int64
	}{{"rd", "shared", 64 << 10}, {"rc", "own", 800 << 10}, {"rc", "shared", 64 << 10}} {
		f := all[3+i]
		if f.Transport != want.transport || f.Receives != want.receives || f.Buffers != want.buffers || f.Peers != 100 {
			t.Errorf("got %+v, want %+v", f, want)
		}
		if f.Total != f.User+f.Kernel+f.Buffers || f.User <= 0 || f.PerPeer < 300 || all[i].PerPeer != 0 {
			t.Errorf("impossible: %+v", f)
		}
		if f.Transport == "rd" && f.Kernel != 0 || f.Transport == "rc" && f.Kernel == 0 && notes == nil {
			t.Errorf("sockets: %+v", f)
		}
	}
	for _, n := range []int{0, maxMemoryPeers + 1} {
		if _, err := Memory(MemoryConfig{Peers: []int{n}}, nil); !errors.Is(err, ErrUsage) {
			t.Errorf("%d peers: got %v", n, err)
		}
	}
}

func TestMemoryTable(t *testing.T) {
	row := []Footprint{
		{Transport: "rd", Receives: "shared", Carrier: "memory", Peers: 4, User: 1 << 20, Buffers: 1 << 20, Total: 2 << 20, PerPeer: 1000},
		{Transport: "rc", Receives: "own", Carrier: "kernel TCP", Peers: 4, User: 2 << 20, Kernel: 1 << 20, Buffers: 1 << 20, Total: 4 << 20, PerPeer: 2000},
	}
	var b bytes.Buffer
	table := MemoryTable{W: &b, Markdown: true}
	if err := errors.Join(table.Row(row), table.Foot()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| peers | RD KiB | per peer B | RC KiB | per peer B |", "| 4 | 2048 | 1000 | 4096 | 2000 | 0.500 |",
		"| RC | 2048 | 1024 | 1024 | kernel TCP |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	charts := MemoryCharts(append(row, row...))
	if len(charts) != 2 || len(charts[0].Series) != 2 || len(charts[1].Series[1].Points) != 2 || charts[1].Series[1].Points[0].Y != 2000 {
		t.Errorf("charts %+v", charts)
	}
	b.Reset()
	var back Footprint
	if err := errors.Join(row[1].WriteJSON(&b), json.Unmarshal(b.Bytes(), &back)); err != nil || back != row[1] {
		t.Errorf("%v: %+v", err, back)
	}
}
