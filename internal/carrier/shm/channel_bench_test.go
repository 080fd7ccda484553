package shm

import (
	"fmt"
	"testing"
)

// BenchmarkChannels_idle is a look at the channels of so many neighbours when nothing
// has come.
func BenchmarkChannels_idle(b *testing.B) {
	for _, n := range []int{1, 3, 15, 63} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ends := newChannels(b, n+1, ChannelsConfig{})
			for _, from := range ends[1:] {
				put(b, from, ends[0], nil, nil)
				next(ends[0])
				ends[0].Release()
			}
			for b.Loop() {
				ends[0].Next()
			}
		})
	}
}

// BenchmarkChannels_turns is a message from one neighbour after the other, put and
// read by one thread. From 9 on each one is on the bitmap first.
func BenchmarkChannels_turns(b *testing.B) {
	for _, n := range []int{1, 8, 9, 63} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ends := newChannels(b, n+1, ChannelsConfig{})
			for _, from := range ends[1:] {
				put(b, from, ends[0], nil, nil)
				next(ends[0])
				ends[0].Release()
			}
			data := make([]byte, 24)
			i := 0
			for b.Loop() {
				i++
				ends[1+i%n].byRank[0].Put(data, nil)
				for {
					if _, m := ends[0].Next(); m != nil {
						break
					}
				}
				ends[0].Release()
			}
		})
	}
}
