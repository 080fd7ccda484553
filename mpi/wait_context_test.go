package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xwarp/xwarp/mpi"
)

// wantOver fails unless a wait has ended with its context.
func wantOver(err error, cause error) error {
	if !errors.Is(err, cause) {
		return fmt.Errorf("%v, want %v", err, cause)
	}
	return wantClass(err, mpi.ErrPending)
}

// waitsEnd begins to receive what nobody sends before all waits have ended, each in
// another way, and receives it then.
func waitsEnd(c *mpi.Comm) error {
	other, in := 1-c.Rank(), []int{0, 0}
	first, err := mpi.Irecv(c, in[:1], other, 1)
	if err != nil {
		return err
	}
	second, err := mpi.Irecv(c, in[1:], other, 2)
	if err != nil {
		return err
	}
	both := []mpi.Request{first, second}
	over, end := context.WithCancel(context.Background())
	end()
	soon, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	later, cancel := context.WithCancel(context.Background())
	time.AfterFunc(2*time.Millisecond, cancel)
	_, err = both[0].WaitContext(over)
	_, err2 := both[0].WaitContext(soon)
	index, _, err3 := mpi.WaitanyContext(later, both)
	err = errors.Join(wantOver(err, context.Canceled), wantOver(err2, context.DeadlineExceeded), wantOver(err3, context.Canceled),
		wantOver(mpi.WaitallContext(over, both), context.Canceled))
	if index != mpi.Undefined || both[0].IsNull() || both[1].IsNull() {
		err = errors.Join(err, errors.New("a request has ended"))
	}
	if err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	if err := mpi.Send(c, []int{7}, other, 2); err != nil {
		return err
	}
	ctx := context.Background()
	if index, _, err = mpi.WaitanyContext(ctx, both); err != nil || index != 1 || in[1] != 7 {
		return fmt.Errorf("%d, %v, %v", index, err, in)
	}
	if err := wantOver(mpi.WaitallContext(over, both), context.Canceled); err != nil {
		return err
	}
	r, err := c.Ibarrier()
	if err == nil {
		_, err = r.WaitContext(ctx)
	}
	if err == nil {
		err = mpi.Send(c, []int{8}, other, 1)
	}
	if err == nil {
		err = mpi.WaitallContext(ctx, both)
	}
	if _, null := both[0].WaitContext(over); err != nil || null != nil || in[0] != 8 || !both[0].IsNull() {
		return fmt.Errorf("%v, %v, %v", err, null, in)
	}
	return nil
}

func TestWaitContext(t *testing.T) {
	for name, cfg := range map[string]mpi.Config{
		"shared memory": {}, "network": {NoShared: true}, "threads": {Threads: mpi.ThreadMultiple},
		"threads, network": {Threads: mpi.ThreadMultiple, NoShared: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := mpi.RunWith(2, cfg, func(p *mpi.Proc) error {
				if cfg.Threads != mpi.ThreadMultiple {
					return waitsEnd(p.World())
				}
				var comms [4]*mpi.Comm
				for i := range comms {
					var err error
					if comms[i], err = p.World().Dup(); err != nil {
						return err
					}
				}
				return goroutines(len(comms), func(g int) error { return waitsEnd(comms[g]) })
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Goroutines that wait for what does not come do not keep one another from ending.
func TestWaitContext_waiters(t *testing.T) {
	err := mpi.RunWith(2, mpi.Config{Threads: mpi.ThreadMultiple}, func(p *mpi.Proc) error {
		c := p.World()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		err := goroutines(6, func(g int) error {
			r, err := mpi.Irecv(c, []int{0}, 1-c.Rank(), g)
			if err != nil {
				return err
			}
			_, err = r.WaitContext(ctx)
			if err := wantOver(err, context.Canceled); err != nil {
				return err
			}
			if err := r.Cancel(); err != nil {
				return err
			}
			st, err := r.Wait()
			if err == nil && !st.Cancelled() {
				err = errors.New("it was not taken back")
			}
			return err
		})
		return errors.Join(err, c.Barrier())
	})
	if err != nil {
		t.Error(err)
	}
}
