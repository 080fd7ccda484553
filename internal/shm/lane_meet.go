package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/mem"
)

// A lane is made when somebody sends first, for that direction. The letters are
// like those of datagrams (letter.go):
//
//	call    0 magic, 4 version, 8 rank of the sender, 16 address of the nonce
//	        in its memory, 24 the nonce
//	        descriptors: one end of a socket pair, for the answer; the sender's
//	        eventfd, to tell it that there is room again
//	answer  0 magic, 4 version, 6 status, 8 bytes of the ring, 12 slot,
//	        16 1 when the receiver can read the sender's memory
//	        with status ok, descriptors: the ring, the receiver's board, its
//	        eventfd
//
// The nonce is what the name of the sender is made of. It tells that the
// process whose memory the receiver reads is the one that has called, wherever
// their process ids come from.
const (
	laneMagic     = 0x78_77_6c_61 // "xwla"
	laneVersion   = 1
	nonceLen      = 16
	laneCallLen   = 24 + nonceLen
	laneAnswerLen = 20
)

// laneCall is a letter to a receiver.
type laneCall struct {
	rank  int
	at    uint64 // address of the nonce
	nonce [nonceLen]byte
}

func (c *laneCall) put(b []byte) {
	binary.BigEndian.PutUint32(b, laneMagic)
	binary.BigEndian.PutUint32(b[4:], laneVersion)
	binary.BigEndian.PutUint64(b[8:], uint64(c.rank))
	binary.BigEndian.PutUint64(b[16:], c.at)
	copy(b[24:], c.nonce[:])
}

func (c *laneCall) parse(b []byte) bool {
	if len(b) != laneCallLen || binary.BigEndian.Uint32(b) != laneMagic || binary.BigEndian.Uint32(b[4:]) != laneVersion {
		return false
	}
	c.rank = int(binary.BigEndian.Uint64(b[8:]))
	c.at = binary.BigEndian.Uint64(b[16:])
	copy(c.nonce[:], b[24:])
	return c.rank >= 0
}

// laneAnswer is the answer to it.
type laneAnswer struct {
	status uint16
	ring   int // bytes
	slot   int
	pulls  bool
}

func (a *laneAnswer) put(b []byte) {
	binary.BigEndian.PutUint32(b, laneMagic)
	binary.BigEndian.PutUint16(b[4:], laneVersion)
	binary.BigEndian.PutUint16(b[6:], a.status)
	binary.BigEndian.PutUint32(b[8:], uint32(a.ring))
	binary.BigEndian.PutUint32(b[12:], uint32(a.slot))
	binary.BigEndian.PutUint32(b[16:], 0)
	if a.pulls {
		b[19] = 1
	}
}

// parse reads an answer and accepts only rings that a sender can use.
func (a *laneAnswer) parse(b []byte) bool {
	if len(b) != laneAnswerLen || binary.BigEndian.Uint32(b) != laneMagic || binary.BigEndian.Uint16(b[4:]) != laneVersion {
		return false
	}
	a.status = binary.BigEndian.Uint16(b[6:])
	ring, slot := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	a.ring, a.slot, a.pulls = int(ring), int(slot), b[19] == 1
	return ring >= ringMin && ring <= ringMax && ring&(ring-1) == 0 && slot < lanePeers
}

func laneName(name string) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@xwarp-lane/" + name}
}

// letter is the door's admit: it gives a neighbour a ring.
func (l *Lanes) letter(from *letter) bool {
	var c laneCall
	if !c.parse(from.body) || len(from.fds) != 2 {
		return false
	}
	line, bell := from.fds[0], from.fds[1]
	var body [laneAnswerLen]byte
	a := laneAnswer{status: statusFull, ring: l.cfg.Ring}
	in, fd, err := l.newIn(&c, from)
	if err != nil {
		a.put(body[:])
		reply(line, body[:])
		unix.Close(line)
		unix.Close(bell)
		return true
	}
	a.status, a.slot, a.pulls = statusOK, in.slot, in.pid != 0
	a.put(body[:])
	l.changed.Add(1)
	// Only now: what a sender that has its answer puts must be found at once.
	reply(line, body[:], fd, l.board.fd, l.bell)
	unix.Close(fd)
	go in.line.watch(l.noticed)
	return true
}

// noticed is called when a neighbour is gone.
func (l *Lanes) noticed() {
	l.changed.Add(1)
	ringBell(l.bell)
	l.busy.Done()
}

// newIn makes the ring of a neighbour. It returns the memfd, too, which the
// caller closes.
func (l *Lanes) newIn(c *laneCall, from *letter) (*laneIn, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.ContainsFunc(l.guests, func(in *laneIn) bool { return in.rank == c.rank })
	if l.closed || known || len(l.guests) == lanePeers {
		return nil, -1, ErrPeers
	}
	if err := unix.SetNonblock(from.fds[0], true); err != nil {
		return nil, -1, err
	}
	fd, err := newMemfd(dataAt + l.cfg.Ring)
	if err != nil {
		return nil, -1, err
	}
	b, err := unix.Mmap(fd, 0, dataAt+l.cfg.Ring, readWrite, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, -1, err
	}
	in := &laneIn{
		ring: newRing(b[:dataAt:dataAt], b[dataAt:]), mapped: b, most: l.most,
		rank: c.rank, slot: len(l.guests), bell: from.fds[1],
		line: &lifeline{file: os.NewFile(uintptr(from.fds[0]), "shm")},
	}
	if !l.cfg.NoPull && canPull(from.pid, c) {
		in.pid = from.pid
	}
	in.asleep.Store(wantBell) // perhaps the engine sleeps now; if not, one ring too many does no harm
	l.guests = append(l.guests, in)
	l.arrivals = append(l.arrivals, in)
	l.busy.Add(1)
	return in, fd, nil
}

// meetAll learns who came, who answered and who left.
func (l *Lanes) meetAll() {
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
		n.in, in.lane = in, n
		l.board.cover(in.slot)
		for len(l.slots) <= in.slot {
			l.slots = append(l.slots, nil)
		}
		l.slots[in.slot] = in
		l.heat(in)
	}
	l.strange = still
	for _, n := range l.lanes {
		if n.asked == called && n.out == nil && n.err == nil {
			l.hear(n)
		}
		if n.out != nil && n.line.gone.Load() || n.in != nil && n.in.line.gone.Load() {
			n.lose(ErrGone)
		}
	}
}

// call asks the neighbour for a ring, once.
func (n *Lane) call() {
	if n.asked == called || n.err != nil {
		return
	}
	l := n.lanes
	c := laneCall{rank: l.cfg.Rank, at: mem.AddressOf(l.nonce[:]), nonce: l.nonce}
	var call [laneCallLen]byte
	c.put(call[:])
	line, err := l.knock(laneName(n.name), call[:], l.bell)
	switch {
	case err == nil:
		n.asked, n.line = called, &lifeline{file: os.NewFile(uintptr(line), "shm")}
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
func (l *Lanes) listen(n *Lane) {
	var answer letter
	raw, err := n.line.file.SyscallConn()
	if err == nil {
		var bad error
		err = raw.Read(func(fd uintptr) bool {
			answer, bad = receive(int(fd))
			return !errors.Is(bad, unix.EAGAIN)
		})
		err = errors.Join(err, bad)
	}
	if err != nil {
		answer = letter{}
	}
	l.mu.Lock()
	n.answer = &answer
	l.mu.Unlock()
	l.changed.Add(1)
	ringBell(l.bell)
	n.line.watch(l.noticed)
}

// hear takes the answer of a neighbour if it has come.
func (l *Lanes) hear(n *Lane) {
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
func (n *Lane) accept(from *letter) (*laneOut, error) {
	var a laneAnswer
	switch {
	case len(from.body) == 0:
		return nil, ErrGone
	case !a.parse(from.body):
		return nil, fmt.Errorf("shm: the answer of rank %d makes no sense: is it another version?", n.rank)
	case a.status != statusOK:
		return nil, fmt.Errorf("shm: rank %d: %w", n.rank, ErrPeers)
	case a.ring < n.lanes.cfg.Ring:
		return nil, fmt.Errorf("shm: the ring for rank %d has %d bytes, ours have %d: start all ranks from the same build", n.rank, a.ring, n.lanes.cfg.Ring)
	case len(from.fds) != 3:
		return nil, fmt.Errorf("shm: answer of rank %d has %d descriptors", n.rank, len(from.fds))
	}
	mapped, err := mapMemfd(from.fds[0], dataAt+a.ring)
	if err != nil {
		return nil, err
	}
	page, err := mapMemfd(from.fds[1], boardLen)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(mapped))
	}
	unix.Close(from.fds[0])
	unix.Close(from.fds[1])
	o := &laneOut{
		writer: writer{ring: newRing(mapped[:dataAt:dataAt], mapped[dataAt:]), limit: uint64(a.ring)},
		mapped: mapped, slot: a.slot, bell: from.fds[2], pulls: a.pulls,
	}
	o.board.page = page
	o.board.cover(a.slot)
	from.fds = nil
	return o, nil
}
