package p2p

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/reliable"
	"github.com/xwarp/xwarp/verbs"
)

// Over unreliable datagrams mpi/internal/reliable stands where the queue pair
// stands otherwise: it takes the same work requests and returns the same
// completions, but the messages that arrive lie in memory of its own.

// createUD makes the endpoint's way out one over a UD queue pair.
func (ep *Endpoint) createUD(ctx *verbs.Context) (err error) {
	ep.rel, err = reliable.New(ctx, ep.pd, reliable.Config{
		MaxMessage: max(headerLen+ep.cfg.EagerMax, verbs.MaxInline),
		Buffer:     ep.cfg.Receives * (headerLen + ep.cfg.EagerMax),
		ARQ:        ctx.Dgram(),
	})
	if err != nil {
		return err
	}
	ep.qp = ep.rel.QP()
	ep.inlineMax = reliable.MaxInline - headerLen
	ep.maxSeg -= reliable.HeaderLen
	return ep.carveSends()
}

// cardUD is what peers must know of it.
func (ep *Endpoint) cardUD() string {
	return fmt.Sprintf(" %s=%d/%d/%d/%d", cardUD, reliable.Version, ep.rel.Num(), ep.rel.Segment(), ep.ctx.Epoch())
}

// meetUD makes a peer known to it.
func (ep *Endpoint) meetUD(p *peer, c *card) (err error) {
	if c.ud.version != reliable.Version {
		return fmt.Errorf("it speaks version %d of the protocol over unreliable datagrams and this rank version %d: start all ranks from the same build and with the same transport", c.ud.version, reliable.Version)
	}
	if p.rel, err = ep.rel.Peer(p.ah, c.ud.num, c.ud.segment, c.ud.epoch); err == nil {
		p.rel.UserData = p.ah.UserData
	}
	return err
}

// pollUD is what Poll does for it first.
func (ep *Endpoint) pollUD(now mono.Time) int {
	n, worked := ep.rel.Poll(now, ep.wcs[:])
	for i := range ep.wcs[:n] {
		wc := &ep.wcs[i]
		if wc.Opcode != verbs.OpRecv {
			ep.sent(wc)
			continue
		}
		ep.arrived(ep.rel.Message(wc))
		ep.rel.Release(wc)
	}
	for p := ep.rel.Lost(); p != nil; p = ep.rel.Lost() {
		ep.gone(int(p.UserData-1), ep.silent(verbs.EventPeerLost.String()))
		worked = true
	}
	if n == 0 && worked {
		n = 1
	}
	return n
}
