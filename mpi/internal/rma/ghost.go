package rma

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Ghost is what a ghost does: it serves memory of ranks of its host for the windows that it
// is of. It takes part in no epoch and no collective, so that no rank ever waits for more
// than its next step: an epoch of whatever kind is locks and flushes to it.
type Ghost struct {
	in     p2p.Inside
	me     int32
	ghosts *Ghosts
	served [][]*served // by context/2 and client
	told   ghostBoard
}

// served is a window's memory of a rank.
type served struct {
	server
	owner   int32
	mr      *p2p.Region  // or nil
	segment *p2p.Segment // or nil: there is no memory
}

// NewGhost returns what serves the clients of the process number me in World. The caller
// closes it.
func NewGhost(in p2p.Inside, me int32, ghosts *Ghosts) *Ghost {
	return &Ghost{in: in, me: me, ghosts: ghosts}
}

// Serve implements p2p.Server.
func (g *Ghost) Serve(context uint32, source, what int32, id uint32, body []byte) bool {
	client := what >> clientShift
	what &= 1<<clientShift - 1
	if what == sayWants || what == sayFlushed && client == 0 {
		return g.hear(source, what, body)
	}
	owner := g.ghosts.rank(g.me, client)
	if owner < 0 || int(source) >= len(g.ghosts.Of) {
		return false
	}
	switch what {
	case sayServe:
		return source == owner && g.open(context, source, client, body)
	case sayBoard:
		return source == owner && g.openBoard(context, source, client, body)
	}
	s := g.find(context, client)
	switch {
	case s == nil || *s == nil:
		return false
	case what == sayLeave:
		return source == owner && g.close(s)
	}
	return (*s).take(source, what, id, body)
}

// Lost implements p2p.Server: the locks of a lost rank are free.
func (g *Ghost) Lost(source int32) {
	for _, clients := range g.served {
		for _, s := range clients {
			if s != nil && int(source) < len(g.ghosts.Of) {
				s.lose(source)
			}
		}
	}
}

// find returns where a window's memory of a rank is kept, or nil.
func (g *Ghost) find(context uint32, client int32) **served {
	if int(context/2) >= len(g.served) || int(client) >= len(g.served[context/2]) {
		return nil
	}
	return &g.served[context/2][client]
}

// open begins to serve memory, or tells that it cannot: then the rank does it itself.
func (g *Ghost) open(context uint32, source, client int32, body []byte) bool {
	if len(body) != serveLen {
		return false
	}
	for int(context/2) >= len(g.served) {
		g.served = append(g.served, nil)
	}
	clients := &g.served[context/2]
	for int(client) >= len(*clients) {
		*clients = append(*clients, nil)
	}
	s := &served{owner: source, server: server{in: g.in, context: context, client: client, me: g.me, ranks: len(g.ghosts.Of)}}
	var addr [8]byte
	a := p2p.Active{What: sayServed}
	if key, ok := s.attach(binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:])); ok {
		if old := (*clients)[client]; old != nil { // its rank has not taken leave of it
			old.detach()
		}
		(*clients)[client] = s
		binary.BigEndian.PutUint64(addr[:], key.Addr)
		a.ID, a.Data = key.Key, addr[:]
	}
	s.answer(source, &a)
	return true
}

// attach maps a segment of its rank, lets others write and read it, and sends from it.
func (s *served) attach(id, size uint64) (r Remote, ok bool) {
	if size == 0 {
		return r, true
	}
	var err error
	if s.segment, err = s.in.Segments().Open(s.owner, id, int(size)); err != nil {
		return r, false
	}
	s.mem = s.segment.Bytes()[:size:size]
	if s.mr, err = s.in.Expose(s.mem); err != nil {
		s.detach()
		return r, false
	}
	p2p.Delegations(s.in).Map(s.owner, s.mr.RKey(), s.mem)
	return Remote{Key: s.mr.RKey(), Addr: s.mr.Addr()}, true
}

// detach is the opposite. Answers to Reads that are sent again find no registration any
// more, and do not look at the memory.
func (s *served) detach() {
	switch {
	case s.mr != nil:
		key := s.mr.RKey()
		_ = s.mr.Dereg() // no memory window is bound to it
		p2p.Delegations(s.in).Unmap(s.owner, key, s.segment)
	case s.segment != nil:
		_ = s.segment.Close() // it was mapped by us
	}
	s.mr, s.segment, s.mem = nil, nil, nil
}

// close ends the service. No rank operates on the memory any more.
func (g *Ghost) close(at **served) bool {
	s := *at
	*at = nil
	s.detach()
	s.tell(g.ghosts.rank(g.me, s.client), sayServed, 0)
	return true
}

// serveLen is the length of the body of a sayServe: number and bytes of the segment.
const serveLen = 16

// Service is how this rank has its memory served by ghosts.
type Service struct{ w *flow }

// ServiceOf returns that of a window. It is for code that is inside.
func ServiceOf(w *Window) Service { return Service{&w.flow} }

// lending is memory of this rank that its ghost may send from, and receive into.
type lending struct {
	mem   []byte
	ghost int32
	key   uint32
	addr  uint64
}

// set has the ghost send from it, or not.
func (l *lending) set(in p2p.Inside, on bool) {
	switch d := p2p.Delegations(in); {
	case len(l.mem) == 0:
	case on:
		d.Lend(l.mem, l.ghost, l.key, l.addr)
	default:
		d.TakeBack(l.ghost, l.key)
	}
}

// service is what a ghost does for this rank, by its own word.
type service struct {
	Other
	asked bool // it has not answered yet
	given bool
}

// Serve asks the ghost of this rank to serve its memory, a segment of so many bytes, and, if the
// window is bound to several, those beside it to serve Puts and Gets. It returns
// what others are to know of it; a Client of 0: the ghost cannot. The ghost of this rank sends from it, too.
func (of Service) Serve(segment uint64, memory []byte) (r Remote, err error) {
	w, size := of.w, uint64(len(memory))
	var body [serveLen]byte
	binary.BigEndian.PutUint64(body[:], segment)
	binary.BigEndian.PutUint64(body[8:], size)
	t := w.target(w.me)
	t.Client = 0
	ghosts := w.ghosts.on[t.home]
	if w.spread.binding == ByRank || size == 0 {
		ghosts = w.ghosts.Of[t.home : t.home+1]
	}
	w.spread.serving = w.spread.serving[:0]
	for _, ghost := range ghosts {
		if !w.in.Lost(ghost) {
			w.spread.serving = append(w.spread.serving, service{Other: Other{World: ghost}, given: true})
		}
	}
	if err = orders(w, sayServe, body[:]); err != nil {
		return t.Remote, err
	}
	for _, s := range w.spread.serving {
		switch {
		case !s.given:
		case s.World == w.ghosts.Of[t.home]:
			t.Client, t.Key, t.Addr = w.ghosts.Client[t.home], s.Key, s.Addr
			w.spread.lent = lending{memory, s.World, s.Key, s.Addr}
			w.spread.lent.set(w.in, true)
		default:
			t.Others = append(t.Others, s.Other)
		}
	}
	return t.Remote, nil
}

// served takes the answer of a ghost: it serves the memory at an address, or, without one, not.
func (of Service) served(ghost int32, key uint32, addr []byte) bool {
	w := of.w
	if len(addr) != 0 && len(addr) != 8 {
		return false
	}
	for i := range w.spread.serving {
		if s := &w.spread.serving[i]; s.World == ghost && s.asked {
			if s.asked, s.given = false, s.given && len(addr) == 8; s.given {
				s.Key, s.Addr = key, binary.BigEndian.Uint64(addr)
			}
			return true
		}
	}
	return false
}

// Leave ends the service, when no rank operates on the memory any more. Ghosts that are lost
// have left.
func (of Service) Leave() error {
	w := of.w
	w.spread.lent.set(w.in, false)
	kept := w.spread.serving[:0]
	for _, s := range w.spread.serving {
		if s.given && !w.in.Lost(s.World) {
			kept = append(kept, s)
		}
	}
	w.spread.serving = kept
	err := orders(w, sayLeave, nil)
	for _, s := range kept {
		if w.in.Lost(s.World) && !w.over() {
			return nil
		}
	}
	return err
}

// orders sends a message to the ghosts that serve this rank, and waits for their answers: for each
// overlapping window, last for the one that others ask for its memory. Ghosts that are lost do not end it: each
// one that lives has heard all and has nothing left to answer, so that the next orders take no answer for theirs.
func orders(w *flow, what int32, body []byte) (err error) {
	if len(w.spread.serving) == 0 {
		return nil
	}
	client := w.ghosts.Client[w.target(w.me).home]
	own := w.layers.of(client, w.context)
	for _, context := range w.layers {
		if context == own {
			continue
		}
		if err = join(err, ordersIn(w, context, what|client<<clientShift, body)); err != nil && w.over() {
			return err
		}
	}
	return join(err, ordersIn(w, own, what|client<<clientShift, body))
}

func ordersIn(w *flow, context uint32, what int32, body []byte) (lost error) {
	all := w.spread.serving
	for i := range all {
		a := p2p.Active{Context: context, What: what, Data: body}
		for all[i].asked = true; all[i].asked; {
			if err := all[i].look(w); err != nil {
				lost = err
			} else if w.in.TryActive(all[i].World, &a) {
				break
			} else {
				w.in.Progress()
			}
			if lost != nil && w.over() {
				return lost
			}
		}
	}
	for i := range all {
		for all[i].asked {
			if err := all[i].look(w); err != nil {
				lost = err
			} else {
				w.in.Progress()
			}
			if lost != nil && w.over() {
				return lost
			}
		}
	}
	return lost
}

// look expects nothing more of a ghost that is lost, and tells why.
func (s *service) look(w *flow) error {
	err := w.in.Trouble(w.context, s.World)
	if err != nil {
		s.asked, s.given = false, false
	}
	return err
}
