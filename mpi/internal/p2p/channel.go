package p2p

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/shm"
	"github.com/xwarp/xwarp/internal/progress"
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

// neighbours is what reaches the ranks of this host.
type neighbours struct {
	stats    *Stats
	cfg      *Config
	eng      *progress.Engine
	channels *shm.Channels // or nil, also when no rank is near
	segments *shm.Channels // channels, but in a simulation, where memory is all that neighbours share; or nil
	shares   bool          // shared memory is turned on, and can be used
	latest   *peer         // that the last short nonblocking send went to; nil when something else came after
	batch    batch
	in       [channelBatchRoom]byte // a batch that has come
	pullCost *shm.PullCost          // nil: not measured yet; zero: that has failed
}

// listen opens this rank's end of all channels, where there can be any.
func (nb *neighbours) listen() error {
	cfg := nb.cfg
	if !cfg.Shared || cfg.Size == 1 {
		return nil
	}
	l, err := shm.OpenChannels(shm.ChannelsConfig{Rank: cfg.Rank, NoPull: cfg.NoPull, Message: headerLen + cfg.EagerNear})
	if err != nil {
		return fmt.Errorf("no shared memory for the ranks of this host: %w (XWARP_SHARED=0 does without)", err)
	}
	if nb.segments, nb.shares = l, true; nb.eng.WatchBell(l) {
		nb.channels = l
	} // else nothing wakes this engine: it is of a simulation, and messages go through the network
	return nil
}

func (nb *neighbours) close() error {
	if nb.segments == nil {
		return nil
	}
	if nb.channels != nil {
		nb.eng.Unwatch(nb.channels.FD())
	}
	err := nb.segments.Close()
	nb.channels, nb.segments, nb.latest, nb.batch.to = nil, nil, nil, nil
	return err
}

// site returns what the business card says of the channels.
func (nb *neighbours) site() string {
	if nb.segments == nil {
		return ""
	}
	return fmt.Sprintf(" %s=%d:%s %s=%d", cardChannel, nb.cfg.Host, nb.segments.Name(), cardNear, nb.most())
}

// most returns the length of the longest message that this end's channels may carry.
func (nb *neighbours) most() int {
	if nb.cfg.Calibrate {
		return min(nb.segments.MaxMessage()-headerLen, tuneMost)
	}
	return nb.cfg.EagerNear
}

// meet gives a peer a channel, if it is near.
func (nb *neighbours) meet(p *peer, c *businessCard) error {
	if nb.segments == nil || c.host != nb.cfg.Host || !nb.segments.Near(c.channel) {
		return nil
	}
	out, err := nb.segments.Add(int(p.rank), c.channel)
	if p.lends = out; err != nil || nb.channels == nil {
		return err
	}
	p.near, p.channel = out, out
	p.eagerMax = int32(min(nb.cfg.EagerNear, c.near))
	if p.eagerCap = p.eagerMax; nb.cfg.Calibrate {
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

// eager sends a message of n bytes that others may follow: in a batch if it is short and one
// went to p before it. Batches are committed when they are full, when anything else is sent
// through a channel, and with the next call that makes progress or ends a request; every
// request of theirs has to be ended. false means no room; then nothing happened.
func (nb *neighbours) eager(p *peer, h front, v view, n int) bool {
	if n > channelBatchedMax {
		return nb.put(p, h, v, n, burst)
	}
	if t := &nb.batch; p == nb.latest && (t.to != nil && t.fits(n) || nb.open(p, h)) {
		t.add(h, v, n)
		return true
	}
	if !nb.put(p, h, v, n, burst) {
		return false
	}
	nb.latest = p
	return true
}

// open opens a batch to p, behind the one that was open. false means no room.
func (nb *neighbours) open(p *peer, h front) bool {
	nb.commit()
	b, ok := p.channel.Reserve(channelBatchRoom)
	if ok {
		nb.batch.open(p, h, b)
		nb.latest = p
	}
	return ok
}

// put sends a header and n bytes of a message behind it. Of one that is alone those in the first line are written last, see
// [shm.FirstLine]: in a stream that takes longer.
func (nb *neighbours) put(p *peer, h front, v view, n int, how sending) bool {
	nb.flush()
	b, ok := p.channel.Reserve(headerLen + n)
	if !ok {
		return nb.noRoom(p)
	}
	into := b[headerLen:]
	if how == alone && len(v.buf) > firstMost {
		nb.copy(p, into[firstMost:], v.buf[firstMost:])
		v.buf = v.buf[:firstMost]
	}
	h.put(b)
	if v.cur != nil {
		v.copyTo(into)
	} else {
		nb.copy(p, into, v.buf)
	}
	p.channel.Commit(headerLen + n)
	p.used = true
	return true
}

// firstMost is how many bytes of a message lie in the first line.
const firstMost = shm.FirstLine - headerLen

// copy copies a part of a message into the channel to p.
func (nb *neighbours) copy(p *peer, dst, src []byte) {
	switch {
	case len(src) < tuneTimed:
		copy(dst, src)
	case p.tune != nil && p.tune.in.due():
		nb.copyTimed(p, dst, src)
	default:
		mem.CopyAcross(dst, src)
	}
}

// word sends b.
func (nb *neighbours) word(p *peer, b []byte) bool {
	nb.flush()
	if !p.channel.Put(b, nil) {
		return nb.noRoom(p)
	}
	p.used = true
	return true
}

// flush commits the open batch, if there is one. It is small enough to be
// inlined, for most calls find none.
func (nb *neighbours) flush() {
	if nb.latest != nil {
		nb.commit()
	}
}

func (nb *neighbours) commit() {
	if t := &nb.batch; t.to != nil {
		t.to.near.Commit(t.n)
		t.to = nil
	}
	nb.latest = nil
}

// noRoom looks why a channel takes nothing. When there is no way to the peer through
// shared memory, for want of descriptors for example, it becomes one that is
// reached through the network: nothing was sent to it before.
func (nb *neighbours) noRoom(p *peer) bool {
	nb.stats.Queued++
	if err := p.channel.Err(); err != nil && !errors.Is(err, shm.ErrGone) {
		p.channel, p.tune, p.eagerCap = nil, nil, p.eagerFar
		p.setTop(int(p.eagerFar))
	}
	return false
}
