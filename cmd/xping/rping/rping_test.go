package rping

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/mpa"
	"github.com/xwarp/xwarp/verbs"
)

// Every way to connect, and sizes of one to many FPDUs.
func TestRun(t *testing.T) {
	tests := []struct {
		name  string
		size  int
		param verbs.ConnParam
		ipv6  bool
	}{
		{name: "defaults"},
		{name: "IPv6", ipv6: true},
		{name: "least", size: MinSize},
		{name: "most", size: MaxSize},
		{name: "CRC", size: 10000, param: verbs.ConnParam{CRC: true}},
		{name: "markers", size: 10000, param: verbs.ConnParam{Markers: true}},
		{name: "CRC and markers", size: 3001, param: verbs.ConnParam{CRC: true, Markers: true}},
		{name: "revision 1", param: verbs.ConnParam{Revision: 1}},
		{name: "p2p with a Write", param: verbs.ConnParam{RTR: mpa.RTRWrite}},
		{name: "p2p with a Read", param: verbs.ConnParam{RTR: mpa.RTRRead}},
		{name: "p2p with a Send", param: verbs.ConnParam{RTR: mpa.RTRSend}},
		{name: "p2p with any", param: verbs.ConnParam{RTR: mpa.RTRSend | mpa.RTRRead | mpa.RTRWrite, CRC: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const count = 70 // the letters begin anew
			r := newRig(t, 2)
			r.ipv6 = tt.ipv6
			size := tt.size
			if size == 0 {
				size = DefaultSize
			}
			want := make([]byte, size)
			told := map[string]int{}
			check := func(who string) func(Ping) {
				return func(p Ping) {
					Fill(want, p.Seq)
					if p.Seq != told[who] || string(p.Data) != string(want[:size-1]) {
						t.Errorf("%s: ping %d after %d: %.60q", who, p.Seq, told[who], p.Data)
					}
					if (p.RTT > 0) != (who == "client") {
						t.Errorf("%s: ping %d took %v", who, p.Seq, p.RTT)
					}
					told[who]++
				}
			}
			r.serve(Config{Ping: check("server"), Ended: func(res Result, err error) {
				if res.Pings != count || err != nil {
					t.Errorf("server ended with %+v, %v", res, err)
				}
			}}, same)
			r.client(1, Config{Count: count, Size: tt.size, Validate: true, Param: tt.param, Ping: check("client")}, func(res Result, err error) error {
				if res.RTT.Min <= 0 || res.RTT.Min > res.RTT.Avg() || res.RTT.Avg() > res.RTT.Max {
					t.Errorf("%+v, avg %v", res.RTT, res.RTT.Avg())
				}
				return pings(count)(res, err)
			})
			r.run()
			if told["client"] != count || told["server"] != count {
				t.Error(told)
			}
		})
	}
}

// A persistent server serves clients one after the other and at once, also
// when some of them leave in the middle, until it is stopped.
func TestServer_persistent(t *testing.T) {
	const clients = 6
	r := newRig(t, 1+clients)
	var ended, lostOnes int
	r.serve(Config{Persistent: true, Ended: func(res Result, err error) {
		ended++
		if errors.Is(err, ErrLost) {
			lostOnes++
		} else if err != nil {
			t.Error(err)
		}
		if ended == clients {
			r.server.Stop()
		}
	}}, func(err error) error {
		if !errors.Is(err, ErrInterrupted) {
			return fmt.Errorf("Run returned %v", err)
		}
		return nil
	})
	for i := range clients {
		if i == 3 {
			r.use(1+i, func(ctx *verbs.Context) error { return leave(r, ctx) })
			continue
		}
		r.client(1+i, Config{Count: 10 * (1 + i), Size: 1000 * (1 + i), Validate: true}, pings(10*(1+i)))
	}
	r.run()
	if ended != clients || lostOnes != 1 {
		t.Errorf("%d connections ended, %d of them were lost", ended, lostOnes)
	}
}

// connect brings a client to where its first ping would be.
func connect(r *rig, ctx *verbs.Context) (*Client, error) {
	c, err := NewClient(ctx, r.addr(), netip.AddrPort{}, Config{})
	if err != nil {
		return nil, err
	}
	id, err := c.cm.CreateID()
	if err != nil {
		return nil, err
	}
	if err := c.resolve(id); err != nil {
		return nil, err
	}
	if c.s, err = c.newSession(id, c.cfg.Size); err != nil {
		return nil, err
	}
	if err := id.Connect(c.cfg.Param); err != nil {
		return nil, err
	}
	return c, c.event(verbs.CMEstablished)
}

// leave is a client that goes when the server has read its text.
func leave(r *rig, ctx *verbs.Context) error {
	c, err := connect(r, ctx)
	if err != nil {
		return err
	}
	if err := c.advertise(c.s.sink); err != nil {
		return err
	}
	if err := c.goAhead(); err != nil {
		return err
	}
	return errors.Join(c.disconnect(), c.s.close(), c.close())
}

// A server of one client refuses all others.
func TestServer_one(t *testing.T) {
	r := newRig(t, 3)
	r.serve(Config{}, same)
	served, refused := 0, 0
	for i := 1; i <= 2; i++ {
		r.client(i, Config{Count: 100}, func(_ Result, err error) error {
			switch {
			case err == nil:
				served++
			case errors.Is(err, ErrConnect):
				refused++
			default:
				return err
			}
			return nil
		})
	}
	r.run()
	if served != 1 || refused != 1 {
		t.Errorf("%d served, %d refused", served, refused)
	}
}

func TestClient_nobodyListens(t *testing.T) {
	r := newRig(t, 2)
	r.client(1, Config{}, func(_ Result, err error) error {
		if !errors.Is(err, ErrConnect) {
			return fmt.Errorf("Run returned %v", err)
		}
		return nil
	})
	r.run()
}

// A server that changes the text is found out, at the byte.
func TestClient_mismatch(t *testing.T) {
	r := newRig(t, 2)
	r.serve(Config{Ping: func(p Ping) {
		if p.Seq == 2 {
			p.Data[40] ^= 1
		}
	}}, same)
	r.client(1, Config{Count: 5, Validate: true}, func(res Result, err error) error {
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "ping 2, byte 40") {
			return fmt.Errorf("%+v, %v", res, err)
		}
		return nil
	})
	r.run()
}

// Clients that say what rping does not.
func TestServer_alien(t *testing.T) {
	tests := []struct {
		name string
		say  func(*Client) error
	}{
		{"short message", func(c *Client) error {
			wr := verbs.SendWR{Opcode: verbs.OpSend, NumSGE: 1}
			wr.SGL[0] = c.s.send.SGE(0, 5)
			return c.s.id.QP.PostSend(&wr)
		}},
		{"too large a ping", func(c *Client) error {
			info := Info{Addr: c.s.sink.Addr(), RKey: c.s.sink.RKey(), Size: MaxSize + 1}
			info.Put(c.s.send.Bytes())
			return c.s.postSend()
		}},
		{"two messages in a row", func(c *Client) error {
			return errors.Join(c.advertise(c.s.sink), c.s.postSend())
		}},
		{"empty message in the middle", func(c *Client) error {
			if err := errors.Join(c.advertise(c.s.sink), c.goAhead()); err != nil {
				return err
			}
			return c.s.id.QP.PostSend(&verbs.SendWR{Opcode: verbs.OpSend})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, 2)
			r.serve(Config{}, func(err error) error {
				if !errors.Is(err, ErrProtocol) {
					return fmt.Errorf("Run returned %v", err)
				}
				return nil
			})
			r.use(1, func(ctx *verbs.Context) error {
				c, err := connect(r, ctx)
				if err != nil {
					return err
				}
				if err := tt.say(c); err != nil {
					return err
				}
				for { // go-aheads, and then the end
					if err := c.goAhead(); errors.Is(err, ErrLost) {
						return errors.Join(c.s.close(), c.close())
					} else if err != nil {
						return err
					}
				}
			})
			r.run()
		})
	}
}

// A server that waits for a Write, as siw does whatever it is offered, and a client
// that may begin with a Send only: the server is connected before it hears that this
// does not do, and both ends come to an end.
func TestRun_noFirstMessage(t *testing.T) {
	r := newRig(t, 2)
	heard := ""
	r.serve(Config{Param: verbs.ConnParam{RTR: mpa.RTRWrite}, Logf: func(format string, args ...any) {
		heard += fmt.Sprintf(format, args...) + "; "
	}}, func(err error) error {
		if !errors.Is(err, ErrLost) || !errors.Is(err, iwarp.LLPNoRTR) || !strings.HasSuffix(heard, "connected; ") {
			return fmt.Errorf("Run returned %v after %q", err, heard)
		}
		return nil
	})
	r.client(1, Config{Param: verbs.ConnParam{RTR: mpa.RTRSend}}, func(_ Result, err error) error {
		if !errors.Is(err, ErrConnect) || !errors.Is(err, iwarp.LLPNoRTR) {
			return fmt.Errorf("Run returned %v", err)
		}
		return nil
	})
	r.run()
}

// A server of rping reads into a buffer of its own size, 64 bytes by default, and
// disconnects when that is too little: the client says what to do. When that is not
// the reason, it does not.
func TestClient_largerThanTheServersBuffer(t *testing.T) {
	for size, hint := range map[int]string{MinSize: "", DefaultSize: "", DefaultSize + 1: "rping -s -S 65", 10000: "rping -s -S 10000"} {
		r := newRig(t, 2)
		small := func(pd *verbs.PD, b []byte, a verbs.Access) (*verbs.MR, error) {
			if len(b) == MaxSize {
				b = b[:DefaultSize]
			}
			return pd.RegMR(b, a)
		}
		r.serve(Config{Register: small}, func(err error) error {
			if (err == nil) != (hint == "") {
				return fmt.Errorf("%d bytes: Run returned %v", size, err)
			}
			return nil
		})
		r.client(1, Config{Size: size, Count: 1, Validate: true}, func(res Result, err error) error {
			if hint == "" {
				return pings(1)(res, err)
			}
			if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), hint) {
				return fmt.Errorf("%d bytes: %v", size, err)
			}
			return nil
		})
		r.run()
	}
	r := newRig(t, 2) // one that is stopped in the middle, after pings
	done := 0
	r.serve(Config{Ping: func(Ping) {
		if done++; done == 3 {
			r.server.Stop()
		}
	}}, func(err error) error { return nil })
	r.client(1, Config{Size: 10000}, func(_ Result, err error) error {
		if !errors.Is(err, ErrLost) || strings.Contains(err.Error(), "-S") {
			return err
		}
		return nil
	})
	r.run()
}

// An endless client ends when it is told to, between two pings: the server
// sees an orderly end.
func TestClient_stop(t *testing.T) {
	r := newRig(t, 2)
	r.serve(Config{}, same)
	done := 0
	r.use(1, func(ctx *verbs.Context) error {
		c, err := NewClient(ctx, r.addr(), netip.AddrPort{}, Config{Validate: true})
		if err != nil {
			return err
		}
		r.world.At(r.world.Now().Add(5*mono.Millisecond), func() {
			c.Stop()
		})
		res, err := c.Run()
		done = res.Pings
		if !errors.Is(err, ErrInterrupted) || errors.Is(err, ErrLost) {
			return fmt.Errorf("%+v, %v", res, err)
		}
		return nil
	})
	r.run()
	if done == 0 {
		t.Error("no ping was made")
	}
}

// A client that is stopped while nobody answers ends all the same.
func TestClient_stopConnecting(t *testing.T) {
	r := newRig(t, 2)
	r.nodes[0].Up.CutUntil = mono.Never
	r.use(1, func(ctx *verbs.Context) error {
		c, err := NewClient(ctx, r.addr(), netip.AddrPort{}, Config{})
		if err != nil {
			return err
		}
		r.world.At(r.world.Now().Add(100*mono.Millisecond), func() {
			c.Stop()
		})
		if _, err := c.Run(); !errors.Is(err, ErrInterrupted) {
			return err
		}
		if took := r.world.Now(); took > mono.Time(mono.Second) {
			t.Errorf("it took until %v", took)
		}
		return nil
	})
	r.run()
}

// A server that is stopped ends its connections in order, in the middle of a
// ping or not.
func TestServer_stop(t *testing.T) {
	for _, after := range []mono.Duration{20 * mono.Microsecond, 21500 * mono.Nanosecond, 23 * mono.Microsecond, 5 * mono.Millisecond} {
		r := newRig(t, 2)
		r.serve(Config{Ended: func(_ Result, err error) {
			if err != nil {
				t.Error(err)
			}
		}}, func(err error) error {
			if !errors.Is(err, ErrInterrupted) {
				return fmt.Errorf("Run returned %v", err)
			}
			return nil
		})
		r.client(1, Config{}, func(_ Result, err error) error {
			if !errors.Is(err, ErrLost) && !errors.Is(err, ErrConnect) {
				return fmt.Errorf("Run returned %v", err)
			}
			return nil
		})
		r.world.At(mono.Time(after), func() {
			r.server.Stop()
		})
		r.run()
	}
}

// A connection that fails at any byte of what either end sends is the end of
// the ping, for both, and of nothing else.
func TestRun_faults(t *testing.T) {
	for _, kind := range []sim.StreamFaultKind{sim.StreamReset, sim.StreamFIN, sim.StreamSilence} {
		for off := int64(0); off < 320; off += 5 {
			r := newRig(t, 2)
			r.faults = []sim.StreamFault{{Offset: off, Kind: kind, Heal: mono.Second}}
			judge := func(err error) error {
				if kind == sim.StreamSilence || errors.Is(err, ErrLost) || errors.Is(err, ErrConnect) {
					return nil
				}
				return err
			}
			r.serve(Config{Persistent: true, Ended: func(_ Result, err error) {
				if err := judge(err); err != nil {
					t.Errorf("%v at %d: server: %v", kind, off, err)
				}
			}}, func(err error) error {
				if !errors.Is(err, ErrInterrupted) {
					return err
				}
				return nil
			})
			r.client(1, Config{Count: 2, Validate: true}, func(res Result, err error) error {
				if kind == sim.StreamSilence && (err != nil || res.Pings != 2) {
					t.Errorf("%v at %d: %+v, %v", kind, off, res, err)
				} else if err := judge(err); err != nil {
					t.Errorf("%v at %d: client: %v", kind, off, err)
				}
				r.server.Stop()
				return nil
			})
			r.run()
		}
	}
}
