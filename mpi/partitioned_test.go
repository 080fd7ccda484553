package mpi_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/mpi"
)

// Sender and receiver cut the same message into different numbers of partitions,
// which become ready in any order, round after round.
func TestPartitioned_rounds(t *testing.T) {
	for _, tt := range []struct{ out, in, count int }{{1, 1, 1}, {4, 4, 100}, {6, 4, 10}, {2, 8, 1000}, {5, 1, 0}, {12, 3, 7}} {
		t.Run(fmt.Sprintf("%d to %d", tt.out, tt.in), func(t *testing.T) {
			onRanks(t, []int{2}, func(p *mpi.Proc) error { return partitionRounds(p.World(), tt.out, tt.in, tt.count) })
			simulate(t, sim.Config{Seed: 7, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05, Reorder: 0.05}}}, 2, func(p *mpi.Proc) error {
				return partitionRounds(p.World(), tt.out, tt.in, tt.count)
			})
		})
	}
}

// partitionRounds sends 120*count numbers from rank 0 to rank 1, in so many
// partitions.
func partitionRounds(c *mpi.Comm, out, in, count int) error {
	buf := make([]int, 120*count)
	start, n := c.PrecvInit, in
	if c.Rank() == 0 {
		start, n = c.PsendInit, out
	}
	o, err := start(mpi.Slice(buf), n, 1-c.Rank(), 5)
	if err != nil {
		return err
	}
	for round := range 3 {
		clear(buf)
		r, err := o.Start()
		if err != nil {
			return err
		}
		each := len(buf) / n
		for i := range n {
			i = (i*7 + round) % n // n is no multiple of 7
			part := buf[i*each : (i+1)*each]
			if c.Rank() == 0 {
				for k := range part {
					part[k] = 1000*round + i*each + k
				}
				if err := o.Pready(i); err != nil {
					return err
				}
				continue
			}
			for there := false; !there; {
				if there, err = o.Parrived(i); err != nil {
					return err
				}
			}
			for k, v := range part {
				if v != 1000*round+i*each+k {
					return fmt.Errorf("round %d: element %d of partition %d is %d", round, k, i, v)
				}
			}
		}
		st, err := r.Wait()
		if c.Rank() == 1 {
			err = wantStatus(st, err, 0, 5, 8*len(buf))
		}
		if err != nil {
			return err
		}
	}
	if c.Rank() == 1 {
		if there, err := o.Parrived(0); !there || err != nil {
			return fmt.Errorf("after the end a partition is not there: %w", err)
		}
	}
	return o.Free()
}

// Sends meet receives in the order in which they were made, whichever are started
// first; those that are never started leave nothing behind.
func TestPartitioned_orderOfMatching(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		for range 3 {
			c, err := p.World().Dup()
			if err != nil {
				return err
			}
			const n = 4
			var ops [n]*mpi.Persistent
			var bufs [n][]int
			for i := range n {
				bufs[i] = []int{10 * i, 10*i + 1}
				init := mpi.PsendInit[int]
				if c.Rank() == 1 {
					init, bufs[i] = mpi.PrecvInit[int], []int{-1, -1}
				}
				if ops[i], err = init(c, bufs[i], 2, 1-c.Rank(), i/3); err != nil { // three with one tag
					return err
				}
			}
			if err := ops[1].Free(); err != nil {
				return err
			}
			started := []int{2, 0}
			if c.Rank() == 1 {
				started = []int{0, 2}
			}
			var requests []mpi.Request
			for _, i := range started {
				r, err := ops[i].Start()
				if err == nil && c.Rank() == 0 {
					err = ops[i].PreadyRange(0, 1)
				}
				if err != nil {
					return err
				}
				requests = append(requests, r)
			}
			if err := mpi.Waitall(requests); err != nil {
				return err
			}
			for _, i := range started {
				if !slices.Equal(bufs[i], []int{10 * i, 10*i + 1}) {
					return fmt.Errorf("message %d is %v", i, bufs[i])
				}
			}
			if err := c.Free(); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestPartitioned_toSelf(t *testing.T) {
	onRanks(t, []int{1, 2}, func(p *mpi.Proc) error {
		c := p.World()
		const n = 60_000
		out, in := make([]byte, n), make([]byte, n)
		pattern(out, c.Rank())
		send, err := mpi.PsendInit(c, out, 3, c.Rank(), 0)
		if err != nil {
			return err
		}
		recv, err := mpi.PrecvInit(c, in, 2, c.Rank(), 0)
		if err != nil {
			return err
		}
		requests, err := mpi.Startall([]*mpi.Persistent{send, recv}, nil)
		if err = errors.Join(err, send.Pready(2, 0)); err != nil {
			return err
		}
		if there, err := recv.Parrived(1); there || err != nil { // the middle third is in both halves
			return fmt.Errorf("a half is there: %v: %w", there, err)
		}
		if err := errors.Join(send.Pready(1), mpi.Waitall(requests)); err != nil {
			return err
		}
		return errors.Join(checkPattern(in, c.Rank()), send.Free(), recv.Free())
	})
}

// Columns of a matrix, sent by a goroutine for each.
func TestPartitioned_columnsByGoroutines(t *testing.T) {
	const n = 6
	err := mpi.RunWith(2, mpi.Config{Threads: mpi.ThreadMultiple}, func(p *mpi.Proc) error {
		c := p.World()
		column, err := mpi.TypeVector(n, 1, n, mpi.TypeInt64)
		if err == nil {
			column, err = mpi.TypeResized(column, 0, 8)
		}
		if err = errors.Join(err, column.Commit()); err != nil {
			return err
		}
		m := make([]int64, n*n)
		if c.Rank() == 1 { // in three partitions of two columns
			o, err := c.PrecvInit(mpi.Typed(m, n, column), 3, 0, 0)
			if err != nil {
				return err
			}
			r, err := o.Start()
			if err == nil {
				_, err = r.Wait()
			}
			for i, v := range m {
				if v != int64(i) {
					return fmt.Errorf("element %d is %d: %w", i, v, err)
				}
			}
			return errors.Join(err, o.Free())
		}
		o, err := c.PsendInit(mpi.Typed(m, n, column), n, 1, 0)
		if err != nil {
			return err
		}
		r, err := o.Start()
		if err != nil {
			return err
		}
		errs := make([]error, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				for row := range n {
					m[row*n+i] = int64(row*n + i)
				}
				errs[i] = o.Pready(i)
			})
		}
		all.Wait()
		_, err = r.Wait()
		return errors.Join(append(errs, err, o.Free())...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPartitioned_wrong(t *testing.T) {
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		c := p.World()
		v := []int{1, 2, 3, 4}
		null, err := mpi.PsendInit(c, v, 2, mpi.ProcNull, 0)
		if err != nil {
			return err
		}
		early := null.Pready(0)
		r, err := null.Start()
		if err != nil {
			return err
		}
		_, notRecv := null.Parrived(0)
		for what, check := range map[string]struct {
			err   error
			class mpi.ErrorClass
		}{
			"not started": {early, mpi.ErrRequest},
			"ready":       {null.Pready(0), mpi.Success},
			"twice":       {null.Pready(0), mpi.ErrRequest},
			"beyond":      {null.PreadyRange(1, 2), mpi.ErrArg},
			"a send":      {notRecv, mpi.ErrRequest},
			"no parts":    {second(mpi.PsendInit(c, v, 0, 0, 0)), mpi.ErrArg},
			"uneven":      {second(mpi.PrecvInit(c, v, 3, 0, 0)), mpi.ErrCount},
			"any source":  {second(mpi.PrecvInit(c, v, 2, mpi.AnySource, 0)), mpi.ErrRank},
			"any tag":     {second(mpi.PrecvInit(c, v, 2, 0, mpi.AnyTag)), mpi.ErrTag},
			"rank":        {second(mpi.PsendInit(c, v, 2, 2, 0)), mpi.ErrRank},
		} {
			if err := wantClass(check.err, check.class); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		return lengthsOfPartitions(c)
	})
}

// lengthsOfPartitions: who receives finds out that the lengths differ.
func lengthsOfPartitions(c *mpi.Comm) error {
	if c.Rank() == 0 {
		o, err := mpi.PsendInit(c, []int{1, 2}, 2, 1, 1)
		if err != nil {
			return err
		}
		r, err := o.Start()
		if err = errors.Join(err, o.Pready(1, 0), wantClass(o.Free(), mpi.ErrRequest)); err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	}
	o, err := mpi.PrecvInit(c, []int{0}, 1, 0, 1)
	if err != nil {
		return err
	}
	r, err := o.Start()
	if err != nil {
		return err
	}
	_, err = r.Wait()
	return wantClass(err, mpi.ErrTruncate)
}

// A rank that dies fails the partitions that it has to do with, and no others.
func TestPartitioned_lostRank(t *testing.T) {
	errs := mpi.RunEach(3, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 2 {
			return errors.New("dies")
		}
		lost, err := mpi.PrecvInit(c, []int{0}, 1, 2, 0)
		if err != nil {
			return err
		}
		r, err := lost.Start()
		if err != nil {
			return err
		}
		if _, err := r.Wait(); mpi.ClassOf(err) != mpi.ErrProcFailed {
			return fmt.Errorf("from the lost rank: %w", err)
		}
		return partitionRounds(c, 4, 2, 10)
	})
	for rank, err := range errs[:2] {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A rank that is lost while it tells about its partitions is no matter to a receive
// from another one, which looks for its own word at the same time.
func TestPartitioned_lostWord(t *testing.T) {
	m := newMortals(sim.Config{}, 3)
	m.mpi.EagerMax = -1 // words wait for the receiver to ask
	m.killed[1] = mono.Time(50 * mono.Millisecond)
	m.tells = true
	m.play(t, func(task *sim.Task, p *mpi.Proc) error {
		c := p.World()
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() > 0 {
			if c.Rank() == 2 {
				task.Sleep(200 * mono.Millisecond)
			}
			o, err := mpi.PsendInit(c, []int{42}, 1, 0, 0)
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				task.Sleep(100 * mono.Millisecond) // it has told, and does not answer any more
			}
			r, err := o.Start()
			if err := errors.Join(err, o.Pready(0)); err != nil {
				return err
			}
			_, err = r.Wait()
			return err
		}
		var in [3][1]int
		var requests [3]mpi.Request
		for _, from := range []int{2, 1} {
			o, err := mpi.PrecvInit(c, in[from][:], 1, from, 0)
			if err == nil {
				requests[from], err = o.Start()
			}
			if err != nil {
				return err
			}
		}
		_, lost := requests[1].Wait()
		_, err := requests[2].Wait()
		if err := errors.Join(wantClass(lost, mpi.ErrProcFailed), err); err != nil || in[2] != [1]int{42} {
			return fmt.Errorf("got %v: %w", in[2], err)
		}
		return nil
	})
}

// A round of a message in partitions allocates nothing.
func TestAllocs_partitioned(t *testing.T) {
	onRanks(t, []int{1}, func(p *mpi.Proc) error {
		c := p.World()
		send, err := mpi.PsendInit(c, make([]byte, 1000), 4, 0, 0)
		if err != nil {
			return err
		}
		recv, err := mpi.PrecvInit(c, make([]byte, 1000), 2, 0, 0)
		if err != nil {
			return err
		}
		var failed error
		got := testing.AllocsPerRun(50, func() {
			out, err := send.Start()
			in, inErr := recv.Start()
			failed = errors.Join(failed, err, inErr, send.PreadyRange(0, 3))
			_, err = out.Wait()
			_, inErr = in.Wait()
			failed = errors.Join(failed, err, inErr)
		})
		if got != 0 {
			t.Errorf("%v allocations per round", got)
		}
		return errors.Join(failed, send.Free(), recv.Free())
	})
}
