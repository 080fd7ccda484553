package footprint

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
)

// connected is a server and its peers over connections.
type connected struct {
	carrier carrier
	server  *server
	clients *clients
}

// carrier carries the connections of a setup.
type carrier interface {
	// open opens the i-th of the two ends.
	open(i int) (verbs.Config, error)
	// run calls the turns of both ends until they have ended. A turn returns
	// how much it did.
	run(server, clients turn) error
}

// turn moves one end. Its context waits when it did nothing.
type turn struct {
	ctx  *verbs.Context
	step func() (work int, over bool, err error)
}

func openConnected(c Config) (setup, error) {
	s := &connected{carrier: newKernel()}
	if c.Carrier == SimTCP {
		s.carrier = newWorld()
	}
	config, err := s.carrier.open(0)
	if err != nil {
		return nil, err
	}
	s.server = &server{config: c}
	if err := s.server.listen(config); err != nil {
		return nil, err
	}
	if config, err = s.carrier.open(1); err != nil {
		return nil, err
	}
	s.clients = &clients{goal: c.Peers, to: s.server.listener.LocalAddr()}
	if !s.clients.to.Addr().IsValid() || s.clients.to.Addr().IsUnspecified() {
		s.clients.to = netip.AddrPortFrom(s.server.ctx.Addr().Addr(), s.clients.to.Port())
	}
	return s, s.clients.open(config)
}

// play implements setup.
func (s *connected) play() error {
	return s.carrier.run(turn{s.server.ctx, s.server.turn}, turn{s.clients.ctx, s.clients.turn})
}

// leave implements setup.
func (s *connected) leave() error {
	err := s.clients.ctx.Close()
	s.clients = nil
	return err
}

// end implements setup.
func (s *connected) end() error {
	err := s.server.ctx.Close()
	s.server = nil
	return err
}

// server accepts connections and answers one message on each.
type server struct {
	member
	config   Config
	channel  *verbs.CMChannel
	listener *verbs.CMID
	srq      *verbs.SRQ
	qps      []*verbs.QP
	ids      []*verbs.CMID
	sent     int
}

// listen opens the server.
func (h *server) listen(config verbs.Config) (err error) {
	if err := h.open(config, completions, h.config.received()); err != nil {
		return err
	}
	if h.config.Shared {
		if h.srq, err = h.pd.CreateSRQ(verbs.SRQInit{MaxWR: h.config.Recvs}); err != nil {
			return err
		}
		for range h.config.Recvs {
			if err := h.srq.PostRecv(h.receive()); err != nil {
				return err
			}
		}
	}
	if h.channel, err = h.ctx.CreateCMChannel(); err != nil {
		return err
	}
	if h.listener, err = h.channel.CreateID(); err != nil {
		return err
	}
	if err := h.listener.BindAddr(netip.AddrPortFrom(h.ctx.Addr().Addr(), 0)); err != nil {
		return err
	}
	return h.listener.Listen(2 * wave)
}

// turn moves the server.
func (h *server) turn() (work int, over bool, err error) {
	work = h.ctx.Engine().Step()
	for ev, ok := h.channel.GetEvent(); ok; ev, ok = h.channel.GetEvent() {
		work++
		if err := h.event(ev); err != nil {
			return work, false, err
		}
	}
	n, err := h.drained(h.scq)
	if err != nil {
		return work, false, err
	}
	h.sent += n
	wcs, err := h.completed(h.rcq)
	if err != nil {
		return work, false, err
	}
	for i := range wcs {
		if err := h.answer(wcs[i].QPNum); err != nil {
			return work, false, err
		}
	}
	return work + n + len(wcs), h.sent == h.config.Peers, nil
}

func (h *server) event(ev verbs.CMEvent) error {
	switch ev.Type {
	case verbs.CMConnectRequest:
		return h.accept(ev.ID)
	case verbs.CMEstablished:
		return nil
	}
	return fmt.Errorf("footprint: the server's connection %d: event %v: %w", len(h.ids), ev.Type, ev.Err)
}

func (h *server) accept(id *verbs.CMID) error {
	qp, err := h.pd.CreateQP(verbs.QPInit{
		Type: verbs.RC, SendCQ: h.scq, RecvCQ: h.rcq, SRQ: h.srq,
		Cap: verbs.QPCap{MaxSendWR: connectionSends, MaxRecvWR: h.config.Recvs},
	})
	if err != nil {
		return err
	}
	h.qps, h.ids = append(h.qps, qp), append(h.ids, id)
	if qp.Num() != h.qps[0].Num()+uint32(len(h.qps))-1 {
		return fmt.Errorf("footprint: queue pair %d has number %d, and the first %d", len(h.qps), qp.Num(), h.qps[0].Num())
	}
	for range h.config.Recvs {
		if h.srq != nil {
			break
		}
		if err := qp.PostRecv(h.receive()); err != nil {
			return err
		}
	}
	return id.Accept(verbs.ConnParam{QP: qp})
}

// answer answers the message that a queue pair has received.
func (h *server) answer(num uint32) error {
	qp := h.qps[num-h.qps[0].Num()]
	post := qp.PostRecv
	if h.srq != nil {
		post = h.srq.PostRecv
	}
	return errors.Join(post(h.receive()), qp.PostSend(text(nil)))
}

// clients are the peers: they connect in waves, and each sends a message.
type clients struct {
	member
	to      netip.AddrPort
	goal    int
	begun   int
	done    int // have their answer
	channel *verbs.CMChannel
}

func (c *clients) open(config verbs.Config) (err error) {
	if err := c.member.open(config, 4*wave, 4*wave); err != nil {
		return err
	}
	c.channel, err = c.ctx.CreateCMChannel()
	return err
}

// turn moves the clients.
func (c *clients) turn() (work int, over bool, err error) {
	for ; c.begun < min(c.done+wave, c.goal); c.begun++ {
		id, err := c.channel.CreateID()
		if err != nil {
			return work, false, err
		}
		if err := id.ResolveAddr(c.to, 0); err != nil {
			return work, false, err
		}
	}
	work = c.ctx.Engine().Step()
	for ev, ok := c.channel.GetEvent(); ok; ev, ok = c.channel.GetEvent() {
		work++
		if err := c.event(ev); err != nil {
			return work, false, err
		}
	}
	n, err := c.drained(c.rcq)
	if err != nil {
		return work, false, err
	}
	c.done += n
	sent, err := c.drained(c.scq)
	return work + n + sent, c.done == c.goal, err
}

func (c *clients) event(ev verbs.CMEvent) error {
	switch ev.Type {
	case verbs.CMAddrResolved:
		return ev.ID.ResolveRoute(0)
	case verbs.CMRouteResolved:
		return c.connect(ev.ID)
	case verbs.CMEstablished:
		return ev.ID.QP.PostSend(text(nil))
	}
	return fmt.Errorf("footprint: connection %d of %d to %v: event %v: %w", c.begun, c.goal, c.to, ev.Type, ev.Err)
}

func (c *clients) connect(id *verbs.CMID) error {
	err := id.CreateQP(c.pd, verbs.QPInit{
		Type: verbs.RC, SendCQ: c.scq, RecvCQ: c.rcq, Cap: verbs.QPCap{MaxSendWR: 2, MaxRecvWR: 2},
	})
	if err != nil {
		return err
	}
	if err := id.QP.PostRecv(c.receive()); err != nil {
		return err
	}
	return id.Connect(verbs.ConnParam{})
}

// inTurns steps both ends until they have ended.
func inTurns(server, clients turn) error {
	serverOver, clientsOver := false, false
	for !serverOver || !clientsOver {
		var err error
		work, n := 0, 0
		if work, serverOver, err = server.step(); err != nil {
			return err
		}
		if n, clientsOver, err = clients.step(); err != nil {
			return err
		}
		if work+n == 0 {
			runtime.Gosched()
		}
	}
	return nil
}

// overStreams describes a context on streams.
func overStreams(s fabric.Streams, clock mono.Clock, parker progress.Parker) verbs.Config {
	return verbs.Config{Streams: s, Engine: progress.New(clock, parker), Key: 1, Epoch: 1}
}
