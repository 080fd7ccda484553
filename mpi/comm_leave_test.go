package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// Free is a call of all ranks, but waits for none of them.
func TestFree_doesNotWait(t *testing.T) {
	for _, item := range []struct {
		name string
		body func(w *mpi.Comm) error
	}{
		{"ring", freeRing},
		{"receive under way", freeReceiving},
		{"late", freeLate},
		{"many", func(w *mpi.Comm) error { return freeMany(w, 1020) }},
	} {
		t.Run(item.name, func(t *testing.T) {
			body := func(p *mpi.Proc) error { return item.body(p.World()) }
			if item.name == "many" { // which takes long on a network
				onRanks(t, []int{2, 4}, body)
				simulate(t, sim.Config{Seed: 1}, 3, body)
				return
			}
			everyWay(t, 4, body)
			for seed := range uint64(20) {
				simulate(t, sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05, Dup: 0.03, Reorder: 0.05}}}, 4, body)
			}
		})
	}
}

// freeRing: each rank frees the communicators with its neighbours in another order.
func freeRing(w *mpi.Comm) error {
	n, me := w.Size(), w.Rank()
	var right, left *mpi.Comm
	for r := range n {
		g, err := w.Group().Incl(min(r, (r+1)%n), max(r, (r+1)%n))
		if err != nil {
			return err
		}
		if g.Rank(w.Proc()) == mpi.Undefined {
			g = mpi.GroupEmpty()
		}
		c, err := w.Create(g)
		if err != nil {
			return err
		}
		switch me {
		case r:
			right = c
		case (r + 1) % n:
			left = c
		}
	}
	return errors.Join(right.Free(), left.Free(), works(w))
}

// freeReceiving: a rank frees what another one sends a message with, before that does.
func freeReceiving(w *mpi.Comm) error {
	c, err := w.Dup()
	if err != nil {
		return err
	}
	switch w.Rank() {
	case 0:
		return errors.Join(w.Barrier(), mpi.Ssend(c, []int{7}, 1, 3), c.Free())
	case 1:
		in := []int{0}
		r, err := mpi.Irecv(c, in, 0, 3)
		if err = errors.Join(err, c.Free(), w.Barrier()); err != nil {
			return err
		}
		if _, err = r.Wait(); err == nil && in[0] != 7 {
			err = fmt.Errorf("got %d", in[0])
		}
		return err
	}
	return errors.Join(c.Free(), w.Barrier())
}

// freeLate: ranks do what takes a while between, with communicators that follow.
func freeLate(w *mpi.Comm) error {
	var all []*mpi.Comm
	for range 20 {
		c, err := w.Dup()
		if err == nil {
			err = works(c)
		}
		if err != nil {
			return err
		}
		if w.Rank()%2 == 0 {
			err = c.Free()
		} else {
			all = append(all, c)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range slices.Backward(all) {
		if err := c.Free(); err != nil {
			return err
		}
	}
	return works(w)
}

// freeMany: one rank frees many communicators before the others free any.
func freeMany(w *mpi.Comm, many int) error {
	all := make([]*mpi.Comm, many)
	for i := range all {
		var err error
		if all[i], err = w.Dup(); err != nil {
			return err
		}
	}
	free := func() (err error) {
		for _, c := range all {
			err = errors.Join(err, c.Free())
		}
		return err
	}
	if w.Rank() == 1 {
		return errors.Join(free(), w.Barrier())
	}
	return errors.Join(w.Barrier(), free())
}

// What is made and freed again leaves nothing behind, neither contexts nor memory, though
// nobody waits for the others; persistent operations that are freed later included.
func TestFree_loop(t *testing.T) {
	many := 10_000
	if testing.Short() || slow {
		many = 2500 // more than there are contexts
	}
	body := func(p *mpi.Proc) error {
		w := p.World()
		for i := range many {
			c, err := w.Dup()
			if err != nil {
				return fmt.Errorf("number %d: %w", i, err)
			}
			var o *mpi.Persistent
			if i%4 == 0 {
				if o, err = mpi.RecvInit(c, []int{0}, 0, 0); err != nil {
					return err
				}
			}
			err = c.Free()
			if o != nil {
				err = errors.Join(err, o.Free())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	onRanks(t, []int{3}, body)
	many = 2500
	simulate(t, sim.Config{}, 3, body)
}

// With few contexts left Free waits, so that they come back.
func TestFree_waitsForContexts(t *testing.T) {
	onRanks(t, []int{3}, func(p *mpi.Proc) error {
		w := p.World()
		for i := range 3000 {
			c, err := w.Dup()
			if err != nil {
				return fmt.Errorf("number %d: %w", i, err)
			}
			if i < 2000 { // these stay
				continue
			}
			if err := c.Free(); err != nil {
				return err
			}
		}
		return nil
	})
}

// A session that ends last waits for the ranks of what was freed.
func TestFree_beforeTheLastSession(t *testing.T) {
	for range 10 {
		everyRealWay(t, 5, func(p *mpi.Proc) error {
			s, err := p.SessionInit(nil, nil)
			if err != nil {
				return err
			}
			var all []*mpi.Comm
			for i := range 5 {
				c, err := from(s, mpi.PsetWorld, fmt.Sprint(i))
				if err != nil {
					return err
				}
				all = append(all, c)
			}
			me := p.World().Rank()
			if err := p.Finalize(); err != nil {
				return err
			}
			for i := range all {
				if err := all[(i+me)%len(all)].Free(); err != nil {
					return err
				}
			}
			return s.Finalize()
		})
	}
}
