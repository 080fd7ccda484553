package check

import (
	"errors"

	"github.com/xwarp/xwarp/verbs"
)

// exposed is memory that peers may reach, and the key to it.
type exposed struct {
	*chunk
	region *Region
	grant  *Grant
}

// regionLen is the size of each region that peers may reach.
const regionLen = 4096

// expose registers memory for the peers.
func (h *host) expose() error {
	for _, x := range []struct {
		name   string
		access verbs.Access
	}{
		{"writable", verbs.LocalWrite | verbs.RemoteWrite},
		{"local", verbs.LocalWrite},
	} {
		c, err := newChunk(h.rng, h.pd, h.ctx, max(regionLen, h.w.MaxMsg+1000), x.access)
		if err != nil {
			return err
		}
		r := h.w.model.Region(h.life, x.name, c.bytes())
		h.mapped = append(h.mapped, &exposed{c, r, h.w.model.Grant(r, c.mr.RKey(), 0, len(c.bytes()), x.access)})
	}
	return nil
}

// something does one thing at random.
func (h *host) something() error {
	w := h.w
	if w.Starve && h.rng.IntN(20) == 0 {
		h.goal = h.rng.IntN(inboxSlots + 1)
	}
	switch h.rng.IntN(12) {
	case 0:
		h.look()
		return nil
	case 1:
		if w.Pause > 0 {
			h.task.Sleep(w.Pause / 2)
		}
		return nil
	case 2, 3, 4:
		return h.refill()
	}
	for range 1 + h.rng.IntN(4) {
		to := h.rng.IntN(w.Hosts)
		if to == h.id || h.posted == w.Ops {
			continue
		}
		if l := h.link(to); l != nil && !l.dead {
			h.request(l)
		}
	}
	return nil
}

// size draws the length of a message.
func (h *host) size() int {
	seg := h.ctx.Attr().MaxSeg
	n := pick(h.rng, 0, 1, 7, 8, 9, 64, verbs.MaxInline, verbs.MaxInline+1, seg-1, seg, seg+1, 2*seg+3,
		h.rng.IntN(64), h.rng.IntN(64), h.rng.IntN(300), h.rng.IntN(h.w.MaxMsg))
	return min(n, h.w.MaxMsg)
}

// request posts one request to a peer.
func (h *host) request(l *link) {
	o := &Op{Code: verbs.OpSend, Len: h.size(), Signaled: h.rng.IntN(4) > 0}
	if h.rng.IntN(3) == 0 {
		o.Code = verbs.OpRDMAWrite
		if !h.aim(l, o) {
			return
		}
	} else if len(l.stream.msgs) == 0 {
		o.Len = max(o.Len, 8) // the first tells who it is
	}
	if h.send(l, o) {
		h.posted++
	}
}

// aim chooses what a one-sided request is to reach.
func (h *host) aim(l *link, o *Op) bool {
	peer := h.w.hosts[l.stream.To]
	if peer.life == nil || len(peer.mapped) == 0 {
		return false
	}
	e := peer.mapped[0]
	o.Grant = e.grant
	o.Off = h.rng.IntN(e.grant.Len - o.Len + 1)
	return true
}

// send posts o. It returns false when there is no room now.
func (h *host) send(l *link, o *Op) bool {
	w := h.w
	h.tick()
	w.ops++
	o.ID, o.Life, o.Stream = w.ops<<20|uint64(h.rng.IntN(1<<20)), h.life, l.stream
	wr := verbs.SendWR{WRID: o.ID, Opcode: o.Code, AH: l.ah}
	if o.Signaled {
		wr.Flags |= verbs.Signaled
	}
	if g := o.Grant; g != nil {
		wr.RKey, wr.RemoteAddr = g.Key, uint64(o.Off)
	}
	b := buffer{len: o.Len}
	if o.Len <= verbs.MaxInline && h.rng.IntN(3) == 0 {
		wr.Flags |= verbs.Inline
		wr.InlineData = make([]byte, o.Len)
		Fill(wr.InlineData, o.ID, 0)
	} else {
		slot, ok := h.sends.take()
		if !ok {
			return false
		}
		b.in, b.slot = h.sends, slot
		Fill(h.sends.at(slot)[:o.Len], o.ID, 0)
		wr.NumSGE, wr.SGL = h.sends.scatter(h.rng, slot, o.Len)
	}
	err := h.qp.PostSend(&wr)
	clear(wr.InlineData) // free as soon as PostSend has returned
	if err != nil {
		if b.in != nil {
			b.in.give(b.slot)
		}
		if !errors.Is(err, verbs.ErrQueueFull) {
			if !l.ah.Lost() {
				w.model.fail("host %d: posting %v: %v", h.id, o, err)
			}
			l.dead = true
		}
		return false
	}
	h.used[o.ID] = b
	if o.Signaled {
		l.open++
	}
	w.note("host %d posts %v", h.id, o)
	w.see.Posted(o)
	return true
}
