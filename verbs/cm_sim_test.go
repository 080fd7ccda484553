package verbs

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/mpa"
)

// simCM is a client and a server in a world of their own; each does what a
// program does, and checks what it is told.
type simCM struct {
	nodes          []*sim.Node
	client, server sim.StreamConfig
	v6             bool
	clients        int // clients; default 1
	param          ConnParam
	told           []string // what each client has heard
	served         []string // what the server has heard, one for each connection
}

// simTimeout is how long a program waits for events: longer than all time
// limits one after another.
const simTimeout = 60 * mono.Second

const simCMPort = 7174

// simFrameLen is the length of either start-up frame.
const simFrameLen = 20 + 4 + len("hello")

func (c *simCM) open(t *sim.Task, node int, s sim.StreamConfig) (*Context, *CMChannel, *PD, *CQ, error) {
	ctx, err := New(Config{Streams: c.nodes[node].Streams(s), Engine: progress.New(t, t), ZeroBased: true, Epoch: uint32(node + 1)})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	ch, err := ctx.CreateCMChannel()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	pd, err := ctx.AllocPD()
	if err != nil {
		return nil, nil, nil, nil, err
	}
	cq, err := ctx.CreateCQ(CQInit{})
	return ctx, ch, pd, cq, err
}

// await waits for an event, but not past a time.
func (ch *CMChannel) await(t *sim.Task, until mono.Time) (CMEvent, bool) {
	for t.Now() < until {
		if e, got := ch.GetEvent(); got {
			return e, true
		}
		if ch.ctx.Engine().Step() == 0 && !ch.ready() {
			t.Park(min(until, ch.ctx.Engine().NextDeadline()), 0)
		}
	}
	return CMEvent{}, false
}

func (c *simCM) address() netip.AddrPort {
	if c.v6 {
		return netip.AddrPortFrom(c.nodes[0].Addr6(), simCMPort)
	}
	return netip.AddrPortFrom(c.nodes[0].Addr(), simCMPort)
}

// connect is the program of a client: connect, disconnect when that worked.
func (c *simCM) connect(t *sim.Task, n int) error {
	ctx, ch, pd, cq, err := c.open(t, n+1, c.client)
	if err != nil {
		return err
	}
	id, err := ch.CreateID()
	if err != nil {
		return err
	}
	if err := id.ResolveAddr(c.address(), 0); err != nil {
		return err
	}
	if err := id.ResolveRoute(0); err != nil {
		return err
	}
	if err := id.CreateQP(pd, QPInit{SendCQ: cq, RecvCQ: cq}); err != nil {
		return err
	}
	p := c.param
	p.PrivateData = []byte("hello")
	if err := id.Connect(p); err != nil {
		return err
	}
	heard, last := "", CMEventType(0)
	for last != CMDisconnected && last != CMRejected && last != CMUnreachable && last != CMConnectError {
		e, got := ch.await(t, t.Now().Add(simTimeout))
		if !got {
			return fmt.Errorf("client %d has heard %q, and then nothing in state %v", n, heard, id.State())
		}
		if last = e.Type; last == CMAddrResolved || last == CMRouteResolved {
			continue
		}
		heard += e.Type.String() + "; "
		if last == CMEstablished {
			if err := id.Disconnect(); err != nil {
				return err
			}
		} else if e.Err == nil && last != CMDisconnected {
			return fmt.Errorf("%v without a reason", last)
		}
	}
	if e, got := ch.await(t, t.Now().Add(simTimeout)); got {
		return fmt.Errorf("client %d has heard %q, and then %v", n, heard, e.Type)
	}
	c.told[n] = heard
	if err := id.Destroy(); err != nil {
		return err
	}
	return ctx.Close()
}

// serve is the program of the server: accept everything.
func (c *simCM) serve(t *sim.Task) error {
	ctx, ch, pd, cq, err := c.open(t, 0, c.server)
	if err != nil {
		return err
	}
	l, err := ch.CreateID()
	if err != nil {
		return err
	}
	if err := l.BindAddr(c.address()); err != nil {
		return err
	}
	if err := l.Listen(0); err != nil {
		return err
	}
	heard := map[*CMID]string{}
	for e, got := ch.await(t, t.Now().Add(simTimeout)); got; e, got = ch.await(t, t.Now().Add(simTimeout)) {
		heard[e.ID] += e.Type.String() + "; "
		if e.Type != CMConnectRequest {
			continue
		}
		if string(e.Param.PrivateData) != "hello" {
			return fmt.Errorf("private data %q", e.Param.PrivateData)
		}
		if err := e.ID.CreateQP(pd, QPInit{SendCQ: cq, RecvCQ: cq}); err != nil {
			return err
		}
		if err := e.ID.Accept(ConnParam{PrivateData: []byte("world")}); err != nil {
			return err
		}
	}
	for id, what := range heard {
		if id.State() == IDEstablished {
			what += "half open" // nothing tells it that the peer is gone, and it has nothing to say itself
		} else if id.State() != IDGone {
			return fmt.Errorf("the server has heard %q, and is left in state %v", what, id.State())
		}
		c.served = append(c.served, what)
		if err := id.Destroy(); err != nil {
			return err
		}
	}
	if n := len(ctx.cm.ids); n != 1 {
		return fmt.Errorf("%d identifiers are left", n-1)
	}
	return ctx.Close()
}

func (c *simCM) run(t *testing.T, seed uint64) {
	t.Helper()
	c.clients = max(c.clients, 1)
	w := sim.New(sim.Config{Seed: seed})
	c.nodes = w.Nodes(1 + c.clients)
	c.told = make([]string, c.clients)
	w.Go(c.nodes[0], "server", c.serve)
	for n := range c.clients {
		w.Go(c.nodes[n+1], fmt.Sprint("client ", n), func(t *sim.Task) error { return c.connect(t, n) })
	}
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}

// whole checks that every connection came about, and ended in order.
func (c *simCM) whole(t *testing.T) {
	t.Helper()
	for n, got := range c.told {
		if got != "established; disconnected; " {
			t.Errorf("client %d has heard %q", n, got)
		}
	}
	for _, got := range c.served {
		if got != "connect request; established; disconnected; " {
			t.Errorf("the server has heard %q", got)
		}
	}
	if len(c.served) != c.clients {
		t.Errorf("%d connections, want %d", len(c.served), c.clients)
	}
}

// Start-up frames in segments of all kinds, both families, each kind of mode.
func TestCM_segmentation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	cuts := map[string]func(conn int, off int64, n int) int{
		"whole":  nil,
		"bytes":  func(int, int64, int) int { return 1 },
		"random": func(_ int, _ int64, n int) int { return 1 + rng.IntN(n) },
	}
	params := map[string]ConnParam{
		"revision 2": {}, "revision 1": {Revision: 1}, "CRC": {CRC: true}, "markers": {Markers: true},
		"RTR by Send": {RTR: mpa.RTRSend}, "RTR by Write": {RTR: mpa.RTRWrite}, "RTR by Read": {RTR: mpa.RTRRead},
	}
	for cut, segment := range cuts {
		for mode, p := range params {
			t.Run(cut+"/"+mode, func(t *testing.T) {
				c := &simCM{client: sim.StreamConfig{Segment: segment}, server: sim.StreamConfig{Segment: segment}, param: p, v6: cut == "bytes"}
				c.run(t, 1)
				c.whole(t)
			})
		}
	}
}

// The connection breaks in each way at each byte of the start-up, either way:
// each end hears one thing of it at most, and nothing is left.
func TestCM_faultAtEachByte(t *testing.T) {
	stride := int64(1)
	if Slow {
		stride = 5
	}
	for _, kind := range []sim.StreamFaultKind{sim.StreamReset, sim.StreamResetSender, sim.StreamResetReceiver, sim.StreamFIN, sim.StreamSilence} {
		t.Run(kind.String(), func(t *testing.T) {
			for at := int64(0); at <= int64(simFrameLen); at += stride {
				fault := sim.StreamConfig{Faults: []sim.StreamFault{{Offset: at, Kind: kind}}}
				for _, c := range []*simCM{{client: fault}, {server: fault}} {
					c.run(t, 2)
					last := at == int64(simFrameLen)
					switch got := c.told[0]; {
					case got == "rejected; " || got == "unreachable; ":
					case got == "established; disconnected; " && (last || len(c.client.Faults) > 0):
					default:
						t.Errorf("byte %d: the client has heard %q", at, got)
					}
					for _, got := range c.served {
						switch got {
						case "connect request; connect error; ", "connect request; established; disconnected; ":
						case "connect request; established; half open":
							if kind != sim.StreamResetSender && kind != sim.StreamSilence {
								t.Errorf("byte %d: %v leaves the server half open", at, kind)
							}
						default:
							t.Errorf("byte %d: the server has heard %q", at, got)
						}
					}
				}
			}
		})
	}
}

// What heals in time does no harm.
func TestCM_silenceThatHeals(t *testing.T) {
	for at := range int64(simFrameLen) {
		fault := sim.StreamConfig{Faults: []sim.StreamFault{{Offset: at, Kind: sim.StreamSilence, Heal: 4 * mono.Second}}}
		for _, c := range []*simCM{{client: fault}, {server: fault}} {
			c.run(t, 3)
			c.whole(t)
		}
	}
}

// Many connect at the same moment.
func TestCM_manyAtOnce(t *testing.T) {
	c := &simCM{clients: 150}
	c.run(t, 4)
	c.whole(t)
}
