package mpi_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

// counted is a generalized request that counts what is asked of it.
type counted struct {
	mpi.Grequest
	queries, frees, cancels, late int
}

func count() *counted {
	g := &counted{}
	g.Query = func(st *mpi.Status) error {
		g.queries++
		st.Source, st.Tag = 7, 8
		return st.SetElements(mpi.TypeDouble, 3)
	}
	g.Free = func() error { g.frees++; return nil }
	g.Cancel = func(complete bool) error {
		g.cancels++
		if complete {
			g.late++
		}
		return nil
	}
	return g
}

func (g *counted) want(queries, frees int) error {
	if g.queries != queries || g.frees != frees {
		return fmt.Errorf("%d queries and %d frees, want %d and %d", g.queries, g.frees, queries, frees)
	}
	return nil
}

func isCounted(st mpi.Status) error {
	if st.Source != 7 || st.Tag != 8 || mpi.Count[float64](st) != 3 {
		return fmt.Errorf("the status is %+v", st)
	}
	return nil
}

// Every call that completes operations, or looks at them, takes generalized requests
// among messages.
func TestGrequest_completion(t *testing.T) {
	for name, end := range map[string]func(r []mpi.Request) (mpi.Status, error){
		"Wait": func(r []mpi.Request) (mpi.Status, error) { return r[1].Wait() },
		"Test": func(r []mpi.Request) (st mpi.Status, err error) {
			st, done, err := r[1].Test()
			if !done {
				err = errors.New("not done")
			}
			return st, err
		},
		"Waitany": func(r []mpi.Request) (mpi.Status, error) {
			i, st, err := mpi.Waitany(r)
			return st, errors.Join(err, wantIndex(i))
		},
		"Testany": func(r []mpi.Request) (mpi.Status, error) {
			i, st, _, err := mpi.Testany(r)
			return st, errors.Join(err, wantIndex(i))
		},
		"Waitsome": func(r []mpi.Request) (mpi.Status, error) { return oneOf(mpi.Waitsome(r, nil)) },
		"Testsome": func(r []mpi.Request) (mpi.Status, error) { return oneOf(mpi.Testsome(r, nil)) },
		"Waitall": func(r []mpi.Request) (mpi.Status, error) {
			all := make([]mpi.Status, 1)
			return all[0], errors.Join(mpi.WaitallStatus(r[1:], all), isCounted(all[0]))
		},
		"Testall": func(r []mpi.Request) (mpi.Status, error) {
			done, err := mpi.Testall(r[1:])
			if !done {
				err = errors.New("not done")
			}
			return mpi.Status{}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, 2, func(p *mpi.Proc) error { return grequestRound(p, name, end) })
		})
	}
}

func wantIndex(i int) error {
	if i != 1 {
		return fmt.Errorf("index %d", i)
	}
	return nil
}

func oneOf(some []mpi.Some, _ bool) (mpi.Status, error) {
	if len(some) != 1 || some[0].Index != 1 {
		return mpi.Status{}, fmt.Errorf("ended: %+v", some)
	}
	return some[0].Status, some[0].Err
}

func grequestRound(p *mpi.Proc, name string, end func([]mpi.Request) (mpi.Status, error)) error {
	c, buf := p.World(), []int{0}
	message, err := mpi.Irecv(c, buf, 1-c.Rank(), 0)
	if err != nil {
		return err
	}
	g := count()
	r, err := p.GrequestStart(&g.Grequest)
	if err != nil {
		return err
	}
	both := []mpi.Request{message, r}
	if _, done, err := both[1].Test(); done || err != nil {
		return fmt.Errorf("complete before it was: %w", err)
	}
	if i, _, done, err := mpi.GetStatusAny(both); done || err != nil {
		return fmt.Errorf("complete before it was: %d, %w", i, err)
	}
	if err := errors.Join(g.want(0, 0), g.Complete(), wantClass(g.Complete(), mpi.ErrRequest)); err != nil {
		return err
	}
	for range 2 { // which leaves it as it is
		i, st, done, err := mpi.GetStatusAny(both)
		if !done || err != nil {
			return fmt.Errorf("GetStatusAny: %v, %w", done, err)
		}
		if err := errors.Join(wantIndex(i), isCounted(st)); err != nil {
			return err
		}
	}
	st, err := end(both)
	switch {
	case err != nil:
		return err
	case !both[1].IsNull():
		return errors.New("the request is not null")
	case name != "Testall" && name != "Waitall":
		err = isCounted(st)
	}
	return errors.Join(err, g.want(3, 1), wantClass(second(r.Wait()), mpi.ErrRequest),
		c.Barrier(), mpi.Send(c, buf, 1-c.Rank(), 0), second(both[0].Wait()))
}

// A goroutine completes it while the rank waits, at every level of threads.
func TestGrequest_goroutine(t *testing.T) {
	for _, cfg := range []mpi.Config{{}, {NoShared: true}, {Threads: mpi.ThreadMultiple}} {
		err := mpi.RunWith(2, cfg, func(p *mpi.Proc) error {
			c := p.World()
			for i := range 200 {
				var work sync.WaitGroup
				requests, sum := make([]mpi.Request, 3), make([]int, 3)
				for j := range requests {
					g := &mpi.Grequest{}
					var err error
					if requests[j], err = p.GrequestStart(g); err != nil {
						return err
					}
					work.Go(func() {
						sum[j] = i * j
						if err := g.Complete(); err != nil {
							panic(err)
						}
					})
				}
				for range requests {
					j, _, err := mpi.Waitany(requests)
					if err != nil || sum[j] != i*j {
						return fmt.Errorf("request %d of round %d: %d, %w", j, i, sum[j], err)
					}
				}
				work.Wait()
			}
			return c.Barrier()
		})
		if err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A request that is freed ends by itself, and tells when.
func TestGrequest_free(t *testing.T) {
	everyWay(t, 1, func(p *mpi.Proc) error {
		early, late := count(), count()
		a, err := p.GrequestStart(&early.Grequest)
		if err != nil {
			return err
		}
		b, err := p.GrequestStart(&late.Grequest)
		if err != nil {
			return err
		}
		if err := errors.Join(early.Complete(), a.Free(), b.Free(), early.want(0, 1), late.want(0, 0)); err != nil {
			return err
		}
		if !a.IsNull() || !b.IsNull() {
			return errors.New("a freed request is not null")
		}
		return errors.Join(late.Complete(), late.want(0, 1), wantClass(late.Complete(), mpi.ErrRequest))
	})
}

func TestGrequest_cancel(t *testing.T) {
	everyWay(t, 1, func(p *mpi.Proc) error {
		g := count()
		g.Query = func(st *mpi.Status) error { st.SetCancelled(g.late == 0); return nil }
		r, err := p.GrequestStart(&g.Grequest)
		if err != nil {
			return err
		}
		copied := r
		if err := errors.Join(r.Cancel(), g.Complete(), r.Cancel()); err != nil || g.cancels != 2 || g.late != 1 {
			return fmt.Errorf("%d cancels, %d of them too late: %w", g.cancels, g.late, err)
		}
		if st, err := r.Wait(); err != nil || st.Cancelled() {
			return fmt.Errorf("cancelled: %v, %w", st.Cancelled(), err)
		}
		return errors.Join(wantClass(copied.Cancel(), mpi.ErrRequest), wantClass(copied.Free(), mpi.ErrRequest))
	})
}

// What the functions return, those who call get, with a class; and the error handler
// of Self sees it.
func TestGrequest_errors(t *testing.T) {
	everyWay(t, 1, func(p *mpi.Proc) error {
		boom, seen := errors.New("boom"), 0
		p.Self().SetErrhandler(func(*mpi.Comm, error) { seen++ })
		start := func(g *mpi.Grequest) mpi.Request {
			r, err := p.GrequestStart(g)
			if err != nil {
				panic(err)
			}
			return r
		}
		query := &mpi.Grequest{Query: func(*mpi.Status) error { return boom }}
		free := &mpi.Grequest{Free: func() error { return boom }, Cancel: func(bool) error { return boom }}
		a, b := start(query), start(free)
		for i, err := range []error{b.Cancel(), errors.Join(query.Complete(), free.Complete()), mpi.Waitall([]mpi.Request{a, b})} {
			if want := i != 1; errors.Is(err, boom) != want || want && mpi.ClassOf(err) != mpi.ErrOther {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		if seen != 3 {
			return fmt.Errorf("the handler has seen %d errors, want 3", seen)
		}
		return errors.Join(wantClass(second(p.GrequestStart(query)), mpi.ErrArg), wantClass(second(p.GrequestStart(nil)), mpi.ErrArg),
			wantClass((&mpi.Grequest{}).Complete(), mpi.ErrRequest))
	})
}

// The functions may use MPI, also where goroutines share the process.
func TestGrequest_functionsCallMPI(t *testing.T) {
	everyWay(t, 2, func(p *mpi.Proc) error {
		c, got := p.World(), []int{0}
		g := &mpi.Grequest{
			Query: func(*mpi.Status) error {
				return second(mpi.Sendrecv(c, []int{c.Rank()}, 1-c.Rank(), 0, got, 1-c.Rank(), 0))
			},
			Free: c.Barrier,
		}
		r, err := p.GrequestStart(g)
		if err != nil {
			return err
		}
		if err := g.Complete(); err != nil {
			return err
		}
		if _, done, err := r.GetStatus(); !done || err != nil || got[0] != 1-c.Rank() {
			return fmt.Errorf("GetStatus: %v, got %d: %w", done, got[0], err)
		}
		return second(r.Wait())
	})
}

// One that nobody has waited for is an error of Finalize, and may be completed even
// afterwards.
func TestGrequest_unfinished(t *testing.T) {
	err := mpi.Run(2, func(p *mpi.Proc) error {
		g := &mpi.Grequest{}
		return errors.Join(second(p.GrequestStart(g)), wantClass(p.Finalize(), mpi.ErrPending), g.Complete())
	})
	if err != nil {
		t.Error(err)
	}
}
