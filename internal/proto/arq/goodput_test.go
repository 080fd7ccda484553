package arq

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
)

var update = flag.Bool("update", false, "write testdata/goodput.txt anew")

// goodput returns how much one flow gets through, in parts of 1000 of what the
// bottleneck can carry, in the time that 20,000 datagrams take on its wire.
func goodput(window, segment int, loss float64) int64 {
	n := newBottleneck(10*gigabit, 256*kib)
	n.loss = loss
	f := n.add(Config{Window: window}, segment, 0)
	const most = 20000
	n.run(mono.Time(serializeTime(most*f.wireBytes(), n.rate)))
	return 1000 * f.received / (most * int64(f.size))
}

// TestGoodput compares goodput against loss and window with a table that is
// part of the repository, so that every change of the protocol shows what it
// does to it. Everything is deterministic, so the table must match exactly.
func TestGoodput(t *testing.T) {
	windows := []int{16, 32, 64, 128, 256, 512}
	losses := []float64{0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2}
	var table bytes.Buffer
	fmt.Fprintln(&table, "Goodput of one sender on 10 Gbit/s in parts of 1000 of what fits on the wire,")
	fmt.Fprintln(&table, "round trip 13 us without load, against random loss and window in datagrams.")
	fmt.Fprintln(&table, "Made by: go test ./internal/proto/arq -run TestGoodput -update")
	for _, segment := range []int{1472, 8972} {
		fmt.Fprintf(&table, "\ndatagrams of %d bytes\n loss %%", segment)
		for _, w := range windows {
			fmt.Fprintf(&table, "%6d", w)
		}
		fmt.Fprintln(&table)
		above := make([]int64, len(windows)) // the row before
		for i, loss := range losses {
			fmt.Fprintf(&table, "%7.1f", 100*loss)
			left := int64(0)
			for j, w := range windows {
				g := goodput(w, segment, loss)
				fmt.Fprintf(&table, "%6d", g)
				if i > 0 && g > above[j]+20 {
					t.Errorf("%d bytes, window %d: goodput %d with %.1f %% of loss, %d with less", segment, w, g, 100*loss, above[j])
				}
				if g < left*8/10-20 {
					t.Errorf("%d bytes, %.1f %% of loss: goodput %d with window %d, %d with a smaller one", segment, 100*loss, g, w, left)
				}
				above[j], left = g, g
			}
			fmt.Fprintln(&table)
		}
		if one, none := goodput(256, segment, 0.01), goodput(256, segment, 0); one < none*9/10 {
			t.Errorf("%d bytes: goodput %d with 1 %% of loss, %d without", segment, one, none)
		}
	}
	const file = "testdata/goodput.txt"
	if *update {
		if err := os.WriteFile(file, table.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(table.Bytes(), want) {
		t.Errorf("the table has changed; when that is meant, run with -update and say why in the commit:\n%s", table.String())
	}
}
