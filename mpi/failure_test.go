package mpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/mpi"
)

// errCrash makes a rank of crashWorld die: it neither calls Finalize nor
// anything else any more.
var errCrash = errors.New("crash")

// crashWorld runs body on n ranks, some of which may return errCrash. All
// others must come to the end of Finalize.
func crashWorld(t *testing.T, n int, body func(*sim.Task, *mpi.Proc) error) {
	t.Helper()
	if err := newSimWorld(sim.Config{}, n).crash(body); err != nil {
		t.Fatal(err)
	}
}

// crash is crashWorld in a world that has its ranks.
func (w *simWorld) crash(body func(*sim.Task, *mpi.Proc) error) error {
	w.dgram = dgram.Config{PeerLost: 300 * mono.Millisecond}
	w.Launch(w.nodes, func(task *sim.Task, r *sim.Rank) error {
		ctx, err := w.open(task, r)
		if err != nil {
			return err
		}
		p, err := mpi.New(r, ctx, w.mpi)
		if err != nil {
			return err
		}
		switch err := body(task, p); {
		case errors.Is(err, errCrash) && (w.mpi.Transport == mpi.RC || w.mpi.Transport == mpi.Hybrid):
			return ctx.Close() // the kernel does that for a process that dies
		case errors.Is(err, errCrash):
			return nil
		case err != nil:
			return err
		}
		task.Doing("Finalize")
		return p.Finalize()
	})
	return w.Run()
}

// wantLost fails unless err says that the rank is lost.
func wantLost(err error, rank int) error {
	var e *mpi.Error
	if !errors.As(err, &e) || e.Class != mpi.ErrProcFailed || e.Rank != rank {
		return fmt.Errorf("got %v, want the loss of rank %d", err, rank)
	}
	return nil
}

func TestLost_everythingWithThePeerFails(t *testing.T) {
	crashWorld(t, 2, func(_ *sim.Task, p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			return errCrash
		}
		var requests []mpi.Request
		start := func(r mpi.Request, err error) {
			if err != nil {
				t.Error(err)
			}
			requests = append(requests, r)
		}
		start(mpi.Irecv(c, make([]byte, 8), 1, 0))
		start(mpi.Irecv(c, make([]byte, 8), mpi.AnySource, 1))
		start(mpi.Isend(c, make([]byte, 1<<20), 1, 2)) // waits for the CTS
		start(mpi.Isend(c, make([]byte, 8), 1, 3))     // has left: complete, unless it waits for a connection
		for i := range requests {
			_, err := requests[i].Wait()
			if i == 3 && err == nil {
				continue
			}
			if i == 1 { // goes on: somebody else could send the message
				if err := wantClass(err, mpi.ErrProcFailedPending); err != nil || requests[i].IsNull() {
					return fmt.Errorf("receive from any source: %v", err)
				}
				if err := requests[i].Cancel(); err != nil {
					return err
				}
				if _, err = requests[i].Wait(); err != nil {
					return err
				}
				continue
			}
			if err := wantLost(err, 1); err != nil {
				return fmt.Errorf("operation %d: %w", i, err)
			}
		}
		// What follows fails at once.
		_, recv := mpi.Recv(c, make([]byte, 8), 1, 0)
		_, recvAny := mpi.Recv(c, make([]byte, 8), mpi.AnySource, 0)
		_, probe := c.Probe(1, 0)
		_, _, iprobe := c.Iprobe(1, 0)
		for i, err := range []error{
			mpi.Send(c, make([]byte, 8), 1, 0), recv, recvAny, probe, iprobe,
			c.Barrier(), mpi.Bcast(c, make([]byte, 8), 1),
		} {
			if err := wantLost(err, 1); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		// The rank itself is not lost to itself.
		c.FailureAck()
		if err := mpi.Send(c, []byte{1}, 0, 9); err != nil {
			return err
		}
		_, err := mpi.Recv(c, make([]byte, 1), mpi.AnySource, 9)
		return err
	})
}

// sendToTheDead sends a little to a rank that is lost, or will be found to be:
// that succeeds unless it takes a connection first.
func sendToTheDead(c *mpi.Comm, rank int) error {
	if err := mpi.Send(c, []byte{1}, rank, 0); err != nil {
		return wantLost(err, rank)
	}
	return nil
}

func TestLost_thoseWhoOnlyReceiveHearOfIt(t *testing.T) {
	crashWorld(t, 4, func(_ *sim.Task, p *mpi.Proc) error {
		c := p.World()
		switch c.Rank() {
		case 3:
			return errCrash
		case 0: // notices, for it sends
			return sendToTheDead(c, 3)
		}
		_, err := mpi.Recv(c, make([]byte, 1), 3, 0)
		return wantLost(err, 3)
	})
}

func TestLost_othersGoOn(t *testing.T) {
	crashWorld(t, 3, func(_ *sim.Task, p *mpi.Proc) error {
		c := p.World()
		if c.Rank() == 2 {
			return errCrash
		}
		if err := sendToTheDead(c, 2); err != nil {
			return err
		}
		_, err := mpi.Recv(c, make([]byte, 1), 2, 0)
		if err := wantLost(err, 2); err != nil {
			return err
		}
		if n := c.AckFailed(1); n != 1 { // or a receive from any source may be in vain
			return fmt.Errorf("%d losses are acknowledged, want 1", n)
		}
		buf := make([]byte, 100_000)
		for i := range 10 {
			pattern(buf, i)
			in := make([]byte, len(buf))
			if _, err := mpi.Sendrecv(c, buf, 1-c.Rank(), i, in, mpi.AnySource, i); err != nil {
				return err
			}
			if err := checkPattern(in, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestLost_inTheMiddle lets a rank die at a random moment of an exchange of
// large messages: the others must get an error or their data, never hang.
func TestLost_inTheMiddle(t *testing.T) {
	for moment := range 12 {
		crashWorld(t, 3, func(task *sim.Task, p *mpi.Proc) error {
			c := p.World()
			end := task.Now().Add(mono.Duration(moment) * 150 * mono.Microsecond)
			for round := 0; ; round++ {
				if c.Rank() == 2 && task.Now() > end {
					return errCrash
				}
				v := make([]float64, 10_000)
				for i := range v {
					v[i] = 1
				}
				if err := mpi.Allreduce(c, nil, v, mpi.Sum); err != nil {
					return wantLost(err, 2)
				}
				for i := range v {
					if v[i] != 3 {
						return fmt.Errorf("round %d: element %d is %v", round, i, v[i])
					}
				}
			}
		})
	}
}

// TestLost_halfAMessage lets a rank die when half of a message is on a connection beside datagrams, which it sends or
// receives: what waits for it fails, and no receive has what is not whole. The connection ends with its process, or its
// host says nothing any more.
func TestLost_halfAMessage(t *testing.T) {
	for _, length := range []int{20_000, 200_000} {
		for sender := range 2 {
			for _, silent := range []bool{false, true} {
				halfAMessage(t, length, sender, silent)
			}
		}
	}
}

// halfAMessage has messages go to and fro, and rank 1 die in the middle of one.
func halfAMessage(t *testing.T, length, sender int, silent bool) {
	const warm, canary = 40, 0xa5 // after so many messages envelopes go over the connection, too
	w := newSimWorld(sim.Config{Limit: 2 * time.Second}, 2)
	w.mpi = mpi.Config{Transport: mpi.Hybrid, PromoteMessages: 1}
	w.tcp = sim.StreamConfig{SendBuffer: 4000, RecvBuffer: 4000} // what has left a process goes on without it
	here := func() (n int) {                                     // bytes that the receiver has
		for _, s := range w.opened {
			if s.Addr() == w.nodes[1-sender].Addr() {
				n = int(s.Stats().RxBytes)
			}
		}
		return n
	}
	before, dead := 0, false // before: bytes that were here when the last message was sent
	wait := func(task *sim.Task, q mpi.Request, err error) error {
		for done := false; !done && err == nil; _, done, err = q.Test() {
			if task.Sleep(5 * mono.Microsecond); !dead && before > 0 && here()-before > length/4 {
				if dead = true; silent {
					w.Partition(mono.Never, w.nodes[1])
				}
			}
			if dead && task.Node() == w.nodes[1] {
				return errCrash
			}
		}
		return err
	}
	err := w.crash(func(task *sim.Task, p *mpi.Proc) (err error) {
		c, me, in, out := p.World(), p.World().Rank(), make([]byte, length), make([]byte, length)
		for round := 0; err == nil; round++ {
			var q mpi.Request
			if (me+round)%2 == 0 {
				if pattern(out, round); me == sender && round > warm {
					before = here()
				}
				q, err = mpi.Isend(c, out, 1-me, 0)
				err = wait(task, q, err)
				continue
			}
			for i := range in {
				in[i] = canary
			}
			q, err = mpi.Irecv(c, in, 1-me, 0)
			if err = wait(task, q, err); err == nil {
				err = checkPattern(in, round)
			}
		}
		if errors.Is(err, errCrash) {
			return err
		}
		if sender == 1 && length < 64<<10 && bytes.Count(in, []byte{canary}) != length {
			t.Error("a receive has failed, and has something of a message that went with its envelope")
		}
		return wantLost(err, 1)
	})
	if part := here() - before; err != nil || part <= length/4 || part > length-100 {
		t.Errorf("%d bytes, sent by rank %d, silent %v: %v; %d bytes were there", length, sender, silent, err, part)
	}
}

// TestPartition_aMinute cuts one rank off in the middle of traffic: for less than
// what makes a rank lost, and nobody notices; and for more, and all get an error of
// the right class, on both sides of the cut.
func TestPartition_aMinute(t *testing.T) {
	oneGoroutine(t)
	for _, lasts := range []mono.Duration{time.Second, time.Minute, 59 * time.Minute} {
		w := newSimWorld(sim.Config{Limit: 3 * time.Hour}, 3)
		if w.mpi.Transport == mpi.RC && lasts > time.Second {
			continue // the simulator's TCP gives up sooner
		}
		w.dgram = dgram.Config{PeerLost: time.Hour} // the default of Init
		w.At(mono.Time(mono.Millisecond), func() { w.Partition(mono.Time(mono.Millisecond).Add(lasts), w.nodes[1]) })
		w.launch(func(_ *sim.Task, p *mpi.Proc) error {
			return exercise{seed: 6, messages: 2000, maxLen: 200_000, tags: 3, wild: 0.2}.run(p)
		})
		if err := w.Run(); err != nil {
			t.Errorf("%v: %v", lasts, err)
		}
	}
	w := newSimWorld(sim.Config{Limit: 3 * time.Hour}, 3)
	if w.mpi.Transport == mpi.RC || w.mpi.Transport == mpi.UD {
		return // it is TCP that gives up, or the launcher
	}
	w.dgram = dgram.Config{PeerLost: 30 * time.Second}
	w.At(mono.Time(mono.Millisecond), func() { w.Partition(mono.Time(time.Minute), w.nodes[1]) })
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		for {
			if err := sums(p.World(), 3); mpi.ClassOf(err) == mpi.ErrRevoked {
				return nil
			} else if err != nil {
				return errors.Join(wantClass(err, mpi.ErrProcFailed), p.World().Revoke())
			}
		}
	})
	if err := w.Run(); err != nil {
		t.Error(err)
	}
}

// Who takes a rank for lost says what frames of it this host itself has lost.
func TestPartition_saysWhatIsLost(t *testing.T) {
	for _, transport := range []mpi.Transport{mpi.RD, mpi.UD} {
		for stray, want := range map[uint64]string{0: "", 9: "; here 9 frames came in on a queue of the network card without a socket"} {
			w := newSimWorld(sim.Config{Limit: time.Hour}, 2)
			w.mpi.Transport, w.stray, w.dgram = transport, stray, dgram.Config{PeerLost: 30 * time.Second}
			w.At(mono.Time(mono.Millisecond), func() { w.Partition(mono.Time(30*time.Minute), w.nodes[1]) })
			w.launch(func(_ *sim.Task, p *mpi.Proc) error {
				for {
					err := sums(p.World(), 3)
					if err == nil {
						continue
					}
					if text := err.Error(); !strings.Contains(text, "is lost: ") || want != "" && !strings.Contains(text, want) || want == "" && strings.Contains(text, "here") {
						t.Errorf("%v, %d stray: %v", transport, stray, err)
					}
					return errors.Join(wantClass(err, mpi.ErrProcFailed), p.World().Revoke())
				}
			})
			if err := w.Run(); err != nil {
				t.Errorf("%v, %d stray: %v", transport, stray, err)
			}
		}
	}
}

// TestPartition_shortOnesAreSurvived cuts the network for less than what makes
// a peer lost.
func TestPartition_shortOnesAreSurvived(t *testing.T) {
	w := newSimWorld(sim.Config{}, 3)
	for i := range 5 {
		cut := mono.Time(mono.Duration(i+1) * mono.Millisecond)
		w.At(cut, func() { w.Partition(cut.Add(700*mono.Microsecond), w.nodes[i%3]) })
	}
	w.launch(func(_ *sim.Task, p *mpi.Proc) error {
		return exercise{seed: 5, messages: 2000, maxLen: 200_000, tags: 3, wild: 0.2}.run(p)
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}
