package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xwarp/xwarp/mpi"
)

// multiple runs ranks whose goroutines may do anything at any time.
func multiple(t testing.TB, ranks int, body func(p *mpi.Proc) error) {
	t.Helper()
	err := mpi.RunWith(ranks, mpi.Config{Threads: mpi.ThreadMultiple}, func(p *mpi.Proc) error {
		if p.QueryThread() != mpi.ThreadMultiple {
			return fmt.Errorf("asked for multiple, got %v", p.QueryThread())
		}
		return body(p)
	})
	if err != nil {
		t.Error(err)
	}
}

// goroutines calls f n times at once and joins the errors.
func goroutines(n int, f func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = f(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// oneCore runs a test on one core, where nobody may spin and wait for another.
func oneCore(t *testing.T) {
	old := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

func TestInitThread_level(t *testing.T) {
	t.Setenv(mpi.EnvThreads, "serialized") // whatever the tests run under
	for _, level := range []mpi.ThreadLevel{mpi.ThreadSingle, mpi.ThreadFunneled, mpi.ThreadSerialized} {
		err := mpi.RunWith(1, mpi.Config{Threads: level}, func(p *mpi.Proc) error {
			if got := p.QueryThread(); got != mpi.ThreadSerialized {
				return fmt.Errorf("asked for %v, got %v", level, got)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	t.Setenv(mpi.EnvThreads, "several")
	if err := mpi.Run(1, func(*mpi.Proc) error { return nil }); mpi.ClassOf(err) != mpi.ErrArg {
		t.Errorf("%v", err)
	}
}

func TestIsThreadMain(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := pipePair(t, mpi.Config{Receives: 24, Sends: 8})[0] // made by goroutines of its own
	if p.IsThreadMain() {
		t.Error("this thread has not called New")
	}
}

// traffic is what one goroutine of one rank sends and receives: it is known
// beforehand, so that every receive can be checked.
type traffic struct {
	world, goroutines, messages int
	max                         int // bytes
}

// fill is the n-th message from goroutine g of one rank to one of another.
func (x traffic) fill(from, to, g, n int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(from<<32|to), uint64(g<<32|n)))
	size := rnd.IntN(64)
	if rnd.IntN(8) == 0 {
		size = rnd.IntN(x.max)
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// goroutine exchanges messages with its likes on all ranks, its own too, in all
// modes there are.
func (x traffic) goroutine(c *mpi.Comm, g int) error {
	rnd := rand.New(rand.NewPCG(uint64(c.Rank()), uint64(g)))
	for n := range x.messages {
		var sends, receives []mpi.Request
		bufs := make([][]byte, x.world)
		for _, peer := range rnd.Perm(x.world) {
			var r mpi.Request
			var err error
			out := x.fill(c.Rank(), peer, g, n)
			switch rnd.IntN(3) {
			case 0:
				r, err = mpi.Issend(c, out, peer, g)
			default:
				r, err = mpi.Isend(c, out, peer, g)
			}
			if err != nil {
				return err
			}
			sends = append(sends, r)
		}
		for _, peer := range rnd.Perm(x.world) {
			if rnd.IntN(3) == 0 {
				msg, st, err := c.Mprobe(peer, g)
				if err != nil {
					return err
				}
				bufs[peer] = make([]byte, st.Bytes())
				if _, err := mpi.Mrecv(msg, bufs[peer]); err != nil {
					return err
				}
				continue
			}
			bufs[peer] = make([]byte, len(x.fill(peer, c.Rank(), g, n)))
			r, err := mpi.Irecv(c, bufs[peer], peer, g)
			if err != nil {
				return err
			}
			receives = append(receives, r)
		}
		if err := finish(rnd, append(sends, receives...)); err != nil {
			return err
		}
		for peer, got := range bufs {
			if want := x.fill(peer, c.Rank(), g, n); !bytes.Equal(got, want) {
				return fmt.Errorf("goroutine %d, message %d from %d to %d: got %d bytes, or others, want %d", g, n, peer, c.Rank(), len(got), len(want))
			}
		}
	}
	return nil
}

// finish waits for requests in one of the ways there are.
func finish(rnd *rand.Rand, requests []mpi.Request) error {
	switch rnd.IntN(4) {
	case 0:
		for range requests {
			if _, _, err := mpi.Waitany(requests); err != nil {
				return err
			}
		}
		return nil
	case 1:
		for {
			some, active := mpi.Waitsome(requests, nil)
			if !active {
				return nil
			}
			for _, s := range some {
				if s.Err != nil {
					return s.Err
				}
			}
		}
	case 2:
		for {
			if done, err := mpi.Testall(requests); done || err != nil {
				return err
			}
			runtime.Gosched()
		}
	}
	return mpi.Waitall(requests)
}

func TestMultiple_randomTraffic(t *testing.T) {
	x := traffic{world: 3, goroutines: 6, messages: 40, max: 60_000}
	multiple(t, x.world, func(p *mpi.Proc) error {
		return goroutines(x.goroutines, func(g int) error { return x.goroutine(p.World(), g) })
	})
}

func TestMultiple_randomTrafficOneCore(t *testing.T) {
	oneCore(t)
	x := traffic{world: 2, goroutines: 4, messages: 15, max: 60_000}
	multiple(t, x.world, func(p *mpi.Proc) error {
		return goroutines(x.goroutines, func(g int) error { return x.goroutine(p.World(), g) })
	})
}

// Half of the goroutines receive first, and the others are their senders: those
// who wait must not keep those from sending who end the wait.
func TestMultiple_receiveFirst(t *testing.T) {
	for _, size := range []int{8, 200_000} {
		multiple(t, 2, func(p *mpi.Proc) error {
			c := p.World()
			return goroutines(4, func(g int) error {
				buf := make([]byte, size)
				if g%2 == 0 {
					_, err := mpi.Recv(c, buf, 1-c.Rank(), g)
					return err
				}
				time.Sleep(time.Millisecond) // the others wait by now
				return mpi.Send(c, buf, 1-c.Rank(), g-1)
			})
		})
	}
}

// Messages between goroutines of one rank end waits too.
func TestMultiple_toItself(t *testing.T) {
	for _, cores := range []int{1, runtime.GOMAXPROCS(0)} {
		t.Run(fmt.Sprint(cores, " cores"), func(t *testing.T) {
			if cores == 1 {
				oneCore(t)
			}
			multiple(t, 1, func(p *mpi.Proc) error {
				c := p.World()
				return goroutines(4, func(g int) error {
					for n := range 50 {
						buf := []int32{int32(n)}
						if g%2 == 0 {
							if err := mpi.Ssend(c, buf, 0, g); err != nil {
								return err
							}
							continue
						}
						if _, err := c.Probe(0, g-1); err != nil {
							return err
						}
						if _, err := mpi.Recv(c, buf, 0, g-1); err != nil || buf[0] != int32(n) {
							return fmt.Errorf("got %d, %v; want %d", buf[0], err, n)
						}
					}
					return nil
				})
			})
		})
	}
}

// A blocking send to the own rank that is too long to be kept waits for the receive
// that another goroutine posts.
func TestMultiple_longToItself(t *testing.T) {
	multiple(t, 1, func(p *mpi.Proc) error {
		c := p.World()
		return goroutines(2, func(g int) error {
			buf := make([]byte, 300_000)
			if g == 0 {
				pattern(buf, 1)
				return mpi.Send(c, buf, 0, 5)
			}
			for found := false; !found; { // the send waits by now
				var err error
				if _, found, err = c.Iprobe(0, 5); err != nil {
					return err
				}
				runtime.Gosched()
			}
			if _, err := mpi.Recv(c, buf, 0, 5); err != nil {
				return err
			}
			return checkPattern(buf, 1)
		})
	})
}

// A persistent operation may look at a request that it had before, and that another
// goroutine has by now.
func TestMultiple_persistent(t *testing.T) {
	multiple(t, 1, func(p *mpi.Proc) error {
		c := p.World()
		return goroutines(4, func(g int) error {
			out, in := []int32{0}, []int32{0}
			send, err := mpi.SendInit(c, out, 0, g)
			if err != nil {
				return err
			}
			recv, err := mpi.RecvInit(c, in, 0, g)
			if err != nil {
				return err
			}
			for n := range int32(100) {
				out[0] = n
				requests, err := mpi.Startall([]*mpi.Persistent{recv, send}, nil)
				if err == nil {
					err = mpi.Waitall(requests)
				}
				if err != nil || in[0] != n {
					return fmt.Errorf("got %d, %w; want %d", in[0], err, n)
				}
			}
			return errors.Join(send.Free(), recv.Free())
		})
	})
}

// The one that leads gets its message first and does not come back: another one
// must take its place.
func TestMultiple_leaderLeaves(t *testing.T) {
	const waiting = 5
	multiple(t, 2, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			for g := range waiting {
				time.Sleep(3 * time.Millisecond) // all are asleep by now
				if err := mpi.Send(c, []int32{int32(g)}, 0, g); err != nil {
					return err
				}
			}
			return nil
		}
		return goroutines(waiting, func(g int) error {
			var got [1]int32
			_, err := mpi.Recv(c, got[:], 1, g)
			if err == nil && got[0] != int32(g) {
				err = fmt.Errorf("got %d, want %d", got[0], g)
			}
			return err
		})
	})
}

// A send of a goroutine goes out though the one that leads is asleep, and
// nobody waits for it.
func TestMultiple_sendWhileAnotherSleeps(t *testing.T) {
	multiple(t, 2, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			for i := range 20 {
				var got [1]int32
				if _, err := mpi.Recv(c, got[:], 0, i); err != nil {
					return err
				}
			}
			return mpi.Send[int32](c, nil, 0, 99)
		}
		requests := make([]mpi.Request, 20)
		err := goroutines(2, func(g int) (err error) {
			if g == 0 {
				_, err = mpi.Recv[int32](c, nil, 1, 99)
				return err
			}
			time.Sleep(5 * time.Millisecond)
			for i := range requests {
				if requests[i], err = mpi.Isend(c, []int32{1}, 1, i); err != nil {
					return err
				}
			}
			return nil
		})
		return errors.Join(err, mpi.Waitall(requests))
	})
}

// Whoever gets hold of a request may wait for it.
func TestMultiple_anotherWaits(t *testing.T) {
	multiple(t, 2, func(p *mpi.Proc) error {
		c := p.World()
		const n = 100
		requests := make(chan mpi.Request, n)
		bufs := make([][]int64, n)
		return goroutines(2, func(g int) error {
			if g == 0 {
				defer close(requests)
				for i := range bufs {
					bufs[i] = []int64{-1}
					in, err := mpi.Irecv(c, bufs[i], 1-c.Rank(), i)
					if err != nil {
						return err
					}
					out, err := mpi.Isend(c, []int64{int64(i)}, 1-c.Rank(), i)
					if err != nil {
						return err
					}
					requests <- in
					requests <- out
				}
				return nil
			}
			for r := range requests {
				if _, err := r.Wait(); err != nil {
					return err
				}
			}
			for i, b := range bufs {
				if b[0] != int64(i) {
					return fmt.Errorf("message %d: %d", i, b[0])
				}
			}
			return nil
		})
	})
}

// Collectives of different communicators run at the same time, blocking and
// nonblocking ones, beside messages.
func TestMultiple_collectives(t *testing.T) {
	const ranks, threads = 3, 4
	multiple(t, ranks, func(p *mpi.Proc) error {
		var comms [threads]*mpi.Comm
		for g := range comms {
			var err error
			if comms[g], err = p.World().Dup(); err != nil {
				return err
			}
		}
		return goroutines(threads, func(g int) error {
			c := comms[g]
			x := traffic{world: ranks, goroutines: threads, messages: 3, max: 30_000}
			for n := range 25 {
				v := []int64{int64(c.Rank() + n), int64(g)}
				if err := mpi.Allreduce(c, nil, v, mpi.Sum); err != nil {
					return err
				}
				if v[0] != 3+3*int64(n) || v[1] != 3*int64(g) {
					return fmt.Errorf("sum %v", v)
				}
				big := make([]int32, 5000)
				if c.Rank() == n%ranks {
					big[4999] = int32(n)
				}
				r, err := mpi.Ibcast(c, big, n%ranks)
				if err != nil {
					return err
				}
				if n%5 == 0 {
					if err := x.goroutine(p.World(), g); err != nil {
						return err
					}
				}
				if _, err := r.Wait(); err != nil {
					return err
				}
				if big[4999] != int32(n) {
					return fmt.Errorf("Ibcast %d: %d", n, big[4999])
				}
			}
			return c.Free()
		})
	})
}

// Communicators are made by several goroutines at once, and in another order on
// one rank: none of them may wait for another, and no two get the same context.
func TestMultiple_makeCommunicators(t *testing.T) {
	const ranks, threads = 3, 4
	multiple(t, ranks, func(p *mpi.Proc) error {
		var parents [threads]*mpi.Comm
		for g := range parents {
			var err error
			if parents[g], err = p.World().Dup(); err != nil {
				return err
			}
		}
		use := func(g int) error {
			for n := range 6 {
				c, err := parents[g].Split(0, -p.World().Rank())
				if err != nil {
					return err
				}
				v := []int64{int64(100*g + n)}
				if err := mpi.Allreduce(c, nil, v, mpi.Max); err != nil || v[0] != int64(100*g+n) {
					return fmt.Errorf("goroutine %d: %d, %v", g, v[0], err)
				}
				part, err := parents[g].CreateGroup(parents[g].Group(), 7)
				if err != nil {
					return err
				}
				if err := errors.Join(part.Barrier(), part.Free(), c.Free()); err != nil {
					return err
				}
			}
			return nil
		}
		if p.World().Rank() > 0 {
			return goroutines(threads, use)
		}
		for g := threads - 1; g >= 0; g-- { // one after the other
			if err := use(g); err != nil {
				return err
			}
		}
		return nil
	})
}

// Everything else that goroutines share.
func TestMultiple_attributesAndMemory(t *testing.T) {
	multiple(t, 2, func(p *mpi.Proc) error {
		c := p.World()
		if err := p.BufferAttach(1 << 20); err != nil {
			return err
		}
		shared := &mpi.Keyval{}
		err := goroutines(4, func(g int) error {
			own := &mpi.Keyval{Delete: func(c *mpi.Comm, v any) error {
				_ = c.Name() // callbacks may call this package
				return nil
			}}
			for n := range 30 {
				if err := errors.Join(c.SetAttr(shared, n), c.SetAttr(own, n)); err != nil {
					return err
				}
				if v, ok := c.Attr(own); !ok || v != n {
					return fmt.Errorf("attribute %v, want %d", v, n)
				}
				c.SetName(fmt.Sprint("name ", g))
				c.SetErrhandler(func(*mpi.Comm, error) {})
				mem, err := mpi.Alloc[int32](p, 1+rand.IntN(1000))
				if err != nil {
					return err
				}
				mem[0] = int32(n)
				if err := mpi.Bsend(c, mem[:1], 1-c.Rank(), g); err != nil {
					return err
				}
				if _, err := mpi.Recv(c, mem[:1], 1-c.Rank(), g); err != nil || mem[0] != int32(n) {
					return fmt.Errorf("got %d, %v; want %d", mem[0], err, n)
				}
				if g == 0 {
					err = p.BufferFlush()
				}
				if err := errors.Join(err, mpi.Free(p, mem), c.DeleteAttr(own)); err != nil {
					return err
				}
			}
			return nil
		})
		_, detachErr := p.BufferDetach()
		return errors.Join(err, detachErr)
	})
}

// When a rank is lost, all goroutines that wait for it learn it.
func TestMultiple_lostRank(t *testing.T) {
	err := mpi.RunWith(2, mpi.Config{Threads: mpi.ThreadMultiple}, func(p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			time.Sleep(5 * time.Millisecond)
			return errors.New("gone")
		}
		return goroutines(5, func(g int) error {
			var err error
			switch g {
			case 0:
				_, err = c.Probe(1, g)
			case 1:
				var r mpi.Request
				if r, err = c.Ibarrier(); err == nil {
					_, err = r.Wait()
				}
			default:
				_, err = mpi.Recv[byte](c, nil, 1, g)
			}
			if err == nil {
				return fmt.Errorf("goroutine %d got something from a lost rank", g)
			}
			return nil
		})
	})
	var rank *mpi.RankError
	if !errors.As(err, &rank) || rank.Rank != 1 {
		t.Errorf("%v, want that rank 1 is gone", err)
	}
}

// The progress lock costs no memory.
func TestAllocs_Multiple(t *testing.T) {
	if slow {
		t.Skip("the race detector allocates")
	}
	multiple(t, 1, func(p *mpi.Proc) error {
		c, buf := p.World(), []byte{1}
		exchange := func() {
			if err := mpi.Send(c, buf, 0, 5); err != nil {
				panic(err)
			}
			if _, err := mpi.Recv(c, buf, 0, 5); err != nil {
				panic(err)
			}
		}
		exchange()
		if n := testing.AllocsPerRun(1000, exchange); n >= 1 {
			return fmt.Errorf("%v allocations per message", n)
		}
		return nil
	})
}
