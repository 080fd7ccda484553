package main

import (
	"strings"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		for _, o := range []options{{distinct: 1, batch: 1}, {keys: 300, distinct: 7, batch: 10}, {keys: 500, distinct: 2000, batch: 64, seed: 3}} {
			var out strings.Builder
			err := mpi.Run(n, func(p *mpi.Proc) error { return run(p.World(), o, &out) })
			if err != nil || !strings.Contains(out.String(), "counted right") {
				t.Errorf("%d ranks, %+v: %v, %q", n, o, err, out.String())
			}
		}
	}
}

// A count that is wrong, and a key that is gone, are noticed.
func TestTable_verify(t *testing.T) {
	for name, damage := range map[string]func(slot []uint64){
		"nothing":     func([]uint64) {},
		"wrong count": func(slot []uint64) { slot[1]++ },
		"another key": func(slot []uint64) { slot[0] += 1 << 40 },
		"missing":     func(slot []uint64) { clear(slot) },
	} {
		err := mpi.Run(2, func(p *mpi.Proc) error {
			o := options{keys: 50, distinct: 40}
			table, err := newTable(p.World(), o.distinct)
			if err != nil {
				return err
			}
			if err := table.add(o.generate(p.World().Rank())); err != nil {
				return err
			}
			if err := p.World().Barrier(); err != nil {
				return err
			}
			if slot := table.part; p.World().Rank() == 1 {
				for slot[0] == 0 {
					slot = slot[2:]
				}
				damage(slot[:2])
			}
			if err := table.verify(p.World(), o); (err == nil) != (name == "nothing") {
				t.Errorf("%s: %v", name, err)
			}
			return table.close()
		})
		if err != nil {
			t.Error(name, err)
		}
	}
}

// A table that is full says so, and does not search for ever.
func TestTable_full(t *testing.T) {
	err := mpi.Run(1, func(p *mpi.Proc) error {
		table, err := newTable(p.World(), 1)
		if err != nil {
			return err
		}
		if err := table.add([]uint64{1, 2, 3, 4}); err == nil || !strings.Contains(err.Error(), "full") {
			t.Errorf("four keys in %d slots: %v", table.slots, err)
		}
		return table.close()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestOptions_check(t *testing.T) {
	for _, o := range []options{{keys: -1, distinct: 1, batch: 1}, {distinct: 0, batch: 1}, {distinct: 1}} {
		if o.check() == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
