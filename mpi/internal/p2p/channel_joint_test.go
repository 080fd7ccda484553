package p2p

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// pushedLen is several steps of a receiver, and ends inside a piece.
const pushedLen = 5<<20 + 3

// newJoint is newCrew of two that have spoken in both directions.
func newJoint(t *testing.T) *crew {
	w := newCrew(t, 2, near)
	w.talk(0, 1, 1)
	w.talk(1, 0, 1)
	if !w.eps[0].peers[1].channel.Pulls() {
		t.Skip("process_vm_readv is not allowed here")
	}
	return w
}

// secret returns memory that no other process can write to, and this one only as its own.
func secret(t *testing.T, n int) []byte {
	fd, err := unix.MemfdSecret(unix.O_CLOEXEC)
	if err != nil {
		t.Skip("memfd_secret: ", err)
	}
	defer unix.Close(fd)
	must(t, unix.Ftruncate(fd, int64(n)))
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Skip("mmap of memfd_secret: ", err)
	}
	t.Cleanup(func() { must(t, unix.Munmap(b)) })
	return b
}

// TestChannel_joint lets senders that wait push a part of what they send. No byte is wrong, and none behind the room is
// written, also where pieces cannot be pushed.
func TestChannel_joint(t *testing.T) {
	for name, c := range map[string]struct {
		room   int
		secret bool
		both   bool // ways at once
		pushed bool
	}{
		"whole":     {room: pushedLen, pushed: true},
		"truncated": {room: 2<<20 + 100, pushed: true},
		"secret":    {room: pushedLen, secret: true, pushed: true},
		"exchanged": {room: pushedLen, both: true},
		"short":     {room: 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newJoint(t)
			src := make([]byte, pushedLen)
			for i := range src {
				src[i] = byte(1 + i%251)
			}
			for range 3 {
				var requests [2][]*Request
				var got [][]byte
				for to := 1; to >= 0 && (to == 1 || c.both); to-- {
					b := make([]byte, pushedLen)
					if c.secret {
						b = secret(t, pushedLen)
					}
					got = append(got, b)
					requests[1-to] = append(requests[1-to], w.eps[1-to].Isend(word(1-to, to), to, src))
					requests[to] = append(requests[to], w.eps[to].Irecv(word(1-to, to), b[:c.room]))
				}
				for rank, list := range requests {
					for _, r := range list {
						w.until(func() bool {
							for _, r := range slices.Concat(requests[0], requests[1]) {
								if c.both && r.grant.joint != 0 {
									t.Fatal("both ends send, and one is to push")
								}
							}
							return r.Done()
						})
						_, err := w.eps[rank].requests.take(r)
						if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Code != Truncated || c.room == pushedLen) {
							t.Fatal(err)
						}
					}
				}
				for _, b := range got {
					if !bytes.Equal(b[:c.room], src[:c.room]) || !bytes.Equal(b[c.room:], make([]byte, pushedLen-c.room)) {
						t.Fatal("wrong bytes")
					}
				}
			}
			for rank, ep := range w.eps {
				if n := ep.Stats.Pushed; (n > 0) != (c.pushed && rank == 0) || c.secret && n > 1 {
					t.Errorf("rank %d has pushed %d pieces", rank, n)
				}
				if len(ep.pulls.offered) > 0 || ep.Stats.Stale > 0 {
					t.Errorf("rank %d: %d offers are left, %d stale", rank, len(ep.pulls.offered), ep.Stats.Stale)
				}
			}
			w.drain()
		})
	}
}

// TestChannel_jointGivenUp ends a send that is pushed in part already, and a receive.
func TestChannel_jointGivenUp(t *testing.T) {
	for _, side := range []int{0, 1} {
		w := newJoint(t)
		send := w.eps[0].Isend(word(0, 1), 1, make([]byte, pushedLen))
		recv := w.eps[1].Irecv(word(0, 1), make([]byte, pushedLen))
		w.until(func() bool { return w.eps[0].Stats.Pushed > 0 })
		if recv.grant.joint == 0 || recv.Done() {
			t.Fatalf("the receive has joint %d, done: %v", recv.grant.joint, recv.Done())
		}
		[]*Request{send, recv}[side].fail(gaveUp(0))
		w.until(func() bool { return recv.Done() })
		if recv.err == nil || recv.grant.joint != 0 {
			t.Errorf("the receive ends with %v, joint %d", recv.err, recv.grant.joint)
		}
		if n := w.eps[0].pulls.push(); n != 0 {
			t.Errorf("%d pieces are pushed after the end", n)
		}
	}
}

// TestChannel_jointNonsense pushes nothing for a receiver that asks for what is not sent to it, or for more than there is.
func TestChannel_jointNonsense(t *testing.T) {
	w := newJoint(t)
	a, b := w.eps[0], w.eps[1]
	send := a.Isend(word(0, 1), 1, make([]byte, pushedLen))
	w.until(func() bool { return b.match.unexpected.Len() > 0 })
	room := make([]byte, 2*pushedLen)
	for name, c := range map[string]struct {
		request uint32
		size    uint64
		want    int
	}{
		"another request": {send.wireID() + 1, pushedLen, 0},
		"too much":        {send.wireID(), pushedLen + 1, 0},
		"what is sent":    {send.wireID(), pushedLen, 1},
	} {
		way := b.peers[0].near
		joint := way.Join(c.request, 1, mem.AddressOf(room), c.size)
		if got := a.pulls.push(); joint == 0 || got != c.want {
			t.Errorf("%s: joint copy %d, %d pieces pushed", name, joint, got)
		}
		way.Leave(joint)
	}
	runtime.KeepAlive(room)
}
