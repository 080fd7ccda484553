package reliable

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/verbs"
)

// bulk makes a node write n times size bytes to another one.
func (ch *channel) bulk(from, to, n, size int) {
	x, y := ch.nodes[from], ch.nodes[to]
	at := len(y.memory)
	y.memory = append(y.memory, make([]byte, size)...)
	for range n {
		o := op{to: at, source: make([]byte, size), data: make([]byte, size)}
		x.script[to].ops = append(x.script[to].ops, o)
	}
}

// tenGbit makes a channel of 10 Gbit/s into each node, with datagrams of 8 KiB
// and a queue of 400 KB in front of it.
func tenGbit(t testing.TB, n int, seed uint64, loss float64) *channel {
	ch := newChannel(t, n, seed, 512, arq.Config{})
	ch.faults = faults{loss: loss, delay: 2 * mono.Microsecond, rate: 1250e6, room: 400_000}
	for _, x := range ch.nodes {
		x.chunk, x.room = 8192, 8192
	}
	return ch
}

// gigabits runs until all is done and returns what arrived in that time.
func (ch *channel) gigabits(bytes int) float64 {
	ch.finish()
	return float64(bytes) * 8 / float64(ch.ended)
}

// Goodput falls with loss, but not off a cliff: the window forgives bad luck.
func TestGoodput_loss(t *testing.T) {
	const writes, size = 40, 1 << 20
	for _, c := range []struct{ loss, least float64 }{{0, 8.8}, {0.001, 8.5}, {0.01, 7}, {0.05, 4}, {0.1, 2}, {0.2, 0.4}} {
		ch := tenGbit(t, 2, 1, c.loss)
		ch.bulk(0, 1, writes, size)
		got := ch.gigabits(writes * size)
		t.Logf("loss %4.1f %%: %.2f Gbit/s, %d of %d chunks sent again", 100*c.loss, got, ch.nodes[0].Resent, ch.nodes[0].Chunks)
		if got < c.least {
			t.Errorf("loss %.1f %%: %.2f Gbit/s, want %.2f", 100*c.loss, got, c.least)
		}
	}
}

// Many senders to one receiver share the way there. What they lose in the queue
// they lose in the beginning, when each still believes that it is alone.
func TestIncast(t *testing.T) {
	for _, senders := range []int{2, 8, 32} {
		t.Run(fmt.Sprint(senders), func(t *testing.T) {
			ch := tenGbit(t, senders+1, uint64(senders), 0)
			const size = 1 << 20
			for i := range senders {
				ch.bulk(i+1, 0, 128/senders, size)
			}
			got := ch.gigabits(128 * size)
			resent, chunks := uint64(0), uint64(0)
			for _, x := range ch.nodes {
				resent, chunks = resent+x.Resent, chunks+x.Chunks
			}
			t.Logf("%d senders: %.2f Gbit/s, %d of %d chunks sent again", senders, got, resent, chunks)
			if got < 7 || resent > 100*uint64(senders) {
				t.Errorf("%.2f Gbit/s, %d of %d chunks sent again", got, resent, chunks)
			}
		})
	}
}

// BenchmarkProtocol_small is one small message and its acknowledgement, both ends.
func BenchmarkProtocol_small(b *testing.B) {
	ch := newChannel(b, 2, 1, 64, arq.Config{})
	x, y := ch.nodes[0], ch.nodes[1]
	wr := &verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: make([]byte, 24)}
	var pk packet
	var wcs [4]verbs.WC
	move := func(from, to *node) {
		from.post(ch.now, from.peers[to.id], wr, false)
		ch.now += 2000
		from.assocs.Date(ch.now)
		for from.nextPacket(ch.now, from.peers[to.id], &pk) {
			slot := to.spares[len(to.spares)-1]
			to.spares, to.spare = to.spares[:len(to.spares)-1], to.spare-1
			m := to.slot(slot, pk.len+int(pk.n))
			copy(m, pk.hdr[:pk.len])
			if pk.req != nil {
				copy(m[pk.len:], pk.req.inline[:pk.n])
			}
			to.arrived(ch.now, to.peers[from.id], slot, len(m))
			for i := range to.done.read(wcs[:]) {
				to.free = append(to.free, int32(wcs[i].WRID))
			}
			to.giveBack()
		}
	}
	for b.Loop() {
		move(x, y)
		move(y, x)
	}
}
