package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

func TestPublicCall(t *testing.T) {
	const user = "main.main()\n\t/a/main.go:9 +0x1\n"
	for stack, want := range map[string]string{
		user: "",
		"syscall.x(...)\n\t/s.go:1\n" + ownPackage + "(*call).run(0x1)\n\t/c.go:1\n" + ownPackage + "(*Comm).Barrier(0x2)\n\t/b.go:1\n" + user: "Comm.Barrier",
		ownPackage + "(*Comm).recv(0x1)\n\t/c.go:1\n" + ownPackage + "Recv[...](0x2)\n\t/b.go:1\n" + user:                                      "Recv",
		ownPackage + "Recv[...](...)\n\t/b.go:1\n" + user + ownPackage + "Run.func1()\n\t/r.go:1\n":                                            "Recv",
		"sync.Wait()\n\t/b.go:1\n" + ownPackage + "RunWith(0x2, {0x0})\n\t/r.go:1\n" + ownPackage + "Run(...)\n\t/r.go:1\n":                    "",
		"main.f()\n\t/b.go:1\n" + ownPackage + "Run.func1()\n\t/r.go:1\n":                                                                      "",
		ownPackage + "(*witness).state(0x1)\n\t/b.go:1\ncreated by " + ownPackage + "Init in goroutine 1\n\t/x.go:1":                           "",
		"github.com/xwarp/xwarp/mpi/internal/p2p.(*Endpoint).Recv(0x1)\n\t/b.go:1\n" + user:                                                    "",
	} {
		name, from := publicCall(stack)
		if name != want || name != "" && !strings.Contains(stack[from:], "/b.go:1\n"+user) {
			t.Errorf("%q at %d of %s; want %q", name, from, stack, want)
		}
	}
}

func TestWaitedFor(t *testing.T) {
	for want, w := range map[string]p2p.Wait{
		"a lock of rank 3, after 500 tries":                                                                      {For: p2p.ForLock, From: true, Peer: 3, Tries: 500},
		"a segment of rank 2, after 0 tries":                                                                     {For: p2p.ForSegment, From: true, Peer: 2},
		"anything that moves":                                                                                    {},
		"a message of up to 8 bytes from rank 3 with tag 0":                                                      {For: "a message", From: true, Peer: 3, Bytes: 8},
		"a message of up to 8 bytes from any rank with any tag of MPI_COMM_SELF":                                 {For: "a message", From: true, Peer: match.Any, Tag: match.Any, Bytes: 8, Context: selfContext},
		"the receive of a message of 9 bytes to rank 0 inside of a collective":                                   {For: "the receive of a message", Bytes: 9, Context: 1},
		"room to send a message of 9 bytes to rank 2 with tag 5 of the communicator with context 6":              {For: "room to send a message", Peer: 2, Tag: 5, Bytes: 9, Context: 6},
		"the rest of a message of 9 bytes from rank 2 inside of a collective of the communicator with context 6": {For: "the rest of a message", From: true, Peer: 2, Bytes: 9, Context: 7},
	} {
		if got := waitedFor(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A launcher that asks is told what the rank waits for, and afterwards what it has
// waited for.
func TestWitness(t *testing.T) {
	w := &witness{}
	if s := w.doing(nil); s != "in no call of MPI, before Init or in it" {
		t.Error(s)
	}
	if s := w.state(); !strings.Contains(s, "mpi.TestWitness(") {
		t.Errorf("no stack of this function in %s", s)
	}
	seen := make(chan struct{})
	err := Run(2, func(p *Proc) error {
		c := p.World()
		if c.Rank() == 1 {
			<-seen
			return Send(c, []byte{1}, 0, 7)
		}
		w.ep.Store(p.ep)
		go func() {
			for { // this test is a call, too, by its name, and may be the first one
				head, _, _ := strings.Cut(w.state(), "\n")
				if strings.Contains(head, "Recv") && strings.Contains(head, ", waits for a message of up to 1 bytes from rank 1 with tag 7") {
					break
				}
				time.Sleep(time.Millisecond)
			}
			close(seen)
		}()
		_, err := Recv(c, make([]byte, 1), 1, 7)
		if s := w.doing(nil); !strings.HasPrefix(s, "in no call of MPI for ") || !strings.Contains(s, "the last one that had to sleep was Recv, for a message of up to 1 bytes from rank 1 with tag 7, until ") {
			t.Error(s)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err = Run(2, func(p *Proc) error { return witnessLock(w, p) }); err != nil {
		t.Error(err)
	}
	if job, ok := boot.Solo().(boot.Stateful); ok {
		t.Errorf("%T is asked, by nobody", job)
	}
	if d := ago(mono.Time(5), mono.Never); d != 0 {
		t.Error(d)
	}
}

// witnessLock has rank 0 wait for a lock in shared memory until it has told twice of its tries, each
// time of more.
func witnessLock(w *witness, p *Proc) error {
	c := p.World()
	window, _, err := WinAllocate[int64](c, 1, nil)
	if err == nil && c.Rank() == 1 {
		err = window.Lock(LockExclusive, 1, 0)
	}
	if err = errors.Join(err, c.Barrier()); err != nil {
		return err
	}
	if c.Rank() == 0 {
		w.ep.Store(p.ep)
		err = errors.Join(window.Lock(LockShared, 1, 0), window.Unlock(1))
	} else {
		for told, last := 0, 0; told < 2; time.Sleep(time.Millisecond) {
			head, _, _ := strings.Cut(w.state(), "\n")
			_, what, _ := strings.Cut(head, "waits for ")
			tries := 0
			if n, _ := fmt.Sscanf(what, "a lock of rank 1, after %d tries", &tries); n == 1 && strings.Contains(head, "Win.Lock") && tries > last {
				told, last = told+1, tries
			}
		}
		err = window.Unlock(1)
	}
	return errors.Join(err, window.Free())
}
