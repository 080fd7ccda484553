package check

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/carrier/split"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

// host is one machine of the workload: a program that posts requests at random
// and reports what it sees.
type host struct {
	w        *world
	id       int
	node     *sim.Node
	task     *sim.Task
	rng      *rand.Rand
	restarts []Restart
	lives    int
	posted   int // requests
	idling   int // actions since the last that posted one
	idle     bool
	done     bool

	up bool // peers may ask for the keys of the present life

	// of the present life:
	life   *Life
	ctx    *verbs.Context
	pd     *verbs.PD
	scq    *verbs.CQ
	rcq    *verbs.CQ
	qp     *verbs.QP
	next   mono.Time // of the next action
	goal   int       // receives to keep posted
	recvs  int       // posted
	links  []*link   // by host
	sends  *slots
	sinks  *slots
	inbox  *slots
	mapped []*exposed
	used   map[uint64]buffer // by request

	channel *verbs.CompChannel // nil: nothing is announced
	armed   notice
	heard   notice // what the completions that were just polled would announce
	windows []*window
	srq     *verbs.SRQ // nil: the queue pair has receives of its own
	ud      *verbs.QP  // nil: there is none
	udInbox *slots
	udRecvs int // posted
}

// link is what a host has with another one.
type link struct {
	ah     *verbs.AH
	stream *Stream
	open   int  // signalled requests without completion
	dead   bool // no more requests: make a new handle when these have ended
	bye    *Op  // the last request of all
	byes   int
}

// buffer is what a request occupies until it has ended.
type buffer struct {
	in   *slots // nil: nothing
	slot int
	len  int
}

// Poll and Deadline make the host a progress.Source, so that its engine wakes
// it for its next action.
func (h *host) Poll(mono.Time, int) int { return 0 }

// Deadline implements progress.Source.
func (h *host) Deadline() mono.Time { return h.next }

// tick reads the clock. What the model is told next happens then.
func (h *host) tick() mono.Time {
	h.w.clock = max(h.w.clock, h.task.Now())
	return h.w.clock
}

// run plays all lives of the host.
func (h *host) run(t *sim.Task) error {
	h.rng = t.Rand()
	for {
		if err := h.open(); err != nil {
			return err
		}
		again, err := h.live()
		if err != nil {
			return err
		}
		crash := again && h.restarts[0].Crash
		if err := h.close(crash); err != nil || !again {
			return err
		}
		t.Doing("being down")
		t.Sleep(h.restarts[0].Down)
		h.restarts = h.restarts[1:]
	}
}

// open begins a life.
func (h *host) open() error {
	w := h.w
	h.tick()
	h.lives++
	h.life = w.model.Begin(h.id, h.lives)
	h.used, h.links, h.recvs, h.udRecvs = map[uint64]buffer{}, make([]*link, w.Hosts), 0, 0
	h.windows, h.srq, h.ud, h.channel, h.armed = nil, nil, nil, nil, notArmed
	h.goal = inboxSlots
	p, err := h.node.Open(nil)
	if err != nil {
		return err
	}
	first, second, err := h.carriers(p)
	if err == nil && w.Secure {
		first, second, err = w.encrypted(h, first, second)
	}
	if err != nil {
		return err
	}
	h.ctx, err = verbs.New(verbs.Config{
		Datagram: first, Bulk: second, Engine: progress.New(h.task, h.task), Key: w.Seed ^ 0xfeed,
		Epoch: h.rng.Uint32() | 1, Dgram: w.Dgram, ZeroBased: true, NoCRC: w.NoCRC || w.Secure,
	})
	if err != nil {
		return err
	}
	h.ctx.Engine().Add(h)
	w.note("%v begins", h.life)
	err = h.objects()
	h.up = true
	return err
}

// carriers opens a carrier on a port, and in every second world another one beside
// it for large data, as a socket of the kernel is beside AF_XDP.
func (h *host) carriers(p fabric.Port) (first, second fabric.Datagram, err error) {
	w := h.w
	c := inet.Config{Port: p, Resolver: w.hops, Local: w.addr(h.id), MAC: h.node.MAC(), FirstPort: w.addr(0).Port()}
	if w.Seed%2 == 0 {
		first, err = inet.New(c)
		return first, nil, err
	}
	bulk := netip.AddrPortFrom(c.Local.Addr(), c.Local.Port()+dgram.BulkPort)
	b := c
	b.Local, b.FirstPort = bulk, 0
	b.Port, c.Port = split.By(p, func(frame []byte) bool {
		const portAt = inet.EthernetLen + inet.IPv4Len + 2
		return len(frame) >= portAt+2 && binary.BigEndian.Uint16(frame[portAt:]) == bulk.Port()
	})
	if first, err = inet.New(c); err != nil {
		return nil, nil, err
	}
	second, err = inet.New(b)
	return first, second, err
}

const (
	sendSlots  = 24
	sinkSlots  = 12
	inboxSlots = 24
	room       = 64 // bytes of a sink or receive buffer that stay untouched behind the longest message
)

// objects makes what a life needs.
func (h *host) objects() (err error) {
	w := h.w
	if h.pd, err = h.ctx.AllocPD(); err != nil {
		return err
	}
	if h.scq, err = h.ctx.CreateCQ(verbs.CQInit{Depth: 256}); err != nil {
		return err
	}
	if w.Notify {
		if h.channel, err = h.ctx.CreateCompChannel(); err != nil {
			return err
		}
	}
	if h.rcq, err = h.ctx.CreateCQ(verbs.CQInit{Depth: 256, Channel: h.channel}); err != nil {
		return err
	}
	if w.SRQ {
		if h.srq, err = h.pd.CreateSRQ(verbs.SRQInit{MaxWR: inboxSlots, Limit: 3}); err != nil {
			return err
		}
	}
	init := verbs.QPInit{
		Type: verbs.RD, SendCQ: h.scq, RecvCQ: h.rcq, SRQ: h.srq,
		Cap:    verbs.QPCap{MaxSendWR: w.SendWR, MaxRecvWR: inboxSlots},
		Record: verbs.RecordConfig{PerChunk: w.Chunks},
	}
	if h.qp, err = h.pd.CreateQP(init); err != nil {
		return err
	}
	if w.UD {
		init.Type, init.SRQ = verbs.UD, nil
		if h.ud, err = h.pd.CreateQP(init); err != nil {
			return err
		}
		if err = h.ud.AttachMcast(group); err != nil {
			return err
		}
	}
	size := w.MaxMsg + room
	for _, x := range []struct {
		to     **slots
		count  int
		access verbs.Access
	}{
		{&h.sends, sendSlots, 0}, {&h.sinks, sinkSlots, verbs.LocalWrite},
		{&h.inbox, inboxSlots, verbs.LocalWrite}, {&h.udInbox, inboxSlots, verbs.LocalWrite},
	} {
		if *x.to, err = newSlots(h.rng, h.pd, h.ctx, x.count, size, x.access); err != nil {
			return err
		}
	}
	return h.expose()
}

// stepsMax is how many steps all engines of a run may take: a hundred times as
// many as any run has needed.
const stepsMax = 400_000

// live plays one life. again says that the host is to restart.
func (h *host) live() (again bool, err error) {
	h.next = h.tick()
	for {
		now := h.tick()
		if h.w.steps++; h.w.steps > stepsMax {
			return false, fmt.Errorf("hang: %d steps of the engines, and no end; this host: %v%s", stepsMax, h.task, h.w.state())
		}
		h.reap()
		if h.idle {
			if err := h.refill(); err != nil {
				return false, err
			}
		}
		if err := h.w.model.Err(); err != nil {
			return false, err
		}
		if len(h.restarts) > 0 && now >= h.restarts[0].At {
			return true, nil
		}
		if now >= h.next {
			if err := h.act(now); err != nil {
				return false, err
			}
		}
		if h.over() {
			return false, h.final()
		}
		if h.ctx.Engine().Step() == 0 && h.scq.Len()+h.rcq.Len() == 0 {
			h.ctx.Engine().Park()
		}
	}
}

// act does one thing, and says when to do the next.
func (h *host) act(now mono.Time) error {
	w := h.w
	switch {
	case h.posted < w.Ops:
		h.task.Doing("posting requests")
		before := h.posted
		err := h.something()
		h.idling = min(h.idling+1, 10)
		if h.posted > before {
			h.idling = 0
		}
		h.next = now.Add(mono.Duration(h.rng.Int64N(int64(2*w.Gap)<<h.idling)) + 1)
		return err
	case len(h.restarts) > 0:
		h.task.Doing("waiting for its restart")
		h.next = h.restarts[0].At
	case now < w.healed:
		h.task.Doing("waiting for the network to heal")
		h.next = w.healed
	case !h.idle:
		h.idle = true
		if w.idle++; w.idle == w.Hosts {
			w.wakeAll()
		}
		fallthrough
	default:
		h.next = mono.Never
	}
	h.goal = inboxSlots
	return h.refill()
}

// over takes leave of all other hosts when everybody has done what they had to
// do, and reports whether all of them have done that too.
func (h *host) over() bool {
	w := h.w
	if w.idle < w.Hosts {
		return false
	}
	if !h.done {
		h.task.Doing("taking leave")
		all := true
		for to := range w.hosts {
			all = all && (to == h.id || h.leave(to))
		}
		if !all {
			return false
		}
		h.done = true
		if w.done++; w.done == w.Hosts {
			w.wakeAll()
		}
	}
	h.task.Doing("waiting for the others to take leave")
	return w.done == w.Hosts
}

// leave sends a last message to a host, again and again until one succeeds: the
// network is whole, so it must. It reports whether one has.
func (h *host) leave(to int) bool {
	l := h.link(to)
	switch {
	case l == nil || l.dead:
		return false // a new handle comes first
	case l.bye != nil && l.bye.done:
		return l.bye.ok // else the link is about to be dead
	case l.bye != nil:
		return false
	case l.byes > 100:
		h.w.model.fail("host %d cannot reach host %d any more, though the network is whole: %d handles failed", h.id, to, l.byes)
		return false
	}
	o := &Op{Code: verbs.OpSend, Len: 8 + h.rng.IntN(100), Signaled: true}
	if h.send(l, o, &verbs.SendWR{AH: l.ah}) {
		l.bye = o
	}
	return false
}

// link returns what there is with a host, made anew when the last handle is of
// no use any more. nil: not now.
func (h *host) link(to int) *link {
	l := h.links[to]
	if l != nil && (!l.dead || l.open > 0) {
		return l
	}
	byes := 0
	if l != nil {
		h.w.model.Closed(l.stream)
		for _, o := range l.stream.ops {
			h.free(o.ID)
		}
		h.w.note("host %d gives up its handle of host %d", h.id, to)
		if err := l.ah.Destroy(); err != nil {
			h.w.model.fail("host %d destroys a handle of which nothing is outstanding: %v", h.id, err)
		}
		byes = l.byes
		if h.w.idle == h.w.Hosts {
			byes++
		}
	}
	ah, err := h.pd.CreateAH(h.w.addr(to))
	if err != nil {
		h.w.model.fail("host %d: handle of host %d: %v", h.id, to, err)
		return nil
	}
	if ah.Lost() {
		return nil
	}
	h.links[to] = &link{ah: ah, stream: h.w.model.Stream(h.life, to), byes: byes}
	return h.links[to]
}

// final looks at everything once more before the host goes.
func (h *host) final() error {
	for to, l := range h.links {
		if l != nil && l.open > 0 {
			h.w.model.fail("host %d: %d requests to host %d never completed", h.id, l.open, to)
		}
	}
	h.look()
	return h.w.model.Err()
}

// close ends a life.
func (h *host) close(crash bool) error {
	h.up = false
	h.tick()
	h.look()
	h.w.note("%v ends, crash %v", h.life, crash)
	if crash {
		h.poll(h.rcq, h.received) // its program may die before it sees them, but they are there
	} else {
		h.destroy()
	}
	if err := h.ctx.Close(); err != nil {
		return err
	}
	h.look()
	h.w.model.End(h.life, crash)
	for _, e := range h.mapped {
		e.release()
	}
	for _, s := range []*slots{h.sends, h.sinks, h.inbox, h.udInbox} {
		s.release()
	}
	return h.w.model.Err()
}

// destroy ends the queue pairs and polls how all that was outstanding ended.
func (h *host) destroy() {
	h.qp.Destroy()
	if h.ud != nil {
		h.ud.Destroy()
	}
	h.reap()
	if h.srq != nil { // its receives are not flushed
		if n, open := h.srq.Len(), h.recvs; n != open {
			h.w.model.fail("host %d: %d receives are left in the shared queue, of %d that have not completed", h.id, n, open)
		}
		h.w.model.Dropped(h.life, h.recvs)
		if err := h.srq.Destroy(); err != nil {
			h.w.model.fail("host %d: destroying the shared receive queue: %v", h.id, err)
		}
	}
}

// from returns the host that a receive completion names.
func (h *host) from(wc *verbs.WC) int {
	a := wc.SrcAddr.AddrPort()
	if wc.Src != nil && wc.Src.Remote() != a {
		h.w.model.fail("host %d: completion with the handle of %v says that it came from %v", h.id, wc.Src.Remote(), a)
	}
	return h.w.hostOf(a)
}
