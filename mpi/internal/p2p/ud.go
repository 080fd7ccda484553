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
func (nw *network) createUD(cfg *Config, size int) (err error) {
	nw.rel, err = reliable.New(nw.ctx, nw.pd, reliable.Config{
		MaxMessage: size,
		Buffer:     cfg.Receives * (headerLen + cfg.EagerMax),
		ARQ:        nw.ctx.Dgram(),
	})
	if err != nil {
		return err
	}
	nw.qp = nw.rel.QP()
	nw.inlineMax = reliable.MaxInline - headerLen
	nw.maxSeg -= reliable.HeaderLen
	return nil
}

// cardUD is what peers must know of it.
func (nw *network) cardUD() string {
	return fmt.Sprintf(" %s=%d/%d/%d/%d", cardUD, reliable.Version, nw.rel.Num(), nw.rel.Segment(), nw.ctx.Epoch())
}

// meetUD makes a peer known to it.
func (nw *network) meetUD(p *peer, c *businessCard) (err error) {
	if c.ud.version != reliable.Version {
		return fmt.Errorf("it speaks version %d of the protocol over unreliable datagrams and this rank version %d: start all ranks from the same build and with the same transport", c.ud.version, reliable.Version)
	}
	if p.rel, err = nw.rel.Peer(p.ah, c.ud.num, c.ud.segment, c.ud.epoch); err == nil {
		p.rel.UserData = p.ah.UserData
	}
	return err
}

// pollUD is what Poll does for it first.
func (pl *poller) pollUD(now mono.Time) int {
	ep := pl.ep
	n, worked := ep.net.rel.Poll(now, pl.wcs[:])
	for i := range pl.wcs[:n] {
		wc := &pl.wcs[i]
		if wc.Opcode != verbs.OpRecv {
			pl.sent(wc)
			continue
		}
		pl.arrived(ep.net.rel.Message(wc))
		ep.net.rel.Release(wc)
	}
	for p := ep.net.rel.Lost(); p != nil; p = ep.net.rel.Lost() {
		ep.failures.gone(int(p.UserData-1), ep.failures.silent(verbs.EventPeerLost.String()))
		worked = true
	}
	if n == 0 && worked {
		n = 1
	}
	return n
}
