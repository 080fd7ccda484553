package check

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/verbs"
)

// Witness is told what happens. The [Model] is one; tests put liars in front of it.
type Witness interface {
	Posted(o *Op)
	Withdrawn(o *Op)
	Completed(l *Life, wc *verbs.WC, data []byte)
	Receiving(l *Life, id uint64)
	Received(l *Life, wc *verbs.WC, from int, data []byte)
	ReceivedUD(l *Life, wc *verbs.WC, from int, qpn uint32, data []byte)
	Recorded(l *Life, wc *verbs.WC, from int, r *Region, mem []byte)
	Looked(r *Region, mem []byte)
}

var _ Witness = (*Model)(nil)

// Options of a run. The zero value runs quietly.
type Options struct {
	Log io.Writer // every event, for people; default none
	// Through returns what is told what happens in place of the model, which
	// it passes things on to. Default: the model itself.
	Through func(*Model) Witness
}

// Result is what a run did.
type Result struct {
	Scenario  Scenario
	Requests  int       // posted
	Failed    int       // of these: did not succeed, or nobody knows
	Delivered int       // messages
	Virtual   mono.Time // how long it took, in the simulated world
	Hash      uint64    // sim.World.TraceHash
	Coverage  Coverage
}

// Run plays the scenario of one seed. The error says what went wrong.
func Run(seed uint64, opt Options) (Result, error) { return Play(NewScenario(seed), opt) }

// Play plays a scenario.
func Play(s Scenario, opt Options) (Result, error) {
	s.Sim.Log = opt.Log
	w := &world{Scenario: s, sim: sim.New(s.Sim), hops: inet.Fixed{}, log: opt.Log, nonces: map[nonce]bool{}}
	w.model = NewModel(s.Rules(), func() mono.Time { return w.clock })
	w.see = w.model
	if opt.Through != nil {
		w.see = opt.Through(w.model)
	}
	for i, node := range w.sim.Nodes(s.Hosts) {
		w.hops[node.Addr()] = inet.Hop{MAC: node.MAC(), Source: node.Addr(), MTU: s.Sim.MTU}
		h := &host{w: w, id: i, node: node}
		for _, r := range s.Restarts {
			if r.Host == i {
				h.restarts = append(h.restarts, r)
			}
		}
		w.hosts = append(w.hosts, h)
		h.task = w.sim.Go(node, fmt.Sprint("host ", i), h.run)
	}
	for _, p := range s.Partitions {
		w.healed = max(w.healed, p.At.Add(p.For))
		nodes := make([]*sim.Node, len(p.Hosts))
		for i, h := range p.Hosts {
			nodes[i] = w.hosts[h].node
		}
		w.sim.At(p.At, func() { w.sim.Partition(p.At.Add(p.For), nodes...) })
	}
	err := w.sim.Run()
	if err == nil {
		w.model.Finish()
		err = w.model.Err()
	}
	if halt := (*sim.HaltError)(nil); errors.As(err, &halt) {
		err = fmt.Errorf("hang: %w%s", err, w.state())
	}
	res := Result{Scenario: s, Virtual: w.sim.Now(), Hash: w.sim.TraceHash()}
	res.Requests, res.Failed, res.Delivered = w.model.counts()
	res.Coverage = w.model.cover()
	return res, err
}

// world is a run.
type world struct {
	Scenario
	sim    *sim.World
	hops   inet.Fixed
	hosts  []*host
	model  *Model
	see    Witness
	log    io.Writer
	clock  mono.Time // the latest that any host has read
	healed mono.Time // end of the last partition
	steps  int       // of all engines
	ops    uint64    // requests numbered so far
	idle   int       // hosts in their last life that have posted all they had to
	done   int       // hosts that have taken leave of all others
	nonces map[nonce]bool
}

const port = 18700

// group is what the unreliable queue pairs of all hosts are attached to.
var group = netip.AddrFrom4([4]byte{239, 1, 2, 3}) // read-only

func (w *world) addr(i int) netip.AddrPort { return netip.AddrPortFrom(w.hosts[i].node.Addr(), port) }

// hostOf returns the host that has an address, or -1.
func (w *world) hostOf(a netip.AddrPort) int {
	for i := range w.hosts {
		if w.addr(i) == a {
			return i
		}
	}
	return -1
}

// wakeAll ends the wait of every host: the state of the run has changed.
func (w *world) wakeAll() {
	for _, h := range w.hosts {
		h.task.Wake()
	}
}

func (w *world) note(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%12d   %s\n", int64(w.clock), fmt.Sprintf(format, args...))
	}
}

// state says, for people, what every host waits for.
func (w *world) state() (s string) {
	for _, h := range w.hosts {
		s += fmt.Sprintf("\n\thost %d: %d of %d requests posted", h.id, h.posted, w.Ops)
		for to, l := range h.links {
			if l == nil {
				continue
			}
			for _, o := range l.stream.ops {
				if !o.done {
					s += fmt.Sprintf("; to host %d: %v is the first of %d not done", to, o, len(l.stream.ops)-o.pos)
					break
				}
			}
		}
	}
	return s
}

func (m *Model) counts() (requests, failed, delivered int) {
	for _, o := range m.ops {
		if !o.ok {
			failed++
		}
		for _, n := range o.copies {
			delivered += n
		}
	}
	for _, streams := range m.streams {
		for _, s := range streams {
			delivered += s.heard
		}
	}
	return len(m.ops), failed, delivered
}
