package shm

import "testing"

// The lines of what was read are dirty before the sender may write there, and when nothing is left to read.
func TestChannel_dirty(t *testing.T) {
	ends := newChannels(t, 2, ChannelsConfig{Ring: ringMin})
	put(t, ends[0], ends[1], nil, nil)
	next(ends[1])
	ends[1].Release()
	in := ends[1].byRank[0].in
	for i := range 1000 {
		sent := 0
		for ; sent < 1+i%3 && ends[0].byRank[1].Put(nil, make([]byte, i*i%3000)); sent++ {
		}
		for range sent {
			if _, b := ends[1].Next(); len(b) != i*i%3000 {
				t.Fatalf("%d bytes, want %d", len(b), i*i%3000)
			}
			ends[1].Release()
			if in.told > in.dirtied || in.dirtied > in.next {
				t.Fatalf("released up to %d, dirty up to %d, read up to %d", in.told, in.dirtied, in.next)
			}
		}
		if _, b := ends[1].Next(); b != nil || in.dirtied != in.next {
			t.Fatalf("dirty up to %d, read up to %d, and %d bytes", in.dirtied, in.next, len(b))
		}
	}
}
