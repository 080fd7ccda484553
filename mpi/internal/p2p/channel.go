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

// openChannels opens this rank's end of all channels, where there can be any.
func (ep *Endpoint) openChannels() error {
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
	ep.channels, ep.maxSpins = l, spinsMost
	if ep.eng.Crowded() {
		ep.maxSpins = spinsLeast
	}
	return nil
}

func (ep *Endpoint) closeChannels() error {
	if ep.channels == nil {
		return nil
	}
	ep.eng.Unwatch(ep.channels.FD())
	err := ep.channels.Close()
	ep.channels, ep.channelBatch.last, ep.channelBatch.way = nil, nil, nil
	return err
}

// site returns what the card says of the channels.
func (ep *Endpoint) site() string {
	if ep.channels == nil {
		return ""
	}
	return fmt.Sprintf(" %s=%d:%s %s=%d", cardChannel, ep.cfg.Host, ep.channels.Name(), cardNear, ep.nearMost())
}

// nearMost returns the length of the longest message that this end's channels may carry.
func (ep *Endpoint) nearMost() int {
	if ep.cfg.Calibrate {
		return ep.channels.MaxMessage() - headerLen
	}
	return ep.cfg.EagerNear
}

// meetChannel gives a peer a channel, if it is near.
func (ep *Endpoint) meetChannel(i int, p *peer, c *card) error {
	if ep.channels == nil || c.host != ep.cfg.Host || !ep.channels.Near(c.channel) {
		return nil
	}
	way, err := ep.channels.Add(i, c.channel)
	if err != nil {
		return err
	}
	p.near, p.channel = way, way
	p.eagerMax = int32(min(ep.cfg.EagerNear, c.near))
	if p.eagerCap = p.eagerMax; ep.cfg.Calibrate {
		p.tune = &tuner{}
		p.eagerCap = int32(min(ep.nearMost(), c.near))
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
func (ep *Endpoint) putEager(env match.Envelope, p *peer, buf []byte) bool {
	ep.flushChannelBatch()
	b, ok := p.channel.Reserve(headerLen + len(buf))
	if !ok {
		return ep.noRoom(p)
	}
	h := header{kind: kindEager, context: env.Context, source: ep.rank, tag: env.Tag}
	h.put(b)
	if len(buf) >= tuneTimed && p.tune.due() {
		ep.copyTimed(p, b[headerLen:], buf)
	} else {
		copy(b[headerLen:], buf)
	}
	p.channel.Commit(headerLen + len(buf))
	p.used = true
	ep.counted(env.Context, true)
	return true
}

// put sends a header and the next n bytes of d. false means no room.
func (ep *Endpoint) put(p *peer, h *header, d *data, n int) bool {
	ep.flushChannelBatch()
	b, ok := p.channel.Reserve(headerLen + n)
	if !ok {
		return ep.noRoom(p)
	}
	h.put(b)
	switch {
	case n >= tuneTimed && !d.typed && p.tune.due():
		ep.copyTimed(p, b[headerLen:], d.buf)
	case n > 0:
		d.peek(b[headerLen:])
	}
	p.channel.Commit(headerLen + n)
	p.used = true
	return true
}

// putHead sends the first n bytes of ep.head.
func (ep *Endpoint) putHead(p *peer, n int) bool {
	ep.flushChannelBatch()
	if !p.channel.Put(ep.head[:n], nil) {
		return ep.noRoom(p)
	}
	p.used = true
	return true
}

// noRoom looks why a channel takes nothing. When there is no way to the peer through
// shared memory, for want of descriptors for example, it becomes one that is
// reached through the network: nothing was sent to it before.
func (ep *Endpoint) noRoom(p *peer) bool {
	ep.Stats.Queued++
	if err := p.channel.Err(); err != nil && !errors.Is(err, shm.ErrGone) {
		p.channel, p.tune, p.eagerTop, p.eagerCap = nil, nil, p.eagerFar, p.eagerFar
		p.eagerMax = min(p.eagerMax, p.eagerFar) // -1 while it wants none
	}
	return false
}

// pollChannels takes in what neighbours have put, up to budget messages, and goes
// on with what is pulled.
func (ep *Endpoint) pollChannels(budget int) int {
	ep.flushChannelBatch()
	n := 0
	for n < budget {
		from, b := ep.channels.Next()
		if b == nil {
			break
		}
		ep.arrivedNear(int32(from.Rank()), b)
		ep.channels.Release()
		n++
	}
	if ep.pulls.head != nil {
		n += ep.pull()
	}
	for way := ep.channels.Lost(); way != nil; way = ep.channels.Lost() {
		ep.lostNear(way)
		n++
	}
	return n
}

// spin looks at the channels for a while, and reports whether something moved.
func (ep *Endpoint) spin() bool {
	if ep.posts > 0 || ep.hits >= hitsMost {
		ep.hits = 0
		return false
	}
	for range ep.spins {
		if ep.look() {
			ep.spins = ep.maxSpins
			ep.hits++
			return true
		}
	}
	ep.spins = max(ep.spins/2, spinsLeast)
	return false
}

// look looks at the channels once, and reports whether something moved.
func (ep *Endpoint) look() bool {
	n := ep.pollChannels(1)
	if ep.stuck.head != nil {
		n += ep.advanceStuck()
	}
	if n == 0 {
		return false
	}
	ep.eng.Moved()
	ep.advanceHook()
	return true
}

// glance makes progress for a caller that does not wait but asks again and again,
// with a look at the network every now and then.
func (ep *Endpoint) glance() {
	if ep.channels != nil && ep.posts == 0 && ep.hits < hitsMost {
		ep.hits++
		if ep.look() || ep.hits%stepEvery != 0 {
			return
		}
	}
	ep.hits = 0
	ep.step()
}

// arrivedNear handles what a neighbour has put. Its bytes may change at any
// time, so that each is read once.
func (ep *Endpoint) arrivedNear(rank int32, b []byte) {
	var h header
	if !h.parse(b, len(ep.peers)) || h.source != rank || h.kind == kindHead || h.kind == kindRest {
		ep.Stats.Malformed++ // nothing comes in pieces through a channel
		return
	}
	if h.near = true; h.kind == kindBatch && len(b) <= channelBatchRoom {
		b = ep.channelBatch.in[:copy(ep.channelBatch.in[:], b)] // at once: so all its cache lines come at the same time
	}
	ep.handle(&h, b)
}

// lostNear handles the end of a neighbour.
func (ep *Endpoint) lostNear(way *shm.Channel) { ep.left(way.Rank(), way.Err().Error()) }
