package p2p

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// A business card tells the other ranks how to reach one: words of the form key=value,
// with a space between them. Words that a rank does not know it passes over.
const (
	cardVersion   = "v"     // of the bytes on the wire
	cardEager     = "eager" // limit in bytes
	cardAddr      = "addr"  // of the datagrams
	cardTransport = "t"
	cardUD        = "ud"      // version of the protocol over unreliable ones, queue pair, bytes of a segment, epoch
	cardNear      = "near"    // limit in bytes through shared memory
	cardChannel   = "channel" // number of the host, colon, and the name of its shared memory
)

// businessCard is what is read from one.
type businessCard struct {
	version, eager int
	near           int
	addr           netip.AddrPort
	transport      Transport
	rc             netip.AddrPort // not valid: none
	ud             struct {
		version, segment int
		num, epoch       uint32
	}
	host    int
	channel string // or empty
}

// BusinessCard returns what the other ranks must know to connect to this one.
func (ep *Endpoint) BusinessCard() string {
	s := fmt.Sprintf("%s=%d %s=%d %s=%s %s=%v", cardVersion, Version, cardEager, ep.cfg.EagerMax, cardAddr, ep.net.ctx.Addr(), cardTransport, ep.cfg.Transport)
	if ep.net.conn != nil {
		s += fmt.Sprintf(" %s=%s", cardRC, ep.net.conn.listener.LocalAddr())
	}
	if ep.net.rel != nil {
		s += ep.net.cardUD()
	}
	return s + ep.near.site()
}

func parseBusinessCard(s string) (c businessCard, err error) {
	for word := range strings.FieldsSeq(s) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case cardVersion:
			c.version, err = strconv.Atoi(value)
		case cardEager:
			c.eager, err = strconv.Atoi(value)
		case cardNear:
			c.near, err = strconv.Atoi(value)
		case cardAddr:
			c.addr, err = netip.ParseAddrPort(value)
		case cardTransport:
			c.transport, err = ParseTransport(value)
		case cardRC:
			c.rc, err = netip.ParseAddrPort(value)
		case cardUD:
			_, err = fmt.Sscanf(value, "%d/%d/%d/%d", &c.ud.version, &c.ud.num, &c.ud.segment, &c.ud.epoch)
		case cardChannel:
			c.host, c.channel, err = parseSite(value)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
	}
	for _, limit := range []int{c.eager, c.near} {
		if limit < 0 || limit > eagerMost {
			return c, fmt.Errorf("an eager limit of %d", limit)
		}
	}
	return c, nil
}

// Connect makes the peers known by their business cards, in the order of ranks. It asks for
// the way to each by await, which may call the function that it gets again if that
// fails; nil calls it once.
func (ep *Endpoint) Connect(cards []string, await func(func() error) error) error {
	if await == nil {
		await = func(try func() error) error { return try() }
	}
	for i := range ep.peers {
		c, err := parseBusinessCard(cards[i])
		if err != nil {
			return fmt.Errorf("rank %d has told %q about itself: %w", i, cards[i], err)
		}
		if c.version != Version {
			return fmt.Errorf("rank %d speaks version %d of the protocol and this rank version %d: start all ranks from the same build", i, c.version, Version)
		}
		err = await(func() error { return ep.meet(i, &c) })
		ep.peers[i].eagerTop = ep.peers[i].eagerMax
		if err != nil {
			return fmt.Errorf("no way to %s: %w", ep.failures.nameOf(int32(i)), err)
		}
	}
	if !slices.ContainsFunc(ep.peers, func(p peer) bool { return p.lends != nil }) {
		return ep.near.close() // no rank is near: a caller that waits need not look there first
	}
	if !slices.ContainsFunc(ep.peers, func(p peer) bool { return p.channel == nil && !p.self }) {
		ep.minSpins, ep.maxHits = min(spinsNear, ep.maxSpins), hitsNear
	}
	return nil
}

// meet makes rank i a peer.
func (ep *Endpoint) meet(i int, c *businessCard) error {
	p := &ep.peers[i]
	p.eagerFar = int32(min(ep.cfg.EagerMax, c.eager))
	p.eagerMax, p.eagerCap = p.eagerFar, p.eagerFar
	p.saidBye, p.plainMax = mono.Never, math.MaxInt32
	if p.self {
		return nil
	}
	if c.transport != ep.cfg.Transport {
		return fmt.Errorf("it uses transport %v, and this rank %v: start all ranks with the same one", c.transport, ep.cfg.Transport)
	}
	if ep.net.conn != nil {
		if !c.rc.IsValid() && !ep.net.conn.beside {
			return errors.New("it has not told where it listens")
		}
		ep.net.conn.listeners[i] = c.rc // not valid: datagrams only
	}
	if ep.net.qp != nil {
		if err := ep.net.meet(p, c); err != nil {
			return err
		}
	}
	if err := ep.near.meet(p, c); err != nil || p.channel != nil {
		return err
	}
	ep.lanes.meet(p, c.rc.IsValid())
	return nil
}
