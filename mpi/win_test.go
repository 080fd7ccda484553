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

// winOf makes a window of n elements for a test, which are returned.
func winOf(p *mpi.Proc, n int) (*mpi.Win, []int64, error) {
	memory := make([]int64, n)
	w, err := mpi.WinCreate(p.World(), memory, nil)
	return w, memory, err
}

// Calls outside of epochs, and memory outside of windows, are errors of their classes, and
// change nothing.
func TestWin_errors(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		w, _, err := winOf(p, 4)
		if err != nil {
			return err
		}
		me, b := p.World().Rank(), make([]int64, 2)
		_, unlocked := mpi.RPut(w, b, 1, 0)
		err = errors.Join(
			wantClass(mpi.Put(w, b, 0, 0), mpi.ErrRMASync), wantClass(w.Flush(0), mpi.ErrRMASync), wantClass(w.FlushAll(), mpi.ErrRMASync),
			wantClass(w.Unlock(0), mpi.ErrRMASync), wantClass(w.UnlockAll(), mpi.ErrRMASync), wantClass(w.Complete(), mpi.ErrRMASync),
			wantClass(w.Wait(), mpi.ErrRMASync), wantClass(unlocked, mpi.ErrRMASync),
			wantClass(w.Lock(3, 0, 0), mpi.ErrLockType), wantClass(w.Lock(mpi.LockShared, 2, 0), mpi.ErrRank),
			wantClass(w.Lock(mpi.LockShared, 0, mpi.ModeNoPut), mpi.ErrAssert), wantClass(w.Fence(mpi.ModeNoCheck), mpi.ErrAssert),
			wantClass(w.LockAll(mpi.ModeNoPut), mpi.ErrAssert), wantClass(w.Start(w.Group(), mpi.ModeNoPut), mpi.ErrAssert), wantClass(w.Post(w.Group(), mpi.ModeNoPrecede), mpi.ErrAssert),
			wantClass(w.Start(nil, 0), mpi.ErrGroup),
			w.Lock(mpi.LockShared, me, 0),
			wantClass(w.Lock(mpi.LockShared, me, 0), mpi.ErrRMASync), wantClass(w.LockAll(0), mpi.ErrRMASync), wantClass(w.Fence(0), mpi.ErrRMASync),
			wantClass(mpi.Put(w, b, 1-me, 0), mpi.ErrRMASync), wantClass(w.Free(), mpi.ErrRMASync),
			wantClass(mpi.Put(w, b, me, 3), mpi.ErrRMARange), wantClass(mpi.Get(w, b, me, -1), mpi.ErrRMARange),
			wantClass(mpi.Put(w, b, 7, 0), mpi.ErrRank), mpi.Put(w, b, mpi.ProcNull, 99),
			wantClass(mpi.Accumulate(w, b, me, 3, mpi.OpSum), mpi.ErrRMARange), wantClass(mpi.Accumulate(w, b, me, 0, mpi.OpMaxloc), mpi.ErrOp),
			wantClass(mpi.FetchAndOp(w, int64(1), nil, me, 0, mpi.OpSum), mpi.ErrBuffer),
			wantClass(mpi.GetAccumulate(w, b, b[:1], me, 0, mpi.OpSum), mpi.ErrCount),
			wantClass(w.Put(mpi.Slice(b), mpi.At{Rank: me, Count: 1, Type: mpi.TypeInt32}), mpi.ErrTruncate),
			w.Unlock(me),
			p.World().Barrier(),
			wantClass(w.SetInfo(info("no_locks", "maybe")), mpi.ErrInfoValue),
			w.SetInfo(info("no_locks", "true")), wantClass(w.Lock(mpi.LockShared, 0, 0), mpi.ErrRMASync),
		)
		return errors.Join(err, w.Free(), wantClass(w.Free(), mpi.ErrWin), wantClass(mpi.Put(w, b, 0, 0), mpi.ErrWin))
	})
}

func info(key, value string) *mpi.Info {
	i, err := mpi.NewInfo(key, value)
	if err != nil {
		panic(err)
	}
	return i
}

// Names, attributes, groups and error handlers are those of the window.
func TestWin_caching(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		w, memory, err := mpi.WinAllocate[int32](p.World(), 5, info("accumulate_ops", "same_op"))
		if err != nil {
			return err
		}
		var deleted, seen int
		key := &mpi.WinKeyval{Delete: func(*mpi.Win, any) error { deleted++; return nil }}
		w.SetErrhandler(func(got *mpi.Win, err error) {
			if got == w && mpi.ClassOf(err) == mpi.ErrRMASync {
				seen++
			}
		})
		w.SetName("halo")
		_ = w.Flush(0)
		err = errors.Join(w.SetAttr(key, 7), w.Flush(0))
		value, ok := w.Attr(key)
		hints, _ := w.Info()
		ops, _ := hints.Get("accumulate_ops")
		order, _ := hints.Get("accumulate_ordering")
		got := fmt.Sprint(w.Name(), value, ok, ops, order, w.Flavor(), w.Unit(1), w.Size(), w.Rank() == p.World().Rank(), len(w.Memory()), len(memory), w.Group().Compare(p.World().Group()))
		if want := fmt.Sprint("halo", 7, true, "same_op", "rar,raw,war,waw", mpi.FlavorAllocate, 4, 2, true, 20, 5, mpi.Ident); got != want || seen != 2 || mpi.ClassOf(err) != mpi.ErrRMASync {
			return fmt.Errorf("got %s, %d errors were seen, want %s and 2 (%w)", got, seen, want, err)
		}
		if err := w.Free(); err != nil || deleted != 1 {
			return fmt.Errorf("attributes: %d were deleted, want 1 (%w)", deleted, err)
		}
		return nil
	})
}

// Requests are complete when their results are there, of messages, and of Reads and Writes.
func TestWin_requests(t *testing.T) {
	for _, n := range []int{1, 700, 30_000} {
		simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
			w, memory, err := winOf(p, n)
			if err != nil {
				return err
			}
			for i := range memory {
				memory[i] = int64(i)
			}
			me := p.World().Rank()
			if err := errors.Join(p.World().Barrier(), w.LockAll(0)); err != nil {
				return err
			}
			src, got, old, want := slices.Clone(memory), make([]int64, n), make([]int64, n), slices.Clone(memory)
			if me == 0 {
				first, err := mpi.RGet(w, got, 1, 0)
				if err != nil {
					return err
				}
				if _, err := first.Wait(); err != nil || !slices.Equal(got, want) {
					return fmt.Errorf("%d elements: RGet has brought something else (%w)", n, err)
				}
				put, err1 := mpi.RPut(w, src, 1, 0)
				if _, err := put.Wait(); errors.Join(err1, err) != nil {
					return errors.Join(err1, err)
				}
				clear(src)
				if err := w.Flush(1); err != nil {
					return err
				}
				add, err1 := mpi.RAccumulate(w, got, 1, 0, mpi.OpSum)
				fetch, err2 := mpi.RGetAccumulate(w, nil, old, 1, 0, mpi.OpNoOp)
				for i := range want {
					want[i] *= 2
				}
				if err := errors.Join(err1, err2, mpi.Waitall([]mpi.Request{add, fetch})); err != nil || !slices.Equal(old, want) {
					return fmt.Errorf("%d elements: RGetAccumulate has brought something else (%w)", n, err)
				}
				null, err := mpi.RPut(w, src, mpi.ProcNull, 0)
				if _, err2 := null.Wait(); err != nil || err2 != nil {
					return errors.Join(err, err2)
				}
			}
			return errors.Join(w.UnlockAll(), w.Free())
		})
	}
}

// Elements with gaps are combined as wholes, wherever they lie.
func TestWin_pairs(t *testing.T) {
	for _, pair := range []mpi.Datatype{mpi.TypeDoubleInt, mpi.TypeShortInt, mpi.TypeTwoInt} {
		simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
			_, extent := pair.Extent()
			const n = 300 // more than one message
			memory := make([]byte, n*extent)
			w, err := p.World().WinCreate(memory, extent, nil)
			if err != nil {
				return err
			}
			me := p.World().Rank()
			mine, old, want := make([]byte, n*extent), make([]byte, n*extent), make([]byte, n*extent)
			pattern(mine, 3+me)
			pattern(memory, 9)
			copy(want, memory)
			other := make([]byte, n*extent)
			pattern(other, 4-me)
			for _, b := range [][]byte{mine, other} {
				if err := mpi.ReduceLocal(mpi.Bytes(b, 0, n, pair), mpi.Bytes(want, 0, n, pair), mpi.OpMaxloc); err != nil {
					return err
				}
			}
			at := mpi.At{Rank: 1 - me}
			if err := w.Fence(0); err != nil {
				return err
			}
			for target := range 2 {
				at.Rank = target
				if err := w.GetAccumulate(mpi.Bytes(mine, 0, n, pair), mpi.Bytes(old, 0, n, pair), at, mpi.OpMaxloc); err != nil {
					return err
				}
			}
			if err := w.Fence(mpi.ModeNoSucceed); err != nil {
				return err
			}
			if !slices.Equal(memory, want) {
				return fmt.Errorf("%v: the window is %x, want %x", pair, memory[:2*extent], want[:2*extent])
			}
			return w.Free()
		})
	}
}

// Memory comes and goes in dynamic windows, and what is not attached is nobody's.
func TestWin_dynamic(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		w, err := c.WinCreateDynamic(nil)
		if err != nil {
			return err
		}
		memory := make([]int32, 100)
		disp, err := mpi.Attach(w, memory)
		if err != nil {
			return err
		}
		_, twice := mpi.Attach(w, memory[50:51])
		all := make([]int64, 2)
		all[c.Rank()] = int64(disp)
		if err := errors.Join(wantClass(twice, mpi.ErrRMAAttach), wantClass(mpi.Detach(w, memory[1:]), mpi.ErrRMAAttach), mpi.Allreduce(c, nil, all, mpi.Sum), w.LockAll(0)); err != nil {
			return err
		}
		other := 1 - c.Rank()
		there, got := int(all[other]), new(int32)
		err = errors.Join(
			mpi.Put(w, []int32{5, 6}, other, there+4*98), mpi.Accumulate(w, []int32{7}, other, there+4*99, mpi.OpSum), w.Flush(other),
			mpi.FetchAndOp(w, 1, got, other, there+4*99, mpi.OpSum), w.Flush(other),
			mpi.Put(w, []int32{5, 6}, other, there+4*99), wantClass(w.Flush(other), mpi.ErrRMARange),
			mpi.Get(w, []int32{5, 6}, other, 8), wantClass(w.Flush(other), mpi.ErrRMARange), w.Flush(other),
			w.UnlockAll(), c.Barrier(), mpi.Detach(w, memory),
		)
		if *got != 13 || memory[98] != 5 || memory[99] != 14 {
			err = errors.Join(err, fmt.Errorf("fetched %d, memory is %d", *got, memory[98:]))
		}
		return errors.Join(err, w.Free())
	})
}

// An operation on memory that is not there fails at the end of its epoch, and the epoch ends for
// all the same: nobody waits for a lock that was not given back, or for a Complete.
func TestWin_refusedInEpoch(t *testing.T) {
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		c := p.World()
		w, err := c.WinCreateDynamic(nil)
		if err != nil {
			return err
		}
		group, other := c.Group(), 1-c.Rank()
		peer, err := group.Incl(other)
		if err != nil {
			return err
		}
		for range 2 { // the second time the lock was given back
			err = errors.Join(err,
				w.Lock(mpi.LockExclusive, other, 0), mpi.Get(w, []int32{5, 6}, other, 8), wantClass(w.Unlock(other), mpi.ErrRMARange),
				w.LockAll(0), mpi.Put(w, []int32{5, 6}, other, 8), wantClass(w.UnlockAll(), mpi.ErrRMARange),
				w.Post(peer, 0), w.Start(peer, 0), mpi.Get(w, []int32{5, 6}, other, 8), wantClass(w.Complete(), mpi.ErrRMARange), w.Wait(),
			)
		}
		return errors.Join(err, c.Barrier(), w.Free())
	})
}

// Windows leave nothing behind when they are freed: neither contexts nor keys nor memory.
func TestWin_freeManyTimes(t *testing.T) {
	many := 3000 // more than there are contexts
	if testing.Short() || slow {
		many = 300
	}
	simulate(t, sim.Config{}, 2, func(p *mpi.Proc) error {
		for i := range many {
			w, memory, err := mpi.WinAllocate[byte](p.World(), 100_000, nil)
			if err != nil {
				return fmt.Errorf("window %d: %w", i, err)
			}
			err = errors.Join(w.Fence(0), mpi.Put(w, []byte{byte(i + 1)}, 1-p.World().Rank(), 3), w.Fence(mpi.ModeNoSucceed))
			if memory[3] != byte(i+1) {
				err = errors.Join(err, fmt.Errorf("window %d has %d", i, memory[3]))
			}
			if err := errors.Join(err, w.Free()); err != nil {
				return err
			}
		}
		return nil
	})
}

// A rank that dies with a lock does not keep it, and whoever operates on it, or waits for
// it, is told.
func TestWin_lossInsideEpochs(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD, mpi.RC} {
		m := newMortals(sim.Config{Seed: 4}, 3)
		m.mpi.Transport = transport
		m.tells = transport == mpi.RC // whose streams have no end in a simulation while nothing is sent
		m.killed[1] = mono.Time(0).Add(80 * mono.Millisecond)
		m.play(t, func(_ *sim.Task, p *mpi.Proc) error {
			c := p.World()
			w, memory, err := winOf(p, 4)
			if err != nil {
				return err
			}
			word, lost := make([]int64, 1), mpi.ErrProcFailed
			switch c.Rank() {
			case 0:
				if _, err := mpi.Recv(c, word, 2, 5); err != nil {
					return err
				}
				if memory[1] != 7 {
					return fmt.Errorf("%v: memory is %d", transport, memory)
				}
				dead, err := w.Group().Incl(1)
				return errors.Join(err, wantClass(errors.Join(w.Post(dead, 0), w.Wait()), lost), wantClass(w.Fence(0), lost), w.Free())
			case 1:
				if err := errors.Join(w.Lock(mpi.LockExclusive, 0, 0), mpi.Send(c, word, 2, 5)); err != nil {
					return err
				}
				_, err := mpi.Recv(c, word, 2, 6) // until the end
				return err
			}
			if _, err := mpi.Recv(c, word, 1, 5); err != nil {
				return err
			}
			got := new(int64)
			err = errors.Join(
				w.Lock(mpi.LockExclusive, 0, 0), mpi.Put(w, []int64{7}, 0, 1), w.Unlock(0),
				wantClass(w.Lock(mpi.LockShared, 1, 0), lost),
				w.LockAll(0), mpi.FetchAndOp(w, 1, got, 0, 1, mpi.OpSum), w.Flush(0),
			)
			if *got != 7 {
				err = errors.Join(err, fmt.Errorf("fetched %d", *got))
			}
			_ = mpi.Get(w, word, 1, 0)
			_ = mpi.Put(w, word, 1, 0)
			err = errors.Join(err, wantClass(w.Flush(1), lost), mpi.FetchAndOp(w, -1, got, 0, 1, mpi.OpSum), w.UnlockAll(), mpi.Send(c, word, 0, 5))
			return errors.Join(err, wantClass(w.Fence(0), lost), w.Free())
		})
	}
}

// Several goroutines of each rank use a window at the same time.
func TestWin_threads(t *testing.T) {
	const workers, each = 3, 60
	err := mpi.RunWith(3, mpi.Config{Threads: mpi.ThreadMultiple}, func(p *mpi.Proc) error {
		w, memory, err := winOf(p, 1+workers*3*8)
		if err == nil {
			err = w.LockAll(0)
		}
		if err != nil {
			return err
		}
		me := p.World().Rank()
		errs := make([]error, workers)
		var group sync.WaitGroup
		for k := range workers {
			group.Go(func() {
				at := 1 + (me*workers+k)*8
				src, dst := make([]int64, 8), make([]int64, 8)
				for i := range each {
					target, got := (me+i)%3, new(int64)
					for j := range src {
						src[j] = int64(1000*i + j)
					}
					err := errors.Join(
						mpi.Put(w, src, target, at), mpi.FetchAndOp(w, 1, got, target, 0, mpi.OpSum), w.Flush(target),
						mpi.Accumulate(w, src, target, at, mpi.OpSum), w.FlushAll(), mpi.Get(w, dst, target, at), w.Flush(target),
					)
					for j := range dst {
						if dst[j] != 2*src[j] && err == nil {
							err = fmt.Errorf("element %d is %d, want %d", j, dst[j], 2*src[j])
						}
					}
					errs[k] = errors.Join(errs[k], err)
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := errors.Join(w.UnlockAll(), p.World().Barrier()); err != nil {
			return err
		}
		if memory[0] != workers*each {
			return fmt.Errorf("the counter of rank %d is %d, want %d", me, memory[0], workers*each)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a flush, an unlock, a fence or a Wait has completed is at the target for everybody,
// though the network loses frames.
func TestWin_completeForOthers(t *testing.T) {
	const rounds = 60
	bad := sim.Faults{Loss: 0.1, Reorder: 0.1}
	for seed := range seeds(t, 10) {
		simulate(t, sim.Config{Seed: uint64(seed), Up: sim.LinkConfig{Faults: bad}}, 3, func(p *mpi.Proc) error {
			c := p.World()
			n := []int{1, 200, 3000}[seed%3] // gathered, a Write, and one from where it lies
			w, _, err := winOf(p, n)
			if err != nil {
				return err
			}
			b, word := make([]int64, n), make([]int64, 1)
			for i := range rounds {
				switch c.Rank() {
				case 0:
					b[0], b[n-1] = int64(i), int64(i)
					err = errors.Join(w.Lock(mpi.LockShared, 1, 0), mpi.Put(w, b, 1, 0))
					if i%2 == 0 {
						err = errors.Join(err, w.Flush(1), mpi.Send(c, word, 2, 1), w.Unlock(1))
					} else {
						err = errors.Join(err, w.Unlock(1), mpi.Send(c, word, 2, 1))
					}
					if err == nil {
						_, err = mpi.Recv(c, word, 2, 2)
					}
				case 2:
					_, err1 := mpi.Recv(c, word, 0, 1)
					err = errors.Join(err1, w.Lock(mpi.LockShared, 1, 0), mpi.Get(w, b, 1, 0), w.Unlock(1), mpi.Send(c, word, 0, 2))
					if err == nil && (b[0] != int64(i) || b[n-1] != int64(i)) {
						err = fmt.Errorf("seed %d, round %d: rank 2 has read %d and %d", seed, i, b[0], b[n-1])
					}
				}
				if err != nil {
					return err
				}
			}
			return errors.Join(c.Barrier(), w.Free())
		})
	}
}

// A rank that looks at its own window again and again, in epochs that need nobody else, lets
// others in, whatever the window is made of.
func TestWin_pollsItself(t *testing.T) {
	for name, mode := range map[string]mpi.WinMode{"lock": 0, "no check": mpi.ModeNoCheck} {
		t.Run(name, func(t *testing.T) {
			err := mpi.Run(2, func(p *mpi.Proc) error {
				w, memory, err := winOf(p, 1)
				if err != nil {
					return err
				}
				if p.World().Rank() == 0 {
					for memory[0] == 0 {
						if err := errors.Join(w.Lock(mpi.LockShared, 0, mode), w.Unlock(0)); err != nil {
							return err
						}
					}
					return w.Free()
				}
				return errors.Join(w.Lock(mpi.LockShared, 0, mode), mpi.Put(w, []int64{1}, 0, 0), w.Unlock(0), w.Free())
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Accumulates of nothing do nothing, whatever the datatypes and for all predefined operations,
// and their requests come to their ends; in an epoch they must be, as others.
func TestAccumulate_nothing(t *testing.T) {
	empty, err := mpi.TypeContiguous(0, mpi.TypeFloat)
	if err == nil {
		err = empty.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	onRanks(t, []int{2}, func(p *mpi.Proc) error {
		w, _, err := winOf(p, 4)
		if err != nil {
			return err
		}
		other := 1 - p.World().Rank()
		for _, here := range []mpi.Data{mpi.Slice([]float64{}), mpi.Typed([]float32{1}, 5, empty)} {
			for _, there := range []mpi.At{{Rank: other, Type: mpi.TypeInt}, {Rank: other, Type: empty, Count: 3}} {
				if err := wantClass(w.Accumulate(here, there, mpi.OpSum), mpi.ErrRMASync); err != nil {
					return err
				}
				if err := w.LockAll(0); err != nil {
					return err
				}
				for _, op := range []mpi.Operation{mpi.OpSum, mpi.OpBAnd, mpi.OpMaxloc, mpi.OpReplace, mpi.OpNoOp} {
					r, err1 := w.RAccumulate(here, there, op)
					q, err2 := w.RGetAccumulate(here, mpi.Slice([]int16{}), there, op)
					err := errors.Join(err1, err2, w.Accumulate(here, there, op), w.GetAccumulate(here, mpi.Slice([]int16{}), there, op))
					if err = errors.Join(err, mpi.Waitall([]mpi.Request{r, q})); err != nil {
						return fmt.Errorf("%v: %w", op, err)
					}
				}
				something := wantClass(w.Accumulate(mpi.Slice([]int32{1}), there, mpi.OpSum), mpi.ErrType)
				if err := errors.Join(something, w.UnlockAll()); err != nil {
					return err
				}
			}
		}
		return w.Free()
	})
}
