package verbs_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// waiter is one end of a ping-pong whose receives have a channel.
type waiter struct {
	ctx *verbs.Context
	ch  *verbs.CompChannel
	rcq *verbs.CQ
	qp  *verbs.QP
	pd  *verbs.PD
	ah  *verbs.AH
	mr  *verbs.MR
}

func newWaiter(ctx *verbs.Context) (*waiter, error) {
	w := &waiter{ctx: ctx}
	var err error
	if w.ch, err = ctx.CreateCompChannel(); err != nil {
		return nil, err
	}
	if w.rcq, err = ctx.CreateCQ(verbs.CQInit{Depth: 64, Channel: w.ch}); err != nil {
		return nil, err
	}
	scq, err := ctx.CreateCQ(verbs.CQInit{})
	if err != nil {
		return nil, err
	}
	if w.pd, err = ctx.AllocPD(); err != nil {
		return nil, err
	}
	if w.mr, err = w.pd.RegMR(make([]byte, 4096), verbs.LocalWrite); err != nil {
		return nil, err
	}
	w.qp, err = w.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: scq, RecvCQ: w.rcq})
	return w, err
}

func (w *waiter) meet(to netip.AddrPort) (err error) {
	if w.ah, err = w.pd.CreateAH(to); err != nil {
		return err
	}
	return w.post()
}

func (w *waiter) post() error {
	return w.qp.PostRecv(&verbs.RecvWR{NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{w.mr.SGE(0, 4096)}})
}

func (w *waiter) send() error {
	return w.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: []byte("hello"), AH: w.ah})
}

// recv returns how often sleep was called until a message had come. sleep
// waits for the channel's descriptor.
func (w *waiter) recv(sleep func(fd int) error) (sleeps int, err error) {
	var one [1]verbs.WC
	for {
		if err := w.rcq.ReqNotify(false); err != nil {
			return sleeps, err
		}
		if w.rcq.Poll(one[:]) == 1 {
			if one[0].Status != verbs.Success || one[0].ByteLen != 5 {
				return sleeps, fmt.Errorf("%+v", one[0])
			}
			return sleeps, w.post()
		}
		for got := false; !got; {
			if err := sleep(w.ch.FD()); err != nil {
				return sleeps, err
			}
			sleeps++
			_, got = w.ch.GetEvent()
		}
	}
}

// linger steps until stop: the other may not have heard all yet.
func (w *waiter) linger(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			w.ctx.Engine().Step()
		}
	}
}

func newWaiters(t *testing.T, fabric string) (a, b *waiter) {
	t.Helper()
	var ws [2]*waiter
	for i := range ws {
		ctx, err := device.Open(device.Spec{Fabric: fabric, Key: 7, Arena: 16 << 20, Poller: progress.PollerConfig{NoSpin: true}})
		must(t, err)
		t.Cleanup(func() { must(t, ctx.Close()) })
		ws[i], err = newWaiter(ctx)
		must(t, err)
	}
	must(t, ws[0].meet(ws[1].ctx.Addr()))
	must(t, ws[1].meet(ws[0].ctx.Addr()))
	return ws[0], ws[1]
}

// The three system calls that wait for descriptors, for as long as it takes.

func sleepPoll(fd int) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
	return ignoreEINTR(err)
}

func sleepSelect(fd int) error {
	var set unix.FdSet
	set.Set(fd)
	_, err := unix.Select(fd+1, &set, nil, nil, nil)
	return ignoreEINTR(err)
}

func sleepEpoll(fd int) error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return errors.Join(err, unix.Close(ep))
	}
	_, err = unix.EpollWait(ep, make([]unix.EpollEvent, 1), -1)
	return errors.Join(ignoreEINTR(err), unix.Close(ep))
}

func ignoreEINTR(err error) error {
	if err == unix.EINTR {
		return nil
	}
	return err
}

// Two threads that wait for one another with each of the system calls: no
// message is slept through.
func TestCompChannel_pingPong(t *testing.T) {
	const rounds = 300
	sleeps := map[string]func(int) error{"poll": sleepPoll, "select": sleepSelect, "epoll": sleepEpoll}
	for _, name := range []string{"udp/poll", "udp/select", "udp/epoll", "shm/poll", "shm/epoll"} {
		t.Run(name, func(t *testing.T) {
			fabric, call, _ := strings.Cut(name, "/")
			sleep := sleeps[call]
			a, b := newWaiters(t, fabric)
			done, stop := make(chan error), make(chan struct{})
			go func() {
				var err error
				for i := 0; err == nil && i < rounds; i++ {
					if _, err = b.recv(sleep); err == nil {
						err = b.send()
					}
				}
				b.linger(stop)
				done <- err
			}()
			for range rounds {
				must(t, a.send())
				_, err := a.recv(sleep)
				must(t, err)
			}
			close(stop)
			must(t, <-done)
		})
	}
}

// Whoever waits sleeps until the message comes.
func TestCompChannel_sleepsUntilAMessageComes(t *testing.T) {
	a, b := newWaiters(t, "udp")
	exchange := func(pause time.Duration) (sleeps int) {
		done, stop := make(chan error), make(chan struct{})
		go func() {
			time.Sleep(pause)
			err := a.send()
			a.linger(stop)
			done <- err
		}()
		sleeps, err := b.recv(sleepEpoll)
		must(t, err)
		close(stop)
		must(t, <-done)
		return sleeps
	}
	exchange(0) // they get to know each other
	if sleeps := exchange(200 * time.Millisecond); sleeps > 50 {
		t.Errorf("%d system calls to wait for one message: the descriptor is readable without input", sleeps)
	}
}

func TestCompChannel_Wait(t *testing.T) {
	a, b := newWaiters(t, "udp")
	must(t, b.rcq.ReqNotify(false))
	sent, stop := make(chan error), make(chan struct{})
	go func() {
		time.Sleep(20 * time.Millisecond)
		err := a.send()
		a.linger(stop)
		sent <- err
	}()
	q, err := b.ch.Wait()
	close(stop)
	must(t, errors.Join(err, <-sent))
	if q != b.rcq || q.Len() != 1 {
		t.Errorf("%d completions in %p, want one in %p", q.Len(), q, b.rcq)
	}
}

// In the simulator there is no descriptor, but Wait and GetEvent work.
func TestCompChannel_inTheSimulator(t *testing.T) {
	const rounds = 50
	f := newSimFabric(sim.Config{Seed: 3, Up: sim.LinkConfig{Faults: sim.Faults{Loss: 0.05}}}, 2)
	for i := range 2 {
		f.world.Go(f.nodes[i], fmt.Sprint("rank ", i), func(t *sim.Task) error {
			ctx, err := f.open(t, i, 7, dgram.Config{})
			if err != nil {
				return err
			}
			w, err := newWaiter(ctx)
			if err != nil {
				return err
			}
			if err := w.meet(f.addr(1 - i)); err != nil {
				return err
			}
			if fd := w.ch.FD(); fd != -1 {
				return fmt.Errorf("descriptor %d", fd)
			}
			wait := func(int) error {
				q, err := w.ch.Wait()
				if err == nil && q != w.rcq {
					err = errors.New("an event of another queue")
				}
				if err == nil {
					err = w.rcq.ReqNotify(false) // GetEvent looks for another one
				}
				return err
			}
			recv := func() error {
				var one [1]verbs.WC
				for w.rcq.Poll(one[:]) == 0 {
					if err := wait(0); err != nil {
						return err
					}
				}
				return w.post()
			}
			if err := w.rcq.ReqNotify(false); err != nil {
				return err
			}
			for r := range 2 * rounds {
				step := w.send
				if r%2 != i {
					step = recv
				}
				if err := step(); err != nil {
					return err
				}
			}
			for end := t.Now().Add(3e9); t.Now() < end; { // the other may not have heard all yet
				if ctx.Engine().Step() == 0 {
					t.Sleep(1e6)
				}
			}
			return ctx.Close()
		})
	}
	if err := f.world.Run(); err != nil {
		t.Fatal(err)
	}
}

// A context closes what hangs on it; nothing of it can be used afterwards.
func TestCompChannel_closedWithItsContext(t *testing.T) {
	ctx, err := device.Open(device.Spec{Arena: 16 << 20})
	must(t, err)
	w, err := newWaiter(ctx)
	must(t, err)
	fd := w.ch.FD()
	async, err := ctx.AsyncFD()
	must(t, err)
	must(t, ctx.Close())
	for _, fd := range []int{fd, async} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
			t.Errorf("descriptor %d is still open: %v", fd, err)
		}
	}
	if _, err := w.ch.Wait(); !errors.Is(err, verbs.ErrClosed) || w.ch.FD() != -1 {
		t.Errorf("Wait: %v", err)
	}
	if _, got := w.ch.GetEvent(); got {
		t.Error("an event")
	}
	if _, err := ctx.CreateCompChannel(); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("another channel: %v", err)
	}
}

// Of the messages of a peer only the solicited one wakes a queue that is armed
// for these.
func TestReqNotify_solicitedByAPeer(t *testing.T) {
	a, b := newPair(t, 9000, 4096)
	a.qp.Destroy()
	b.qp.Destroy()
	ch, err := b.ctx.CreateCompChannel()
	must(t, err)
	b.rcq, err = b.ctx.CreateCQ(verbs.CQInit{Channel: ch})
	must(t, err)
	for _, e := range []*end{a, b} {
		e.qp, err = e.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: e.scq, RecvCQ: e.rcq})
		must(t, err)
		e.ah, err = e.pd.CreateAH(e.ah.Remote())
		must(t, err)
	}
	must(t, b.rcq.ReqNotify(true))
	for i, flags := range []verbs.SendFlags{0, 0, verbs.Solicited, 0} {
		b.recv(t, 0, 10)
		send(t, a, flags, a.mr.SGE(0, 1))
		wc := wait(a, b, b.rcq)
		if solicited := wc.Flags == verbs.WCWithSolicited; wc.Status != verbs.Success || solicited != (flags != 0) {
			t.Errorf("message %d: %+v", i, wc)
		}
		if q, got := ch.GetEvent(); got != (flags != 0) || got && q != b.rcq {
			t.Errorf("message %d: event %v", i, got)
		}
	}
}
