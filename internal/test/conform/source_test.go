package conform

import (
	"io"
	"testing"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/job/testbed"
	"github.com/xwarp/xwarp/internal/test/hosttest"
	"github.com/xwarp/xwarp/verbs"
)

// Hosts on a bridge, whose ports have queues that the kernel chooses by a hash of addresses and
// ports, as network cards do: what one slot sends to another arrives on the queue of that slot
// in the end.
func TestVerbs_sourcePorts(t *testing.T) {
	const slot = 1
	tb := hosttest.New(t, testbed.Config{Hosts: 3, Switch: testbed.Bridge, MTU: 1500, Queues: 4})
	var ends []*inet.Datagram
	for _, h := range tb.Hosts {
		ends = append(ends, sit(t, h, openQueue(t, h, 2, bpf.Generic), slot))
	}
	c := &VerbsConfig{Net: func(*testing.T, int) Net {
		return Net{Step: yield, Open: func(i int) (fabric.Datagram, []io.Closer, error) { return ends[i], nil, nil }}
	}}
	r := newRig(t, c, &verbsCase{}, verbs.RD)
	r.meetAll()
	for i, a := range r.hosts {
		for _, b := range r.hosts[:i] {
			home := func() bool { // all that arrives in 20 exchanges does so on their queues
				before := [2]fabric.DatagramStats{ends[a.i].Stats(), ends[b.i].Stats()}
				for range 20 {
					r.exchange(a, b)
				}
				for n, end := range []*inet.Datagram{ends[a.i], ends[b.i]} {
					all, there := uint64(0), uint64(0)
					for queue, frames := range end.Stats().RxQueues {
						came := frames - before[n].RxQueues[queue]
						if all += came; queue == slot {
							there = came
						}
					}
					if all != there {
						return false
					}
				}
				return true
			}
			for n := 0; !home(); n++ {
				if n == 50 {
					t.Fatalf("hosts %d and %d: %v and %v", a.i, b.i, ends[a.i].Stats().RxQueues, ends[b.i].Stats().RxQueues)
				}
			}
			t.Logf("hosts %d and %d: %v and %v", a.i, b.i, ends[a.i].Stats().RxQueues, ends[b.i].Stats().RxQueues)
		}
	}
}
