package rma

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi/internal/adapt"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Ghosts tell one another what ranks want (adapt.Exchange) while these call nothing, and Puts and Gets follow at
// once: no two of them have an order, so they may be done by any process that has the memory. Accumulates
// may not, nor do locks.
//
// What a rank wants it writes to a board, memory that it has in common with the ghosts of its host. The
// first of these that lives reads that once an interval, tells the first ones of the other hosts, and
// writes to its board what it knows of all ranks of the job. The origin of a Put or a Get looks there.

// board is that memory. Its words are: how many probes have begun; from boardLine on, for each rank of the
// host by its number there, what it wants and how many calls it has begun and ended (see
// adapt.Exchange.Look), on a cache line of its own; and behind those what serves each rank of the job: 1, not a ghost.
type board []uint32

const boardLine = 16 // words

// boardSize returns how many bytes one has for so many ranks, some of which are of its host.
func boardSize(ranks, here int) int { return 4 * (boardLine*(1+here) + ranks) }

func (b board) probes() *uint32 { return &b[0] }

// says returns the two words of the rank with a number on the host, the first one being 1.
func (b board) says(client int32) []uint32 { return b[boardLine*client:][:2] }

// off returns the word of a rank of World, of so many.
func (b board) off(rank, ranks int) *uint32 { return &b[len(b)-ranks+rank] }

// Boards are those of the ghosts of a rank's host.
type Boards struct {
	in       p2p.Inside
	ghosts   []int32
	of       []board
	segments []*p2p.Segment
	client   int32 // this rank
	ranks    int   // of the job
	first    int   // ghost that is not lost
}

// Boards asks the ghosts of this host for theirs. interval is of what they do. nil: they have none.
func (of Service) Boards(interval mono.Duration) (*Boards, error) {
	w := of.w
	home := w.target(w.me).home
	kept := w.spread.serving
	w.spread.serving = nil
	for _, ghost := range w.ghosts.on[home] {
		if !w.in.Lost(ghost) {
			w.spread.serving = append(w.spread.serving, service{Other: Other{World: ghost}, given: true})
		}
	}
	body := binary.BigEndian.AppendUint64(nil, uint64(interval))
	client := w.ghosts.Client[home]
	err := ordersIn(w, w.context, sayBoard|client<<clientShift, body)
	told := w.spread.serving
	w.spread.serving = kept
	if err != nil {
		return nil, err
	}
	b := &Boards{in: w.in, client: client, ranks: len(w.ghosts.Of)}
	for _, s := range told {
		if !s.given {
			continue
		}
		size := boardSize(b.ranks, len(w.ghosts.neighbours(s.World)))
		segment, err := w.in.Segments().Open(s.World, s.Addr, size)
		if err != nil { // nor will that ghost serve anything
			continue
		}
		b.ghosts, b.segments = append(b.ghosts, s.World), append(b.segments, segment)
		b.of = append(b.of, mem.ScalarsOf[uint32](segment.Bytes()[:size]))
	}
	if len(b.of) == 0 {
		return nil, nil
	}
	return b, nil
}

// Follow makes Puts and Gets of a window follow boards.
func (of Service) Follow(b *Boards) { of.w.boards = b }

// Say writes what this rank wants. Any goroutine may call it, one at a time.
func (b *Boards) Say(want adapt.State, calls uint32) {
	for _, one := range b.of { // of all ghosts, for only those inside know which of them are lost
		says := one.says(b.client)
		if atomic.LoadUint32(&says[0]) != uint32(want) {
			atomic.StoreUint32(&says[0], uint32(want))
		}
		atomic.StoreUint32(&says[1], calls)
	}
}

// Probes returns how many probes have begun.
func (b *Boards) Probes() (n uint32) {
	for _, one := range b.of {
		n += atomic.LoadUint32(one.probes())
	}
	return n
}

// on reports whether ghosts are to do what a rank of World is asked for. known: a ghost tells.
func (b *Boards) on(rank int32) (on, known bool) {
	for b.first < len(b.of) && b.in.Lost(b.ghosts[b.first]) {
		b.first++
	}
	if b.first == len(b.of) {
		return false, false
	}
	return atomic.LoadUint32(b.of[b.first].off(int(rank), b.ranks)) == 0, true
}

// Close ends the use of boards. Windows that follow them do so no more.
func (b *Boards) Close() {
	b.of = nil
	b.first = 0
	for _, s := range b.segments {
		_ = s.Close() // it was mapped by this process
	}
	b.segments = nil
}

// follow returns the target for a Put or Get on the memory of a rank, now.
func follow(w *flow, rank int32, t *target) (int32, *target) {
	if on, known := w.boards.on(t.home); known && on != (t.client != 0) {
		if i := t.Own.twin; !w.in.Lost(w.targets[i].world) {
			return i, &w.targets[i]
		}
	}
	return rank, t
}

// pair makes twins for ranks whose Puts and Gets are to follow boards. Meet has made room for them.
func pair(w *flow) {
	for i := range w.ranks {
		if t := &w.targets[i]; t.Follows && t.Client != 0 && t.Own.twin == 0 && i != int(w.me) && w.boards != nil {
			t.Own.twin = int32(len(w.targets))
			w.targets = append(w.targets, target{Remote: Remote{Size: t.Size, Unit: t.Unit, Client: t.Client, Words: t.Words}, home: t.home})
			mirror(w, &w.targets[i])
		}
	}
}

// mirror makes the twin of a target the one of the two, the ghost and the rank, that the target is not.
func mirror(w *flow, t *target) {
	if t.Own.twin == 0 {
		return
	}
	x := &w.targets[t.Own.twin]
	x.Key, x.Addr = t.Own.Key, t.Own.Addr
	assign(w, x, t.client == 0)
	w.reach(t.Own.twin, x)
}

// ghostBoard is what a ghost has of a board.
type ghostBoard struct {
	board
	segment  *p2p.Segment
	exchange *adapt.Exchange
	interval mono.Duration
	next     mono.Time
	due      bool
	said     []byte
	waits    []bool // by ghost: it has not answered yet, so there is one message under way at most
}

// Poll implements progress.Source: it only sees that an interval is over.
func (g *Ghost) Poll(now mono.Time, _ int) int {
	b := &g.told
	if b.segment == nil || now < b.next {
		return 0
	}
	b.next, b.due = now.Add(b.interval), true
	return 1
}

// Deadline implements progress.Source.
func (g *Ghost) Deadline() mono.Time {
	if g.told.segment == nil {
		return mono.Never
	}
	return g.told.next
}

// openBoard tells a rank of this host where the board is.
func (g *Ghost) openBoard(context uint32, source, client int32, body []byte) bool {
	if len(body) != 8 {
		return false
	}
	interval := mono.Duration(binary.BigEndian.Uint64(body))
	var id [8]byte
	a := p2p.Active{Context: context, What: sayServed | client<<clientShift}
	b := &g.told
	if b.segment == nil && interval > 0 { // else the rank is told that there is none: it waits for an answer
		ranks, here := len(g.ghosts.Of), len(g.ghosts.neighbours(g.me))
		size := boardSize(ranks, here)
		if segment, err := g.in.Segments().New(size); err == nil {
			b.segment, b.board, b.interval = segment, mem.ScalarsOf[uint32](segment.Bytes()[:size]), interval
			b.exchange, b.waits = adapt.NewExchange(ranks, here), make([]bool, len(g.ghosts.ranks))
		}
	}
	if b.segment != nil {
		binary.BigEndian.PutUint64(id[:], b.segment.ID())
		a.Data = id[:]
	}
	g.in.Answer(source, &a)
	return true
}

// Turn goes on with what steps cannot do: messages that are sent for ranks, and if g leads the ghosts of its host, it
// tells others what its ranks want.
func (g *Ghost) Turn() {
	p2p.Delegations(g.in).Turn()
	b := &g.told
	here := g.ghosts.neighbours(g.me)
	if !b.due {
		return
	}
	b.due = false
	if !g.leads(g.me) {
		return
	}
	b.exchange.Begin()
	for i, rank := range here {
		says := b.says(int32(i + 1))
		want := adapt.State(min(atomic.LoadUint32(&says[0]), uint32(adapt.Probe)))
		b.exchange.Look(rank, i, want, atomic.LoadUint32(&says[1]))
	}
	g.write()
	b.said = b.exchange.Say(b.said[:0], here)
	for i := range g.ghosts.ranks {
		ghost := int32(len(g.ghosts.Of) + i)
		if others := g.ghosts.neighbours(ghost); len(others) == 0 || others[0] == here[0] || !g.leads(ghost) || b.waits[i] {
			continue
		}
		a := p2p.Active{What: sayWants, Data: b.said[:min(len(b.said), g.in.ActiveMax(ghost))]}
		b.waits[i] = g.in.TryActive(ghost, &a) // without room now, the next one says all again
	}
}

// leads reports whether a ghost is the first one of its host that is not lost.
func (g *Ghost) leads(ghost int32) bool {
	for _, other := range g.ghosts.on[g.ghosts.neighbours(ghost)[0]] {
		if other == ghost || !g.in.Lost(other) {
			return other == ghost
		}
	}
	return false
}

// hear takes in what the ghost of another host says of its ranks, or that it has heard.
func (g *Ghost) hear(source, what int32, body []byte) bool {
	of, b := g.ghosts.neighbours(source), &g.told
	switch {
	case of == nil:
		return false
	case what == sayFlushed:
		if b.segment != nil {
			b.waits[int(source)-len(g.ghosts.Of)] = false
		}
		return true
	case b.segment != nil: // else no rank here has asked
		if !b.exchange.Hear(of, body) {
			return false
		}
		g.write()
	}
	g.in.Answer(source, &p2p.Active{What: sayFlushed})
	return true
}

// write writes to the board what has changed.
func (g *Ghost) write() {
	b := &g.told
	set := func(word *uint32, to uint32) {
		if *word != to {
			atomic.StoreUint32(word, to)
		}
	}
	for rank := range g.ghosts.Of {
		off := uint32(1)
		if b.exchange.On(int32(rank)) {
			off = 0
		}
		set(b.off(rank, len(g.ghosts.Of)), off)
	}
	set(b.probes(), b.exchange.Probes())
}

// Close ends the use of what a ghost has of its own.
func (g *Ghost) Close() {
	if g.told.segment != nil {
		_ = g.told.segment.Close() // it was mapped by this process
		g.told.segment = nil
	}
}
