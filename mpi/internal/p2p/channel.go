package p2p

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/mpi/internal/match"
)

// Ranks of one host reach one another through shared memory. A message that is
// eager is one copy in and one out of a ring. Of a long one the receiver learns
// where it lies, and copies it from there, the sender's memory into its own; so
// there is neither CTS nor Write:
//
//	RTS ->  length, address, guard
//	        the receiver finds the matching receive and pulls
//	<- FIN  the sender may have its memory back
//
// Where that is forbidden, and for what a datatype scatters, the receiver asks
// for a stream (data.go).
//
// A rank decides with its first message to a neighbour whether it goes by a channel
// or through the network; the two directions decide for themselves.

// Spins are looks at the channels before a step of the engine, which looks at the
// network too: that may be a system call, a hundred times as long. A step comes
// before a rank gives its core away, too: 8 ranks on 4 cores take 66 us for a
// barrier when they spin for long and 32 when they do not.
const (
	spinsMost  = 200 // after something came
	spinsLeast = 4   // when nothing came for long, or cores are scarce
	hitsMost   = 32  // messages in a row before the network has its turn
	stepEvery  = 4   // questions whether something is done before it has
)

// neighbours is what reaches the ranks of this host.
type neighbours struct {
	ep       *Endpoint
	channels *shm.Channels // or nil
	batch    channelBatch
	pullCost *shm.PullCost // nil: not measured yet; zero: that has failed
}

// openChannels opens this rank's end of all channels, where there can be any.
func (nb *neighbours) open() error {
	ep := nb.ep
	if !ep.cfg.Shared || ep.cfg.Size == 1 {
		return nil
	}
	l, err := shm.OpenChannels(shm.ChannelsConfig{Rank: ep.cfg.Rank, NoPull: ep.cfg.NoPull, Message: headerLen + ep.cfg.EagerNear})
	if err != nil {
		return fmt.Errorf("no shared memory for the ranks of this host: %w (XWARP_SHARED=0 does without)", err)
	}
	if !ep.eng.WatchBell(l) {
		return l.Close() // nothing wakes this engine: it is of a simulation
	}
	nb.channels, ep.maxSpins = l, spinsMost
	if ep.eng.Crowded() {
		ep.maxSpins = spinsLeast
	}
	return nil
}

func (nb *neighbours) close() error {
	if nb.channels == nil {
		return nil
	}
	nb.ep.eng.Unwatch(nb.channels.FD())
	err := nb.channels.Close()
	nb.channels, nb.batch.last, nb.batch.way = nil, nil, nil
	return err
}

// site returns what the card says of the channels.
func (nb *neighbours) site() string {
	if nb.channels == nil {
		return ""
	}
	return fmt.Sprintf(" %s=%d:%s %s=%d", cardChannel, nb.ep.cfg.Host, nb.channels.Name(), cardNear, nb.most())
}

// nearMost returns the length of the longest message that this end's channels may carry.
func (nb *neighbours) most() int {
	if nb.ep.cfg.Calibrate {
		return nb.channels.MaxMessage() - headerLen
	}
	return nb.ep.cfg.EagerNear
}

// meetChannel gives a peer a channel, if it is near.
func (nb *neighbours) meet(i int, p *peer, c *card) error {
	ep := nb.ep
	if nb.channels == nil || c.host != ep.cfg.Host || !nb.channels.Near(c.channel) {
		return nil
	}
	way, err := nb.channels.Add(i, c.channel)
	if err != nil {
		return err
	}
	p.near, p.channel = way, way
	p.eagerMax = int32(min(ep.cfg.EagerNear, c.near))
	if p.eagerCap = p.eagerMax; ep.cfg.Calibrate {
		p.tune = &tuner{}
		p.eagerCap = int32(min(nb.most(), c.near))
	}
	return nil
}

// parseSite reads what site wrote.
func parseSite(s string) (host int, name string, err error) {
	number, name, _ := strings.Cut(s, ":")
	host, err = strconv.Atoi(number)
	return host, name, err
}

// putEager sends a message. false means no room.
func (nb *neighbours) putEager(env match.Envelope, p *peer, buf []byte) bool {
	nb.flush()
	b, ok := p.channel.Reserve(headerLen + len(buf))
	if !ok {
		return nb.noRoom(p)
	}
	h := header{kind: kindEager, context: env.Context, source: nb.ep.rank, tag: env.Tag}
	h.put(b)
	if len(buf) >= tuneTimed && p.tune.due() {
		nb.copyTimed(p, b[headerLen:], buf)
	} else {
		copy(b[headerLen:], buf)
	}
	p.channel.Commit(headerLen + len(buf))
	p.used = true
	nb.ep.groups.counted(env.Context, true)
	return true
}

// put sends a header and the next n bytes of d. false means no room.
func (nb *neighbours) put(p *peer, h *header, d *data, n int) bool {
	nb.flush()
	b, ok := p.channel.Reserve(headerLen + n)
	if !ok {
		return nb.noRoom(p)
	}
	h.put(b)
	switch {
	case n >= tuneTimed && !d.typed && p.tune.due():
		nb.copyTimed(p, b[headerLen:], d.buf)
	case n > 0:
		d.peek(b[headerLen:])
	}
	p.channel.Commit(headerLen + n)
	p.used = true
	return true
}

// putHead sends the first n bytes of ep.head.
func (nb *neighbours) putHead(p *peer, n int) bool {
	nb.flush()
	if !p.channel.Put(nb.ep.net.head[:n], nil) {
		return nb.noRoom(p)
	}
	p.used = true
	return true
}

// noRoom looks why a channel takes nothing. When there is no way to the peer through
// shared memory, for want of descriptors for example, it becomes one that is
// reached through the network: nothing was sent to it before.
func (nb *neighbours) noRoom(p *peer) bool {
	nb.ep.Stats.Queued++
	if err := p.channel.Err(); err != nil && !errors.Is(err, shm.ErrGone) {
		p.channel, p.tune, p.eagerTop, p.eagerCap = nil, nil, p.eagerFar, p.eagerFar
		p.eagerMax = min(p.eagerMax, p.eagerFar) // -1 while it wants none
	}
	return false
}

// pollChannels takes in what neighbours have put, up to budget messages, and goes
// on with what is pulled.
func (pl *poller) pollChannels(budget int) int {
	ep := pl.ep
	ep.near.flush()
	n := 0
	for n < budget {
		from, b := ep.near.channels.Next()
		if b == nil {
			break
		}
		pl.arrivedNear(int32(from.Rank()), b)
		ep.near.channels.Release()
		n++
	}
	if ep.pulls.queue.head != nil {
		n += ep.pulls.step()
	}
	for way := ep.near.channels.Lost(); way != nil; way = ep.near.channels.Lost() {
		pl.lostNear(way)
		n++
	}
	return n
}

// spin looks at the channels for a while, and reports whether something moved.
func (d *driver) spin() bool {
	if d.ep.net.posts > 0 || d.hits >= hitsMost {
		d.hits = 0
		return false
	}
	for range d.spins {
		if d.look() {
			d.spins = d.maxSpins
			d.hits++
			return true
		}
	}
	d.spins = max(d.spins/2, spinsLeast)
	return false
}

// look looks at the channels once, and reports whether something moved.
func (d *driver) look() bool {
	ep := d.ep
	n := ep.poller.pollChannels(1)
	if ep.out.stuck.head != nil {
		n += ep.out.advanceStuck()
	}
	if n == 0 {
		return false
	}
	ep.eng.Moved()
	ep.poller.advanceHook()
	return true
}

// glance makes progress for a caller that does not wait but asks again and again,
// with a look at the network every now and then.
func (d *driver) glance() {
	if d.ep.near.channels != nil && d.ep.net.posts == 0 && d.hits < hitsMost {
		d.hits++
		if d.look() || d.hits%stepEvery != 0 {
			return
		}
	}
	d.hits = 0
	d.step()
}

// arrivedNear handles what a neighbour has put. Its bytes may change at any
// time, so that each is read once.
func (pl *poller) arrivedNear(rank int32, b []byte) {
	ep := pl.ep
	var h header
	if !h.parse(b, len(ep.peers)) || h.source != rank || h.kind == kindHead || h.kind == kindRest {
		ep.Stats.Malformed++ // nothing comes in pieces through a channel
		return
	}
	if h.near = true; h.kind == kindBatch && len(b) <= channelBatchRoom {
		b = ep.near.batch.in[:copy(ep.near.batch.in[:], b)] // at once: so all its cache lines come at the same time
	}
	pl.handle(&h, b)
}

// lostNear handles the end of a neighbour.
func (pl *poller) lostNear(way *shm.Channel) { pl.ep.failures.left(way.Rank(), way.Err().Error()) }
