package shm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// sharers returns two ends that have met in both directions: the channel of the receiver and that of the sender.
func jointEnds(t *testing.T) (receiver, sender *Channel) {
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
func TestChannel_joint(t *testing.T) {
	receiver, sender := jointEnds(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{JointLeast, JointLeast + 1, 700_001, 1 << 20, 3<<20 + 17, 9 << 20} {
		for _, pushes := range []int{0, 50, 100} { // of a hundred pieces
			src, dst := make([]byte, size), make([]byte, size)
			for i := range src {
				src[i] = byte(rng.Uint32() | 1)
			}
			joint := receiver.Join(7, 8, mem.AddressOf(dst), uint64(size))
			if joint == 0 {
				t.Fatalf("%d bytes cannot be shared", size)
			}
			pushed, pulled := 0, 0
			for pushed+pulled < size {
				if rng.IntN(100) < pushes {
					m, ok := sender.Joint()
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
				p := receiver.Front(joint, uint64(size))
				if p.N == 0 {
					t.Fatalf("no piece is left of %d bytes, of which %d are pushed and %d pulled", size, pushed, pulled)
				}
				copy(dst[p.Off:][:p.N], src[p.Off:])
				pulled += int(p.N)
			}
			if p := receiver.Front(joint, uint64(size)); p.N != 0 {
				t.Errorf("a piece is left of %d bytes: %+v", size, p)
			}
			if how := receiver.Settle(joint); how != Whole || !bytes.Equal(src, dst) {
				t.Errorf("%d bytes, %d pushed, end with %d, equal: %v", size, pushed, how, bytes.Equal(src, dst))
			}
			if m, ok := sender.Joint(); ok {
				t.Errorf("the sender sees %+v after the end", m)
			}
		}
	}
}

// TestChannel_jointEnds ends joint copies while the sender is pushing, or after it could not.
func TestChannel_jointEnds(t *testing.T) {
	const size = 1 << 20
	data := make([]byte, size)
	// begin begins a joint copy to addr, and the sender takes pieces of it that are not there before landed is called.
	begin := func(t *testing.T, addr uint64, takes int) (receiver, sender *Channel, joint int, m Joint, landed func() bool) {
		receiver, sender = jointEnds(t)
		joint = receiver.Join(1, 2, addr, size)
		m, ok := sender.Joint()
		if !ok {
			t.Fatal("the sender sees no joint copy")
		}
		for range takes {
			if m.joint.take(m.word, size, jointBack).N == 0 {
				t.Fatal("no piece for the sender")
			}
		}
		return receiver, sender, joint, m, func() bool {
			w := m.joint.word.Add(jointPushed)
			return w&jointAwaits != 0 && !pushing(w)
		}
	}
	drain := func(c *Channel, joint int) {
		for c.Front(joint, size).N != 0 {
		}
	}
	t.Run("awaited", func(t *testing.T) {
		receiver, sender, joint, _, landed := begin(t, mem.AddressOf(data), 2)
		drain(receiver, joint)
		if how := receiver.Settle(joint); how != Awaited {
			t.Fatalf("ends with %d while two pieces are missing", how)
		}
		if _, ok := sender.Joint(); ok {
			t.Error("the sender sees a message all of which is taken")
		}
		if landed() {
			t.Error("the receiver is told while a piece is missing")
		}
		if !landed() {
			t.Error("the receiver is not told")
		}
		if how := receiver.Settle(joint); how != Whole {
			t.Errorf("ends with %d when all is there", how)
		}
	})
	t.Run("ended", func(t *testing.T) {
		receiver, sender, joint, m, landed := begin(t, mem.AddressOf(data), 1)
		if receiver.Leave(joint) {
			t.Error("the memory is given back while a piece is pushed")
		}
		if n, _ := sender.Push(&m, data); n != 0 {
			t.Errorf("%d bytes are pushed after the end", n)
		}
		others := []int{receiver.Join(3, 4, mem.AddressOf(data), size), receiver.Join(5, 6, mem.AddressOf(data), size)}
		if others[0] == joint || others[0] == 0 || others[1] != 0 {
			t.Errorf("beside joint copy %d, which is pushed to, there are %v", joint, others)
		}
		if landed() {
			t.Error("a receiver is told that does not wait")
		}
		if !receiver.Leave(joint) {
			t.Error("the memory is not given back")
		}
		if again := receiver.Join(5, 6, mem.AddressOf(data), size); again != joint {
			t.Errorf("joint copy %d is not free again: %d", joint, again)
		}
		if n, _ := sender.Push(&m, data); n != 0 {
			t.Errorf("%d bytes are pushed of another message than was meant", n)
		}
	})
	t.Run("failed", func(t *testing.T) {
		receiver, sender, joint, m, _ := begin(t, 8, 0)
		if n, tell := sender.Push(&m, data); n == 0 || tell {
			t.Errorf("took %d bytes, tells: %v", n, tell)
		}
		drain(receiver, joint)
		if how := receiver.Settle(joint); how != Failed {
			t.Errorf("ends with %d though nothing can be written there", how)
		}
		receiver.Join(1, 2, mem.AddressOf(data), size)
		if _, ok := sender.Joint(); ok {
			t.Error("the sender tries again")
		}
	})
	t.Run("gone", func(t *testing.T) {
		receiver, sender, joint, _, _ := begin(t, mem.AddressOf(data), 1)
		if err := sender.channels.Close(); err != nil {
			t.Fatal(err)
		}
		for !receiver.Leave(joint) {
			receiver.channels.Next()
		}
	})
}

// What is nonsense in the control memory of a joint copy names no byte outside of the message.
func FuzzChannel_joint(f *testing.F) {
	f.Add(uint64(jointOpen), uint64(1<<20))
	f.Add(uint64(jointOpen|jointAwaits|3<<32|5<<16|1), uint64(1<<63))
	f.Fuzz(func(t *testing.T, w, size uint64) {
		memory := make([]byte, dataAt)
		s := (&ring{control: memory}).joint(1)
		for _, from := range []uint64{jointFront, jointBack} {
			s.word.Store(w)
			if p := s.take(w, size, from); p.N > size || p.Off > size-p.N {
				t.Errorf("%+v is no part of %d bytes", p, size)
			}
		}
	})
}
