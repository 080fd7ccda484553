package xdp_test

import (
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/job/testbed"
)

// turn sends a frame from one end to the other and waits for it, all in one
// thread. bufs is scratch.
func turn(from, to *end, frame []byte, bufs []fabric.Desc) {
	n := 0
	for at := 0; at < len(frame); n++ {
		chunk, _ := from.Pool().GetToSend()
		size := copy(from.Arena().At(chunk, mem.FrameSize), frame[at:])
		at += size
		bufs[n] = fabric.Desc{Addr: chunk, Len: uint32(size), Flags: fabric.More}
	}
	bufs[n-1].Flags = 0
	for from.TxFree() < n {
		from.Flush()
	}
	from.Send(bufs[:n])
	from.Flush()
	for n = to.Recv(bufs); n == 0; n = to.Recv(bufs) {
		to.Flush()
	}
	for _, d := range bufs[:n] {
		to.Pool().Put(d.Addr)
	}
	to.Flush()
}

func TestAllocs_slot(t *testing.T) {
	forEachMode(t, func(t *testing.T, mode bpf.Mode) {
		s := newSharers(t, mode, 2)
		a, b := &s.ends[0][1], &s.ends[1][0]
		frame := content(newRand(), *a, *b, 9014)
		bufs := make([]fabric.Desc, fabric.MaxBufs)
		if n := testing.AllocsPerRun(1000, func() { turn(a, b, frame, bufs) }); n != 0 {
			t.Errorf("%v allocations per frame", n)
		}
	})
}

// BenchmarkSlot is the work of both ends for one frame: on a queue of its own, on
// slots of shared queues that take turns, so that each finds what it shares as
// another has left it, and on slots with lines, that share nothing.
func BenchmarkSlot(b *testing.B) {
	var bufs [fabric.MaxBufs]fabric.Desc
	for _, size := range []int{64, 9014} {
		name := map[int]string{64: "/64", 9014: "/9014"}[size]
		b.Run("own"+name, func(b *testing.B) {
			x, y := newWire(b, drivers[0], benchConfig)
			frame := content(newRand(), x, y, size)
			b.ResetTimer()
			for range b.N {
				turn(&x, &y, frame, bufs[:])
			}
		})
		for _, slots := range []int{2, 8} {
			b.Run(map[int]string{2: "lines2", 8: "lines8"}[slots]+name, func(b *testing.B) {
				s := newSetHosts(b, bpf.Generic, testbed.Cable, [2]int{slots, slots})
				takeTurns(b, s.ends, size)
			})
		}
		for _, slots := range []int{1, 2, 8} {
			b.Run(map[int]string{1: "slot1", 2: "slots2", 8: "slots8"}[slots]+name, func(b *testing.B) {
				s := &sharers{tb: newTestbed(b, 9000)}
				for i, h := range s.tb.Hosts[:2] {
					c := queueConfig(slots, bpf.Generic)
					c.TxDepth, c.Part = 1024, 16<<20
					s.queues[i] = openQueue(b, h, c)
					for n := range slots {
						s.ends[i] = append(s.ends[i], end{sit(b, s.queues[i], n), h})
					}
				}
				takeTurns(b, s.ends, size)
			})
		}
	}
}

// takeTurns has each slot send a frame to that of the same number, in turn.
func takeTurns(b *testing.B, ends [2][]end, size int) {
	bufs := make([]fabric.Desc, fabric.MaxBufs)
	frames := make([][]byte, len(ends[0]))
	for n := range frames {
		x, y := ends[0][n], ends[1][n]
		frames[n] = content(newRand(), x, y, size)
		putHeaders(frames[n], x.host, y.host, uint16(portBase+n), size)
	}
	b.ResetTimer()
	for i := range b.N {
		n := i % len(frames)
		turn(&ends[0][n], &ends[1][n], frames[n], bufs)
	}
}
