package shm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// sharers returns two ends that have met in both directions: the channel of the receiver and that of the sender.
func sharers(t *testing.T) (receiver, sender *Channel) {
	t.Helper()
	ends := newChannels(t, 2, ChannelsConfig{})
	for i := range ends {
		put(t, ends[i], ends[1-i], nil, nil)
		next(ends[1-i])
		ends[1-i].Release()
	}
	if ends[0].byRank[1].in.pid == 0 {
		t.Skip("process_vm_readv is not allowed here")
	}
	return ends[1].byRank[0], ends[0].byRank[1]
}

// TestChannel_share lets both ends take pieces in random order: each byte comes once, from the end that has taken it.
func TestChannel_share(t *testing.T) {
	receiver, sender := sharers(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{ShareLeast, ShareLeast + 1, 100_001, 256 << 10, 1 << 20, 3<<20 + 17} {
		for _, pushes := range []int{0, 50, 100} { // of a hundred pieces
			src, dst := make([]byte, size), make([]byte, size)
			for i := range src {
				src[i] = byte(rng.Uint32() | 1)
			}
			share := receiver.Share(7, 8, mem.AddressOf(dst), uint64(size))
			if share == 0 {
				t.Fatalf("%d bytes cannot be shared", size)
			}
			pushed, pulled := 0, 0
			for pushed+pulled < size {
				if rng.IntN(100) < pushes {
					m, ok := sender.Shared()
					if !ok || m.Request != 7 || m.Receive != 8 || m.Size != uint64(size) {
						t.Fatalf("the sender sees %+v, %v", m, ok)
					}
					n, tell := sender.Push(&m, src)
					if n == 0 || tell {
						t.Fatalf("pushed %d bytes, and the receiver is to be told: %v", n, tell)
					}
					pushed += n
					continue
				}
				p := receiver.Front(share, uint64(size))
				if p.N == 0 {
					t.Fatalf("no piece is left of %d bytes, of which %d are pushed and %d pulled", size, pushed, pulled)
				}
				copy(dst[p.Off:][:p.N], src[p.Off:])
				pulled += int(p.N)
			}
			if p := receiver.Front(share, uint64(size)); p.N != 0 {
				t.Errorf("a piece is left of %d bytes: %+v", size, p)
			}
			if how := receiver.Settle(share); how != Whole || !bytes.Equal(src, dst) {
				t.Errorf("%d bytes, %d pushed, end with %d, equal: %v", size, pushed, how, bytes.Equal(src, dst))
			}
			if m, ok := sender.Shared(); ok {
				t.Errorf("the sender sees %+v after the end", m)
			}
		}
	}
}

// TestChannel_shareEnds ends shares while the sender is pushing, or after it could not.
func TestChannel_shareEnds(t *testing.T) {
	const size = 512 << 10
	data := make([]byte, size)
	// begin opens a share to addr, and the sender takes pieces of it that are not there before landed is called.
	begin := func(t *testing.T, addr uint64, takes int) (receiver, sender *Channel, share int, m Shared, landed func() bool) {
		receiver, sender = sharers(t)
		share = receiver.Share(1, 2, addr, size)
		m, ok := sender.Shared()
		if !ok {
			t.Fatal("the sender sees no share")
		}
		for range takes {
			if m.share.take(m.word, size, shareBack).N == 0 {
				t.Fatal("no piece for the sender")
			}
		}
		return receiver, sender, share, m, func() bool {
			w := m.share.word.Add(sharePushed)
			return w&shareAwaits != 0 && !pushing(w)
		}
	}
	drain := func(c *Channel, share int) {
		for c.Front(share, size).N != 0 {
		}
	}
	t.Run("awaited", func(t *testing.T) {
		receiver, sender, share, _, landed := begin(t, mem.AddressOf(data), 2)
		drain(receiver, share)
		if how := receiver.Settle(share); how != Awaited {
			t.Fatalf("ends with %d while two pieces are missing", how)
		}
		if _, ok := sender.Shared(); ok {
			t.Error("the sender sees a message all of which is taken")
		}
		if landed() {
			t.Error("the receiver is told while a piece is missing")
		}
		if !landed() {
			t.Error("the receiver is not told")
		}
		if how := receiver.Settle(share); how != Whole {
			t.Errorf("ends with %d when all is there", how)
		}
	})
	t.Run("ended", func(t *testing.T) {
		receiver, sender, share, m, landed := begin(t, mem.AddressOf(data), 1)
		if receiver.Unshare(share) {
			t.Error("the memory is given back while a piece is pushed")
		}
		if n, _ := sender.Push(&m, data); n != 0 {
			t.Errorf("%d bytes are pushed after the end", n)
		}
		others := []int{receiver.Share(3, 4, mem.AddressOf(data), size), receiver.Share(5, 6, mem.AddressOf(data), size)}
		if others[0] == share || others[0] == 0 || others[1] != 0 {
			t.Errorf("beside share %d, which is pushed to, there are %v", share, others)
		}
		if landed() {
			t.Error("a receiver is told that does not wait")
		}
		if !receiver.Unshare(share) {
			t.Error("the memory is not given back")
		}
		if again := receiver.Share(5, 6, mem.AddressOf(data), size); again != share {
			t.Errorf("share %d is not free again: %d", share, again)
		}
		if n, _ := sender.Push(&m, data); n != 0 {
			t.Errorf("%d bytes are pushed of another message than was meant", n)
		}
	})
	t.Run("failed", func(t *testing.T) {
		receiver, sender, share, m, _ := begin(t, 8, 0)
		if n, tell := sender.Push(&m, data); n == 0 || tell {
			t.Errorf("took %d bytes, tells: %v", n, tell)
		}
		drain(receiver, share)
		if how := receiver.Settle(share); how != Failed {
			t.Errorf("ends with %d though nothing can be written there", how)
		}
		receiver.Share(1, 2, mem.AddressOf(data), size)
		if _, ok := sender.Shared(); ok {
			t.Error("the sender tries again")
		}
	})
	t.Run("gone", func(t *testing.T) {
		receiver, sender, share, _, _ := begin(t, mem.AddressOf(data), 1)
		if err := sender.channels.Close(); err != nil {
			t.Fatal(err)
		}
		for !receiver.Unshare(share) {
			receiver.channels.Next()
		}
	})
}

// What is nonsense in a share ends no process.
func FuzzChannel_share(f *testing.F) {
	f.Add(uint64(shareOpen), uint64(1<<20))
	f.Add(uint64(shareOpen|shareAwaits|3<<32|5<<16|1), uint64(1<<63))
	f.Fuzz(func(t *testing.T, w, size uint64) {
		memory := make([]byte, dataAt)
		s := (&ring{control: memory}).share(1)
		for _, from := range []uint64{shareFront, shareBack} {
			s.word.Store(w)
			if p := s.take(w, size, from); p.N > size || p.Off > size-p.N {
				t.Errorf("%v is no part of %d bytes", fmt.Sprintf("%+v", p), size)
			}
		}
	})
}
