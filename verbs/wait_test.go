package verbs

import (
	"fmt"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
)

// Waits of all kinds end when their time is over, but for what a step takes, and with
// what they wait for before.
func TestWait_simulator(t *testing.T) {
	const steps = 2 * mono.Microsecond
	w := sim.New(sim.Config{Seed: 1})
	nodes := w.Nodes(2)
	c := &simCM{nodes: nodes}
	w.Go(nodes[0], "server", func(task *sim.Task) error {
		ctx, ch, pd, _, err := c.open(task, 0, sim.StreamConfig{})
		if err != nil {
			return err
		}
		comp, err := ctx.CreateCompChannel()
		if err != nil {
			return err
		}
		cq, err := ctx.CreateCQ(CQInit{Channel: comp})
		if err != nil {
			return err
		}
		var wcs [4]WC
		waits := map[string]func(mono.Duration) bool{
			"CQ":          func(d mono.Duration) bool { return cq.Wait(wcs[:], d) > 0 },
			"CompChannel": func(d mono.Duration) bool { _, got := comp.WaitFor(d); return got },
			"CMChannel":   func(d mono.Duration) bool { _, got := ch.WaitFor(d); return got },
		}
		for what, wait := range waits {
			for _, d := range []mono.Duration{0, 1, 5 * mono.Millisecond, 100 * mono.Second} {
				begin := task.Now()
				if got, took := wait(d), task.Now().Sub(begin); got || took < d || took > d+steps {
					return fmt.Errorf("%s: a wait of %v took %v", what, d, took)
				}
			}
		}
		if ctx.Engine().NextDeadline() != mono.Never {
			return fmt.Errorf("the engine still has to step at %v", ctx.Engine().NextDeadline())
		}
		// Nothing to put completions in is no reason to wait.
		if cq.Wait(nil, -1) != 0 {
			return fmt.Errorf("completions without room")
		}

		// With something to wait for. It comes from outside while the engine is parked.
		l, err := ch.CreateID()
		if err != nil {
			return err
		}
		if err := l.BindAddr(c.address()); err != nil {
			return err
		}
		if err := l.Listen(1); err != nil {
			return err
		}
		w.Go(nodes[1], "client", func(task *sim.Task) error {
			ctx, ch, pd, cq, err := c.open(task, 1, sim.StreamConfig{})
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
			if err := id.Connect(ConnParam{}); err != nil {
				return err
			}
			for e, _ := ch.WaitFor(-1); e.Type != CMEstablished; e, _ = ch.WaitFor(-1) {
			}
			if err := id.QP.PostSend(&SendWR{Opcode: OpSend}); err != nil {
				return err
			}
			if e, got := ch.WaitFor(mono.Second); !got || e.Type != CMDisconnected {
				return fmt.Errorf("event %v", e.Type)
			}
			return ctx.Close()
		})
		e, got := ch.WaitFor(mono.Second)
		if !got || e.Type != CMConnectRequest || task.Now() > mono.Time(400*mono.Second) {
			return fmt.Errorf("event %v, at %v", e.Type, task.Now())
		}
		if err := e.ID.CreateQP(pd, QPInit{SendCQ: cq, RecvCQ: cq}); err != nil {
			return err
		}
		if err := e.ID.QP.PostRecv(&RecvWR{WRID: 7}); err != nil {
			return err
		}
		if err := e.ID.Accept(ConnParam{}); err != nil {
			return err
		}
		if n := cq.Wait(wcs[:], mono.Second); n != 1 || wcs[0].WRID != 7 {
			return fmt.Errorf("%d completions, %+v", n, wcs[0])
		}
		if err := ctx.Close(); err != nil {
			return err
		}
		if cq.Wait(wcs[:], -1) != 0 { // and does not wait for ever
			return fmt.Errorf("completions of a closed context")
		}
		_, got = ch.WaitFor(-1)
		if _, too := comp.WaitFor(-1); got || too {
			return fmt.Errorf("events of a closed context")
		}
		return nil
	})
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
}
