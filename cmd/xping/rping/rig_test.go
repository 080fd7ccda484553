package rping

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/verbs"
)

// rig is a world with a server on the first node.
type rig struct {
	*testing.T
	world  *sim.World
	nodes  []*sim.Node
	server *Server // while it runs
	faults []sim.StreamFault
	ipv6   bool
}

func newRig(t *testing.T, nodes int) *rig {
	w := sim.New(sim.Config{Seed: 1})
	return &rig{T: t, world: w, nodes: w.Nodes(nodes)}
}

func (r *rig) open(t *sim.Task) (*verbs.Context, error) {
	return verbs.New(verbs.Config{
		Streams: t.Node().Streams(sim.StreamConfig{Faults: r.faults}), Engine: progress.New(t, t),
		Epoch: uint32(t.Node().Addr().As4()[3]), ZeroBased: true,
	})
}

func (r *rig) addr() netip.AddrPort {
	if r.ipv6 {
		return netip.AddrPortFrom(r.nodes[0].Addr6(), Port)
	}
	return netip.AddrPortFrom(r.nodes[0].Addr(), Port)
}

// serve adds the server. judge gets what Run returns.
func (r *rig) serve(c Config, judge func(error) error) {
	r.world.Go(r.nodes[0], "server", func(t *sim.Task) error {
		ctx, err := r.open(t)
		if err != nil {
			return err
		}
		s, err := NewServer(ctx, netip.AddrPortFrom(r.addr().Addr(), Port), c)
		if err != nil {
			return err
		}
		if s.Addr() != r.addr() {
			return fmt.Errorf("listens at %v, not at %v", s.Addr(), r.addr())
		}
		r.server = s
		if err := judge(s.Run()); err != nil {
			return fmt.Errorf("server: %w", err)
		}
		r.server = nil
		return ctx.Close()
	})
}

// client adds a client on node i. judge gets what Run returns.
func (r *rig) client(i int, c Config, judge func(Result, error) error) {
	r.use(i, func(ctx *verbs.Context) error {
		cl, err := NewClient(ctx, r.addr(), netip.AddrPort{}, c)
		if err != nil {
			return err
		}
		return judge(cl.Run())
	})
}

// use adds a task on node i that has a context.
func (r *rig) use(i int, do func(*verbs.Context) error) {
	r.world.Go(r.nodes[i], fmt.Sprintf("client %d", i), func(t *sim.Task) error {
		ctx, err := r.open(t)
		if err != nil {
			return err
		}
		if err := do(ctx); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		return ctx.Close()
	})
}

func (r *rig) run() {
	r.Helper()
	if err := r.world.Run(); err != nil {
		r.Fatal(err)
	}
}

// same passes an error on: no error is wanted.
func same(err error) error { return err }

// pings wants n pings and no error.
func pings(n int) func(Result, error) error {
	return func(r Result, err error) error {
		if err == nil && r.Pings != n {
			err = fmt.Errorf("%d pings, not %d", r.Pings, n)
		}
		return err
	}
}
