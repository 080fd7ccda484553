package conform

import (
	"io"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/fabric"
	"github.com/xwarp/xwarp/internal/ktcp"
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/sim"
	"github.com/xwarp/xwarp/verbs"
)

// onlyRC runs the suite over streams.
func onlyRC(t *testing.T, net func(t *testing.T, hosts int) Net, p verbs.ConnParam) {
	Verbs(t, VerbsConfig{Net: net, Types: []verbs.QPType{verbs.RC}, Connect: p})
}

// simStreams is a network of streams in virtual time. A case is a task in it,
// on the first node.
func simStreams(t *testing.T, hosts int, c sim.StreamConfig) Net {
	w := sim.New(sim.Config{Seed: 1, Limit: mono.Duration(mono.Never), ArenaSize: 8 << 20})
	nodes := w.Nodes(hosts)
	var task *sim.Task
	return Net{
		Clock: w, Virtual: true,
		Streams: func(i int) (fabric.Streams, netip.Addr, []io.Closer, error) {
			return nodes[i].Streams(c), netip.Addr{}, nil, nil
		},
		Run: func(run func()) {
			w.Go(nodes[0], t.Name(), func(k *sim.Task) error {
				task = k
				run()
				return nil
			})
			if err := w.Run(); err != nil {
				t.Fatal(err)
			}
		},
		Step: func(idle int) { task.Sleep(mono.Microsecond * mono.Duration(min(1+idle/32, 50))) },
	}
}

func TestVerbsRC_sim(t *testing.T) {
	onlyRC(t, func(t *testing.T, hosts int) Net { return simStreams(t, hosts, sim.StreamConfig{}) }, verbs.ConnParam{})
}

func TestVerbsRC_ktcpLoopback(t *testing.T) {
	arenas := newArenas(t)
	onlyRC(t, func(t *testing.T, hosts int) Net {
		return Net{Step: yield, Streams: func(i int) (fabric.Streams, netip.Addr, []io.Closer, error) {
			s, err := ktcp.Open(ktcp.Config{Local: netip.MustParseAddr("127.0.0.1"), Arena: arenas[i]})
			return s, netip.Addr{}, nil, err
		}}
	}, verbs.ConnParam{})
}
