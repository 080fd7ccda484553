package xdp_test

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
)

// queueConfig is what tests open shared queues with.
func queueConfig(slots int, mode bpf.Mode) xdp.QueueConfig {
	return xdp.QueueConfig{
		Device: testbed.Device, Slots: slots, Steer: bpf.Config{PortBase: portBase}, Mode: mode,
		RxDepth: 512, TxDepth: 256, Part: 4 << 20,
	}
}

// openQueue opens a queue on a host and closes it when the test ends.
func openQueue(t testing.TB, h *testbed.Host, c xdp.QueueConfig) *xdp.Queue {
	t.Helper()
	var q *xdp.Queue
	err := h.Do(func() (err error) {
		q, err = xdp.OpenQueue(c)
		return err
	})
	if errors.Is(err, xdp.ErrUnsupported) {
		testenv.NoXDP(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, q)
	return q
}

// take returns a slot with descriptors of its own, as a process that inherits
// them has.
func take(t testing.TB, q *xdp.Queue, number int) xdp.Slot {
	t.Helper()
	s := q.Slot(number)
	own := func(fd int) int {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.ArenaFD, s.LivenessFD = own(s.ArenaFD), own(s.LivenessFD)
	for i, q := range s.Queues {
		s.Queues[i] = xdp.SlotQueue{RingsFD: own(q.RingsFD), SocketFD: own(q.SocketFD)}
	}
	return s
}

// sit opens a port on a slot and closes it when the test ends.
func sit(t testing.TB, q *xdp.Queue, number int) fabric.Port {
	t.Helper()
	return occupy(t, take(t, q, number))
}

// occupy is sit for a slot that was taken.
func occupy(t testing.TB, s xdp.Slot) fabric.Port {
	t.Helper()
	arena, err := s.MapArena()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { arena.Close() })
	_, testing := t.(*testing.T)
	p, err := xdp.OpenSlot(s, arena, nil, testing)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Closing(t, p)
	return p
}

var modes = []bpf.Mode{bpf.Generic, bpf.Driver}

func forEachMode(t *testing.T, fn func(*testing.T, bpf.Mode)) {
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) { fn(t, m) })
	}
}

// sharers are the ports of two hosts with a shared queue each.
type sharers struct {
	tb     *testbed.Testbed
	queues [2]*xdp.Queue
	ends   [2][]end // by host and slot
}

func newSharers(t testing.TB, mode bpf.Mode, slots int) *sharers {
	t.Helper()
	s := &sharers{tb: newTestbed(t, 9000)}
	for i, h := range s.tb.Hosts[:2] {
		s.queues[i] = openQueue(t, h, queueConfig(slots, mode))
		for n := range slots {
			s.ends[i] = append(s.ends[i], end{sit(t, s.queues[i], n), h})
		}
	}
	return s
}

// Every slot talks to every slot of the other host, with frames of all sizes,
// and each frame arrives where it is for.
func TestQueue_everySlotToEverySlot(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		const slots = 3
		s := newSharers(t, mode, slots)
		rng := newRand()
		for round := range 600 {
			from, to := s.ends[round%2][rng.IntN(slots)], rng.IntN(slots)
			there := s.ends[1-round%2]
			want := content(rng, from, there[to], udpHeaderLen+rng.IntN(9014-udpHeaderLen+1))
			putHeaders(want, from.host, there[to].host, uint16(portBase+to), len(want))
			bufs := build(rng, from, want)
			send(from, bufs...)
			if got := recv(there[to]); !bytes.Equal(got, want) {
				t.Fatalf("round %d: %d bytes in buffers %v: got %d bytes, not the same", round, len(want), bufs, len(got))
			}
		}
		for _, ends := range s.ends {
			wantNoDrops(t, ends...)
			for n, e := range ends {
				if st := e.Stats(); st.RxFrames == 0 || st.TxFrames == 0 {
					t.Errorf("slot %d of %s: %+v", n, e.host.Name, st)
				}
				var none [fabric.MaxBufs]fabric.Desc
				if got := e.Recv(none[:]); got != 0 {
					t.Errorf("%d buffers more at slot %d of %s", got, n, e.host.Name)
				}
			}
		}
	})
}

// What a slot may send is its own memory: other addresses are a broken
// invariant, and would be handed to their owner.
func TestQueue_onlyOwnMemoryIsSent(t *testing.T) {
	s := newSharers(t, bpf.Generic, 2)
	p := s.ends[0][0].Port
	theirs, _ := s.ends[0][1].Pool().Get()
	for _, bufs := range [][]fabric.Desc{
		{{Addr: theirs, Len: 60}},
		{{Addr: theirs, Len: 60, Flags: fabric.More}, {Addr: theirs, Len: 60}},
		{{Addr: mem.FrameSize, Len: 60}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v was sent", bufs)
				}
			}()
			p.Send(bufs)
		}()
	}
}
