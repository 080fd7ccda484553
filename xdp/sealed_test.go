package xdp_test

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/internal/test/testenv"
	"github.com/xwarp/xwarp/xdp"
)

// What the process of a slot can do is what its descriptors can.

// No process of a slot can cut off memory that others touch, or make it more.
func TestSlot_memoryKeepsItsSize(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Queues: 6})
	shared := openQueue(t, tb.Hosts[0], queueConfig(2, bpf.Generic)).Slot(1)
	own := openQueueSet(t, tb.Hosts[1], setConfig(2, 2, bpf.Generic, testbed.Cable)).Slot(1)
	for what, fd := range map[string]int{"arena": shared.ArenaFD, "liveness file": shared.LivenessFD, "own arena": own.ArenaFD} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{st.Size / 2, 1 << 40} {
			if err := unix.Ftruncate(fd, size); size != st.Size && err != unix.EPERM {
				t.Errorf("the %s has %d bytes now: %v", what, size, err)
			}
		}
	}
}

// files tells the files of descriptors apart.
func files(t *testing.T, fds []int) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, fd := range fds {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		names[fmt.Sprint(st.Dev, " ", st.Ino)] = true
	}
	return names
}

// On a network card that steers the process of a slot has nothing that another one has,
// and what it does to what it has is no concern of others.
func TestQueueSet_slotsOfACardAreApart(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Queues: 2})
	var sets []*xdp.QueueSet
	var ends []end
	var theirs [][]byte
	for _, h := range tb.Hosts {
		l := openQueueSet(t, h, onCard(&xdp.FakeNIC{Size: 9, On: true}, h))
		sets = append(sets, l)
		p, err := sitAlone(t, l.Slot(0))
		if err != nil {
			t.Fatal(err)
		}
		testenv.Closing(t, p)
		ends = append(ends, end{p, h})
		one, other := l.Slot(0), l.Slot(1)
		has := files(t, one.FDs())
		for name := range files(t, other.FDs()) {
			if has[name] {
				t.Errorf("on %s two slots have the file %s", h.Name, name)
			}
		}
		theirs = append(theirs, writable(t, other)...)
	}
	rng := newRand()
	for round := range 300 {
		for _, m := range theirs {
			for at := 8 * rng.IntN(64); at < min(len(m), 1<<16); at += 8 * (1 + rng.IntN(64)) {
				m[at] = byte(rng.Uint32())
			}
		}
		for _, l := range sets { // and has the kernel look
			s := l.Slot(1)
			_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.Pairs[0].SendFD), 0, 0, unix.MSG_DONTWAIT, 0, 0)
			_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.Pairs[0].ReceiveFD), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		}
		from, to := ends[round%2], ends[1-round%2]
		want := content(rng, from, to, udpHeaderLen+rng.IntN(9014-udpHeaderLen+1))
		putHeaders(want, from.host, to.host, portBase, len(want))
		send(from, build(rng, from, want)...)
		if got := recv(to); !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d bytes were sent, got %d bytes, not the same", round, len(want), len(got))
		}
	}
	wantNoDrops(t, ends...)
}

// writable maps all that the process of a slot can: its arena, and its rings.
func writable(t *testing.T, s xdp.Slot) (all [][]byte) {
	t.Helper()
	mapAt := func(fd int, at int64, size int) {
		b, err := unix.Mmap(fd, at, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(b) })
		all = append(all, b)
	}
	mapAt(s.ArenaFD, 0, s.Part)
	for _, ring := range []int64{unix.XDP_PGOFF_RX_RING, unix.XDP_PGOFF_TX_RING, unix.XDP_UMEM_PGOFF_FILL_RING, unix.XDP_UMEM_PGOFF_COMPLETION_RING} {
		mapAt(s.Pairs[0].ReceiveFD, ring, 256*8)
	}
	return all
}

// On a veth, which cannot steer, a queue has one slot that receives there and one that sends
// there. Its socket is all that two slots of a host have in common, and slots have no ring, no
// arena and no queue of one kind twice.
func TestQueueSet_slotsOfAVeth(t *testing.T) {
	tb := hosttest.New(t, testbed.Config{MTU: 9000, Queues: 11})
	l := openQueueSet(t, tb.Hosts[0], xdp.QueueSetConfig{Device: tb.Hosts[0].Dev, Slots: 3, Mode: bpf.Generic, Steer: bpf.Config{PortBase: portBase}})
	of := func(number int, fd func(s xdp.Slot) []int) map[string]bool { return files(t, fd(l.Slot(number))) }
	receive := func(s xdp.Slot) (fds []int) {
		for _, p := range s.Pairs {
			fds = append(fds, p.ReceiveFD)
		}
		return fds
	}
	transmit := func(s xdp.Slot) (fds []int) {
		for _, p := range s.Pairs {
			fds = append(fds, p.SendFD)
		}
		return fds
	}
	shared := 0
	for one := range 3 {
		for other := range one {
			common := 0
			for _, c := range []struct {
				what     string
				of, from func(xdp.Slot) []int
			}{{"receive", receive, receive}, {"send", transmit, transmit}, {"memory", arenaOf, arenaOf}, {"", receive, transmit}, {"", transmit, receive}} {
				theirs := of(other, c.from)
				for name := range of(one, c.of) {
					if !theirs[name] {
						continue
					}
					if common++; c.what != "" {
						t.Errorf("slots %d and %d both %s on %s", one, other, c.what, name)
					}
				}
			}
			theirs, all := of(other, allOf), 0
			for name := range of(one, allOf) {
				if theirs[name] {
					all++
				}
			}
			if all != common {
				t.Errorf("slots %d and %d have %d files in common, of which %d are sockets", one, other, all, common)
			}
			shared += all
		}
	}
	if shared == 0 {
		t.Error("no two slots have a socket in common: the test shows nothing")
	}
}

func arenaOf(s xdp.Slot) []int { return []int{s.ArenaFD} }
func allOf(s xdp.Slot) []int   { return s.FDs() }
