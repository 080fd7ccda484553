package mpi_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
)

// oneGoroutine leaves a long test out under the race detector, which has nothing to see where
// all ranks take turns.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if slow {
		t.Skip("one goroutine at a time, in which the race detector has nothing to see")
	}
}

// simWorld is a simulated network on which MPI ranks run, each on a node of
// its own.
type simWorld struct {
	*sim.World
	nodes  []*sim.Node
	hops   inet.Fixed
	mpi    mpi.Config
	dgram  dgram.Config
	tcp    sim.StreamConfig // with a transport that connects
	opened []fabric.Streams // of all ranks
	deaf   bool             // there are streams with every transport, and nobody can listen for them
	hosted
	stray uint64 // see strayPort
}

// hosted says on which hosts ranks are together with others, and with ghosts: nil, on none. Each
// process still has a node of its own, so that all messages cross the network.
type hosted struct {
	hosts  []int                    // of each node
	ghosts int                      // how many of the last nodes have ghosts
	left   int                      // ranks that have ended
	over   chan struct{}            // closed when all have
	costs  func(work) mono.Duration // of a message to a ghost; nil: nothing
}

// work is what a message to a ghost asks for.
type work struct {
	ghost, client     int // their numbers among those of the host
	operations, bytes int
}

// member is what a process of such a job knows of it.
type member struct {
	*simRank
	*hosted
}

type simRank = sim.Rank

func (m member) Size() int             { return m.simRank.Size() - m.ghosts }
func (m member) Ghosts() int           { return m.ghosts }
func (m member) Lost() <-chan struct{} { return m.over }

func (m member) Host() (host, local int) {
	host = m.hosts[m.simRank.Rank()]
	for _, h := range m.hosts[:m.simRank.Rank()] {
		if h == host {
			local++
		}
	}
	return host, local
}

const simPort = 18700

// newHostedWorld is newSimWorld of n ranks on so many hosts, with ghosts on each.
func newHostedWorld(c sim.Config, n, hosts, ghosts int) *simWorld {
	w := newSimWorld(c, n+hosts*ghosts)
	w.ghosts, w.over = hosts*ghosts, make(chan struct{})
	for i := range w.nodes {
		w.hosts = append(w.hosts, i%hosts)
	}
	return w
}

func newSimWorld(c sim.Config, n int) *simWorld {
	w := &simWorld{World: sim.New(c), hops: inet.Fixed{}}
	if name := os.Getenv(mpi.EnvTransport); name != "" { // every test here is to pass over each
		var err error
		if w.mpi.Transport, err = mpi.ParseTransport(name); err != nil {
			panic(err)
		}
	}
	if name := os.Getenv(mpi.EnvRendezvous); name != "" { // and both ways for large messages
		var err error
		if w.mpi.Rendezvous, err = mpi.ParseRendezvous(name); err != nil {
			panic(err)
		}
	}
	w.nodes = w.Nodes(n)
	for _, node := range w.nodes {
		w.hops[node.Addr()] = inet.Hop{MAC: node.MAC(), Source: node.Addr(), MTU: cmp.Or(c.MTU, 9000)}
	}
	return w
}

// fallApart has some node cut off from the others, so many times within most, and for up to as
// long.
func (w *simWorld) fallApart(rnd *rand.Rand, times int, most mono.Duration) {
	for range times {
		at := mono.Time(rnd.IntN(int(most)))
		node := w.nodes[rnd.IntN(len(w.nodes))]
		until := at.Add(mono.Duration(rnd.IntN(int(most))))
		w.At(at, func() { w.Partition(until, node) })
	}
}

// open opens a verbs context for a rank.
func (w *simWorld) open(t *sim.Task, r *sim.Rank) (*verbs.Context, error) {
	return w.openWith(t, r, t, t)
}

// strayPort is a port of which so many frames stray to where it has no socket.
type strayPort struct {
	fabric.Port
	stray uint64
}

func (p strayPort) Stats() fabric.PortStats {
	s := p.Port.Stats()
	s.RxStray += p.stray
	return s
}

// deafStreams are streams that nobody can listen for.
type deafStreams struct{ fabric.Streams }

var errDeaf = errors.New("no port is free")

func (deafStreams) Listen(netip.AddrPort, int) (fabric.Listener, error) { return nil, errDeaf }

func (w *simWorld) openWith(t *sim.Task, r *sim.Rank, clock mono.Clock, parker progress.Parker) (*verbs.Context, error) {
	node := t.Node()
	c := verbs.Config{
		ZeroBased: true, Engine: progress.New(clock, parker), Key: r.Key(), Epoch: uint32(1000 + r.Rank()), Dgram: w.dgram,
	}
	if w.mpi.Transport == mpi.RC || w.mpi.Transport == mpi.Hybrid || w.deaf {
		if c.Streams = node.Streams(w.tcp); w.deaf {
			c.Streams = deafStreams{c.Streams}
		}
		w.opened = append(w.opened, c.Streams)
	}
	if w.mpi.Transport == mpi.RC {
		return verbs.New(c)
	}
	port, err := node.Open(nil)
	if err != nil {
		return nil, err
	}
	c.Datagram, err = inet.New(inet.Config{
		Port: strayPort{w.costly(t, port), w.stray}, Resolver: w.hops, MAC: node.MAC(),
		Local: netip.AddrPortFrom(node.Addr(), simPort),
	})
	if err != nil {
		return nil, err
	}
	return verbs.New(c)
}

// costly returns a port whose frames take time, if they are to.
func (w *simWorld) costly(t *sim.Task, port fabric.Port) fabric.Port {
	if w.costs == nil {
		return port
	}
	return costlyPort{port, t}
}

// job is what a rank knows of its job.
func (w *simWorld) job(r *sim.Rank) mpi.Job {
	if w.hosts == nil {
		return r
	}
	return member{r, &w.hosted}
}

// launch starts the ranks. The body is followed by Finalize, whose error counts.
func (w *simWorld) launch(body func(*sim.Task, *mpi.Proc) error) {
	w.Launch(w.nodes, func(t *sim.Task, r *sim.Rank) error {
		ctx, err := w.open(t, r)
		if err != nil {
			return err
		}
		job := w.job(r)
		p, err := mpi.New(job, ctx, w.mpi)
		if err != nil {
			return err
		}
		switch {
		case r.Rank() >= job.Size() && w.costs != nil:
			number := (r.Rank() - job.Size()) / (1 + slices.Max(w.hosts)) // they are dealt to hosts in turn
			return mpi.ServeAsCostlyGhost(p, func(client, operations, bytes int) {
				t.Sleep(w.costs(work{number, client - 1, operations, bytes}))
			})
		case r.Rank() >= job.Size():
			return mpi.ServeAsGhost(p)
		}
		if err := body(t, p); err != nil {
			return err
		}
		return w.leave(t, p)
	})
}

// leave is the end of a rank. That of the last one is the end of the ghosts.
func (w *simWorld) leave(t *sim.Task, p *mpi.Proc) error {
	t.Doing("Finalize")
	err := p.Finalize()
	w.ended()
	return err
}

// ended counts a rank that has ended in whatever way.
func (w *simWorld) ended() {
	if w.left++; w.hosts != nil && w.left == len(w.nodes)-w.ghosts {
		close(w.over)
	}
}

// simulate runs body on n ranks and fails the test when it returns an error.
func simulate(t *testing.T, c sim.Config, n int, body func(*mpi.Proc) error) {
	t.Helper()
	w := newSimWorld(c, n)
	w.launch(func(_ *sim.Task, p *mpi.Proc) error { return body(p) })
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// wantClass fails unless err has the class.
func wantClass(err error, class mpi.ErrorClass) error {
	if got := mpi.ClassOf(err); got != class {
		return fmt.Errorf("got error %v of class %d, want class %d (%v)", err, got, class, class)
	}
	return nil
}

func wantStatus(st mpi.Status, err error, source, tag, bytes int) error {
	if err != nil {
		return err
	}
	if st.Source != source || st.Tag != tag || st.Bytes() != bytes {
		return fmt.Errorf("status is %+v, want source %d, tag %d, %d bytes", st, source, tag, bytes)
	}
	return nil
}

// pattern fills b with bytes that depend on the seed.
func pattern(b []byte, seed int) {
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
}

var errData = errors.New("data are not what was sent")

// checkPattern reports whether b is what pattern made.
func checkPattern(b []byte, seed int) error {
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		if b[i] != byte(x>>24) {
			return fmt.Errorf("%w: byte %d of %d is %d, want %d", errData, i, len(b), b[i], byte(x>>24))
		}
	}
	return nil
}
