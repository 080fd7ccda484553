package shm

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ChannelsConfig describes the channels of a process. The zero value of everything
// but Rank means the default.
type ChannelsConfig struct {
	// Rank is the number by which neighbours know this end.
	Rank int
	// Ring is how many bytes a channel holds in one direction, a power of two;
	// default 256 KiB, or as much as Message wants. 4 KiB more come with each direction.
	// Of the first neighbours memory is taken at once, a huge page for seven of them; of others when it is used.
	Ring int
	// Message is how long the longest message at least may be, in bytes.
	Message int
	// NoPull does without process_vm_readv(2), as if it were forbidden.
	NoPull bool
}

const (
	channelRing  = 256 << 10
	channelPeers = bitmapWords * 64
)

// Channels joins a process with its neighbours: those on the same host and of the
// same user. A channel is reliable and ordered, and messages are read where they
// lie; see [Channel]. Unlike a [Datagram] it never drops anything: what finds no
// room is the sender's to offer again.
//
// Each neighbour that sends has a ring of its own here, made when it sends
// first (ring.go; meeting in channel_meet.go, memory in channel_memory.go). One that dies, or writes nonsense there,
// spoils that ring and nothing else. A step looks at a few rings only: those
// which had something last. A sender into another one sets its bit in a bitmap
// that all neighbours share (channel_poll.go).
//
// Owner: engine.
type Channels struct {
	listener
	cfg    ChannelsConfig
	name   string
	site   string
	nonce  [nonceLen]byte // of the name; where it lies is in the call, for pull to be tried
	bitmap bitmap
	most   int // largest message in bytes

	channels []*Channel
	byRank   map[int]*Channel
	slots    []*channelIn // of those to read from, by slot
	strange  []*channelIn // of senders that Add has not told of
	hot      []*channelIn // looked at in every step
	turn     int          // which of them to begin with
	left     int          // how many messages it may still hand out in a row
	victim   int          // whose place the next hot one takes
	seen     uint32       // listener.changed when meet was called last
	tick     uint32       // calls of Next
	reading  *channelIn   // whose message the caller has
	leaving  int          // channels whose neighbour is gone and not reported
	sleeping bool         // neighbours were told to ring the bell
	fences   bool         // a long sleep begins with a fence of theirs

	registered atomic.Bool // fences of neighbours are executed by this process

	pull puller

	meeting
}

// OpenChannels makes the end of a process, which neighbours reach by its Name in
// this network namespace. The caller closes it.
func OpenChannels(c ChannelsConfig) (*Channels, error) {
	if c.Ring == 0 {
		for c.Ring = channelRing; channelMost(c.Ring) < c.Message && c.Ring < ringMax; c.Ring *= 2 {
		}
	}
	if c.Rank < 0 {
		return nil, fmt.Errorf("shm: ChannelsConfig.Rank is %d", c.Rank)
	}
	if c.Ring < ringMin || c.Ring > ringMax || c.Ring&(c.Ring-1) != 0 {
		return nil, fmt.Errorf("shm: ChannelsConfig.Ring is %d: want a power of two from %d to %d", c.Ring, ringMin, ringMax)
	}
	l := &Channels{cfg: c, most: channelMost(c.Ring), byRank: map[int]*Channel{}}
	if l.fences = fencing(); l.fences {
		go l.join() // before there are messages, if possible
	}
	_, _ = rand.Read(l.nonce[:]) // never fails
	if err := l.openAll(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// join has this process execute fences of neighbours.
func (l *Channels) join() {
	if register() {
		l.registered.Store(true)
		l.changed.Add(1)
	}
}

func (l *Channels) openAll() (err error) {
	if err = l.openBell(); err != nil {
		return err
	}
	if err = l.bitmap.open(); err != nil {
		return err
	}
	if l.site, err = site(); err != nil {
		return err
	}
	l.name = hex.EncodeToString(l.nonce[:]) + l.site
	l.hot = make([]*channelIn, 0, hotMax)
	sock, err := rendezvous(channelName(l.name))
	if err != nil {
		return fmt.Errorf("shm: a socket for neighbours: %w", err)
	}
	l.listener.open(sock, l.accept)
	return nil
}

// channelMost returns the longest message in bytes that a ring of this size
// carries. A reader tells what it has read a quarter of the ring late at most, and up
// to one record is skipped where the ring ends, or more in front of a shorter one (writer.reserve); so a
// sender always finds room in the end.
func channelMost(ring int) int { return ring/8*3 - 2*granule - headerLen }

// Name returns the name by which neighbours find this end, a word of at most 64
// characters. Any process of the same user that has it can send.
func (l *Channels) Name() string { return l.name }

// Near reports whether a name is that of an end that can be reached from here.
func (l *Channels) Near(name string) bool {
	return len(name) > nonceLen*2 && name[nonceLen*2:] == l.site
}

// site returns what ends have in common that reach one another, of those on one
// host: the network namespace and the user.
func site() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return "", fmt.Errorf("shm: the network namespace of this process: %w", err)
	}
	return fmt.Sprintf("-%x-%x", st.Ino, os.Getuid()), nil
}

// MaxMessage returns the length in bytes of the longest message.
func (l *Channels) MaxMessage() int { return l.most }

// Add makes a neighbour known by its rank and the name of its end. Nothing
// happens until a peer sends. There is one channel for each rank.
func (l *Channels) Add(rank int, name string) (*Channel, error) {
	if !l.Near(name) {
		return nil, fmt.Errorf("shm: rank %d has told %.64q as the name of its channels, which is not near %s", rank, name, l.name)
	}
	if l.byRank[rank] != nil || len(l.channels) == channelPeers || rank == l.cfg.Rank {
		return nil, fmt.Errorf("shm: rank %d is one neighbour too many: there are %d already", rank, len(l.channels))
	}
	n := &Channel{channels: l, rank: rank, name: name}
	l.channels = append(l.channels, n)
	l.byRank[rank] = n
	l.changed.Add(1) // it may have come before
	return n, nil
}

// FD returns an eventfd for poll(2), and makes it readable when there is
// something to do, or neighbours ring it when there will be. So call it before
// each wait: no peer rings it once Next was called again. It is always the same.
func (l *Channels) FD() int {
	fd := l.Doze()
	if l.fences && !l.settle() {
		l.bell.Ring()
	}
	return fd
}

// settle has neighbours see what arm has told them, and reports whether there is nothing that they put before.
func (l *Channels) settle() bool {
	return len(l.slots) == 0 || fence() && !l.pressing()
}

// settleLooks take 1 us or more: a store comes to the other cores in a fraction of that.
const settleLooks = 500

// Doze is FD for a wait of some milliseconds at most. It takes less time, but neighbours may fail to ring for what
// they put at that moment, if a record takes longer to come than these looks (fence.go).
func (l *Channels) Doze() int {
	l.bell.Quiet()
	l.arm()
	looks := 1
	if l.fences {
		looks += settleLooks / (1 + len(l.slots))
	}
	for ; looks > 0; looks-- {
		if l.pressing() { // only now: what came before was not rung for
			l.bell.Ring()
			break
		}
	}
	return int(l.bell)
}

// arm tells neighbours to ring the bell.
func (l *Channels) arm() {
	l.sleeping = true
	for _, in := range l.slots {
		if in != nil {
			in.asleep.Store(wantBell)
		}
	}
}

// pressing reports whether the engine must not sleep. A sender that waits for room asks
// to be rung for it.
func (l *Channels) pressing() bool {
	if l.changed.Load() != l.seen || l.leaving > 0 {
		return true
	}
	for _, in := range l.slots {
		if in != nil && in.waiting() {
			return true
		}
	}
	for _, n := range l.channels {
		if n.asked == busy || n.out != nil && n.out.full && n.out.askForSpace() {
			return true
		}
	}
	return false
}

// Close ends all channels. Neighbours notice, and read first what was put. What
// was not read here is lost.
func (l *Channels) Close() error {
	l.mu.Lock()
	l.closed = true
	for _, in := range l.senders {
		in.alive.close()
	}
	for id, fd := range l.segments {
		unix.Close(fd)
		delete(l.segments, id)
	}
	l.mu.Unlock()
	for _, n := range l.channels {
		if n.alive != nil {
			n.alive.close()
		}
	}
	var errs []error
	if l.file != nil {
		errs = append(errs, l.listener.close())
		l.file = nil
	}
	for _, in := range l.senders {
		errs = append(errs, in.bell.Close())
	}
	for _, m := range l.memory {
		errs = append(errs, m.close())
	}
	for _, n := range l.channels {
		if n.out != nil {
			errs = append(errs, n.out.unmap())
		}
		if n.answer != nil {
			n.answer.discard()
		}
		n.out, n.in = nil, nil
	}
	l.channels, l.senders, l.memory, l.arrivals, l.slots, l.hot, l.strange = nil, nil, nil, nil, nil, nil, nil
	return errors.Join(append(errs, l.bitmap.close(), l.bell.Close())...)
}
