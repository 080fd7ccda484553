package shm

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/event"
	"github.com/xwarp/xwarp/internal/base/mem"
)

func channelName(name string) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@xwarp-channel/" + name}
}

// accept is what the listener calls: it gives a neighbour that sends first a ring, for that
// direction, or the segment that it asks for. The nonce of the call tells that the process whose memory is read is the
// one that has called, wherever their process ids come from.
func (l *Channels) accept(from *handshake) bool {
	var c call
	if !parse(from.body, &c) || len(from.fds) != 2 || int(c.Rank) < 0 {
		return l.giveSegment(from)
	}
	a := answer{Ring: uint32(l.cfg.Ring), Most: uint32(l.most)}
	in, fd, err := l.newIn(&c, from, &a)
	if err != nil {
		refuse(from, &a)
		return true
	}
	if a.several() {
		if a.At == 0 {
			mem.Collapse(in.memory.b)
		}
		_ = populate(in.atFirst()) // else each page comes when it is touched
	}
	if in.pid != 0 {
		a.Pulls = 1
	}
	if l.fences {
		a.Fences = 1
	}
	l.grant(in.alive, from.fds[0], &a, fd, l.bitmap.fd)
	return true
}

// newIn makes the ring of a neighbour, and says in an answer where it is. It returns the memfd, too, which the
// caller closes.
func (l *Channels) newIn(c *call, from *handshake, a *answer) (*channelIn, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.ContainsFunc(l.senders, func(in *channelIn) bool { return in.rank == int(c.Rank) })
	if l.closed || known || len(l.senders) == channelPeers {
		return nil, -1, ErrPeers
	}
	if err := unix.SetNonblock(from.fds[0], true); err != nil {
		return nil, -1, err
	}
	m, at, fd, err := l.place()
	if err != nil {
		return nil, -1, err
	}
	b := m.b[at:][:l.ringLen():l.ringLen()]
	a.Slot, a.At, a.Memory = uint32(len(l.senders)), uint32(at), uint32(len(m.b))
	in := &channelIn{
		reader: reader{
			ring: newRing(b[:dataAt:dataAt], b[dataAt:]), most: l.most, slot: len(l.senders),
			alive: &liveness{file: os.NewFile(uintptr(from.fds[0]), "shm")},
		},
		memory: m, rank: int(c.Rank), bell: event.Bell(from.fds[1]),
	}
	if !l.cfg.NoPull && canPull(from.pid, c) {
		in.pid = from.pid
	}
	in.asleep.Store(wantBell) // perhaps the engine sleeps now; if not, one ring too many does no harm
	l.senders = append(l.senders, in)
	l.arrivals = append(l.arrivals, in)
	l.busy.Add(1)
	return in, fd, nil
}

// meetAll takes in which peers came, answered and left.
func (l *Channels) meetAll() {
	l.seen = l.changed.Load()
	l.mu.Lock()
	l.strange = append(l.strange, l.arrivals...)
	l.arrivals = l.arrivals[:0]
	l.mu.Unlock()
	still := l.strange[:0]
	for _, in := range l.strange {
		n := l.byRank[in.rank]
		if n == nil {
			still = append(still, in)
			continue
		}
		n.in, in.channel = in, n
		l.bitmap.cover(in.slot)
		for len(l.slots) <= in.slot {
			l.slots = append(l.slots, nil)
		}
		l.slots[in.slot] = in
		l.heat(in)
	}
	l.strange = still
	for _, n := range l.channels {
		if n.asked == called && n.out == nil && n.err == nil {
			l.hear(n)
		}
		if n.out != nil {
			n.out.late = n.out.fences && l.registered.Load()
		}
		if n.out != nil && n.alive.gone.Load() || n.in != nil && n.in.alive.gone.Load() {
			n.lose(ErrGone)
		}
	}
}

// call asks the neighbour for a ring, once.
func (n *Channel) call() {
	if n.asked == called || n.err != nil {
		return
	}
	l := n.channels
	c := call{Rank: uint64(l.cfg.Rank), At: mem.AddressOf(l.nonce[:]), Nonce: l.nonce}
	line, err := l.request(channelName(n.name), bodyOf(&c), int(l.bell))
	switch {
	case err == nil:
		n.asked, n.alive = called, &liveness{file: os.NewFile(uintptr(line), "shm")}
		l.busy.Add(1)
		go l.listen(n)
	case errors.Is(err, unix.ECONNREFUSED):
		n.lose(ErrGone)
	case errors.Is(err, unix.EAGAIN):
		n.asked = busy
	default:
		n.err = err
	}
}

// listen waits for the answer to a call and then for the end of the neighbour.
func (l *Channels) listen(n *Channel) {
	answer, _ := awaitAnswer(n.alive.file) // none where that fails
	l.mu.Lock()
	n.answer = &answer
	l.mu.Unlock()
	l.changed.Add(1)
	l.bell.Ring()
	n.alive.watch(l.ended)
}

// hear takes the answer of a neighbour if it has come.
func (l *Channels) hear(n *Channel) {
	l.mu.Lock()
	answer := n.answer
	n.answer = nil
	l.mu.Unlock()
	if answer == nil {
		return
	}
	out, err := n.accept(answer)
	answer.discard()
	if errors.Is(err, ErrGone) {
		n.lose(err)
	}
	n.out, n.err = out, err
}

// accept maps what an answer brings.
func (n *Channel) accept(from *handshake) (*channelOut, error) {
	var a answer
	switch {
	case len(from.body) == 0:
		return nil, ErrGone
	case !parse(from.body, &a) || !a.usable():
		return nil, fmt.Errorf("shm: the answer of rank %d makes no sense: is it another version?", n.rank)
	case a.Status != statusOK:
		return nil, fmt.Errorf("shm: rank %d: %w", n.rank, ErrPeers)
	case int(a.Ring) < n.channels.cfg.Ring:
		return nil, fmt.Errorf("shm: the ring for rank %d has %d bytes, ours have %d: start all ranks from the same build", n.rank, a.Ring, n.channels.cfg.Ring)
	case len(from.fds) != 3:
		return nil, fmt.Errorf("shm: answer of rank %d has %d descriptors", n.rank, len(from.fds))
	}
	page, err := mapMemfd(from.fds[2], bitmapLen)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(&a, from.fds[0], from.fds[1])
	if err != nil {
		return nil, errors.Join(err, mem.Unmap(page))
	}
	w.short = shortRecords
	o := &channelOut{writer: w, slot: int(a.Slot), pulls: a.Pulls == 1, fences: a.Fences == 1, bitmap: bitmap{page: page}}
	o.bitmap.cover(o.slot)
	if a.several() {
		_ = populate(o.atFirst()) // the receiver has done so, too
	}
	unix.Close(from.fds[0])
	unix.Close(from.fds[2])
	from.fds = nil
	return o, nil
}
