package rping

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// How long things may take.
const (
	resolveTimeout = 2 * mono.Second // rping's
	// endTimeout is how long the peer may take to agree to an end, and a ping
	// to be done when there is to be no other.
	endTimeout = mono.Second
)

// Client is the end that asks.
type Client struct {
	*end
	to, from netip.AddrPort
	s        *session
	source   *verbs.MR // the text
	result   Result
	gone     error // why the connection is over, once it is
	hurried  bool  // Stop was called, and the alarm set
}

// NewClient makes a client of the server at to. from is where to connect from;
// the zero value leaves that to the system.
func NewClient(ctx *verbs.Context, to, from netip.AddrPort, c Config) (*Client, error) {
	e, err := newEnd(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Client{end: e, to: to, from: from, result: Result{Peer: to}}, nil
}

// Run connects, pings and disconnects, once. What was done is in the result
// also when there is an error.
func (c *Client) Run() (Result, error) {
	id, err := c.cm.CreateID()
	if err != nil {
		return c.result, errors.Join(err, c.close())
	}
	err = c.resolve(id)
	if err != nil {
		return c.result, errors.Join(err, id.Destroy(), c.close())
	}
	if c.s, err = c.newSession(id, c.cfg.Size); err != nil {
		return c.result, errors.Join(err, c.close())
	}
	if c.source, err = c.cfg.Register(c.s.pd, make([]byte, c.cfg.Size), remote); err == nil {
		err = c.pings()
		err = errors.Join(err, c.source.Dereg())
	}
	return c.result, errors.Join(err, c.s.close(), c.close())
}

// resolve finds the way to the server.
func (c *Client) resolve(id *verbs.CMID) error {
	if c.from.IsValid() {
		if err := id.BindAddr(c.from); err != nil {
			return fmt.Errorf("%w: %w", ErrConnect, err)
		}
	}
	if err := id.ResolveAddr(c.to, resolveTimeout); err != nil {
		return fmt.Errorf("%w: %w", ErrConnect, err)
	}
	if err := c.event(verbs.CMAddrResolved); err != nil {
		return err
	}
	if err := id.ResolveRoute(resolveTimeout); err != nil {
		return fmt.Errorf("%w: %w", ErrConnect, err)
	}
	return c.event(verbs.CMRouteResolved)
}

// pings connects, makes all pings, and disconnects.
func (c *Client) pings() error {
	param := wanted(c.cfg.Param, verbs.ConnParam{ResponderResources: 1, InitiatorDepth: 1})
	if err := c.s.id.Connect(param); err != nil {
		return fmt.Errorf("%w: %w", ErrConnect, err)
	}
	if err := c.event(verbs.CMEstablished); err != nil {
		return err
	}
	c.cfg.Logf("connected to %v from %v", c.s.id.PeerAddr(), c.s.id.LocalAddr())
	for n := 0; c.cfg.Count == 0 || n < c.cfg.Count; n++ {
		err := c.ping(n)
		if c.stopped.Load() && err == nil && n+1 != c.cfg.Count {
			err = ErrInterrupted
		}
		if isOver(err) {
			return c.hint(err)
		} else if err != nil {
			return errors.Join(err, c.disconnect())
		}
	}
	return c.disconnect()
}

// hint adds to the loss of a connection what is most likely the reason: rping's
// server reads as much as its client has into a buffer as long as its own -S says.
func (c *Client) hint(err error) error {
	if c.result.Pings > 0 || c.cfg.Size <= DefaultSize {
		return err
	}
	return fmt.Errorf("%w; a server of rping has room for %d bytes unless it is told otherwise: start it with rping -s -S %d",
		err, DefaultSize, c.cfg.Size)
}

// ping makes one ping.
func (c *Client) ping(n int) error {
	sent, got := c.source.Bytes(), c.s.sink.Bytes()
	Fill(sent, n)
	begin := c.now()
	if err := c.advertise(c.source); err != nil {
		return err
	}
	if err := c.goAhead(); err != nil {
		return err
	}
	if err := c.advertise(c.s.sink); err != nil {
		return err
	}
	if err := c.goAhead(); err != nil {
		return err
	}
	rtt := c.now().Sub(begin)
	if c.cfg.Validate {
		if err := mismatch(sent, got, n); err != nil {
			return err
		}
	}
	c.result.Pings++
	c.result.RTT.add(rtt)
	c.cfg.Ping(Ping{Peer: c.to, Seq: n, Data: text(got), RTT: rtt})
	return nil
}

// advertise tells the server where mr is.
func (c *Client) advertise(mr *verbs.MR) error {
	info := Info{Addr: mr.Addr(), RKey: mr.RKey(), Size: uint32(mr.Len())}
	info.Put(c.s.send.Bytes())
	c.cfg.Logf("RDMA addr %x rkey %x len %d", info.Addr, info.RKey, info.Size)
	return c.s.postSend()
}

// goAhead waits for a message of the server.
func (c *Client) goAhead() error {
	for {
		if ev, ok := c.cm.GetEvent(); ok {
			c.gone = refusal(ev)
		}
		wcs, err := c.s.poll() // after GetEvent, which lets the engine step
		received, bad := c.judge(wcs)
		switch {
		case received || bad != nil:
			return bad
		case c.gone != nil:
			return c.gone
		case err != nil && !isOver(err): // else an event follows that says why
			return err
		}
		if c.stopped.Load() && !c.hurried {
			c.hurried = true
			c.alarm.set(c.after(endTimeout))
		}
		if c.hurried && c.alarm.rang {
			return ErrInterrupted
		}
		c.turn()
	}
}

// judge looks for the server's message among completions.
func (c *Client) judge(wcs []verbs.WC) (received bool, err error) {
	for i := range wcs {
		if wcs[i].Opcode != verbs.OpRecv {
			continue
		}
		if wcs[i].ByteLen != InfoLen {
			return true, fmt.Errorf("%w: it sent %d bytes, not %d", ErrProtocol, wcs[i].ByteLen, InfoLen)
		}
		received = true
		if err := c.s.postRecv(); err != nil {
			return true, err
		}
	}
	return received, nil
}

// disconnect ends the connection in order, unless the peer takes too long.
func (c *Client) disconnect() error {
	if err := c.s.id.Disconnect(); err != nil {
		return err
	}
	c.alarm.set(c.after(endTimeout))
	for !c.alarm.rang {
		if ev, ok := c.cm.GetEvent(); ok && ev.Type == verbs.CMDisconnected {
			return nil
		}
		c.turn()
	}
	c.cfg.Logf("%v has not agreed to disconnect within %v", c.to, endTimeout)
	return nil
}
