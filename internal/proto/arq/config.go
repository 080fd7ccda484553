package arq

import (
	"cmp"

	"github.com/xwarp/xwarp/internal/base/mono"
)

// Config tunes reliable datagrams. Zero values mean the defaults.
type Config struct {
	Window      int           // units in flight to one peer, a power of two; default 256, at most WindowMax
	AckEvery    int           // units after which an acknowledgement is sent at once; default Window/4
	AckDelay    mono.Duration // how long an acknowledgement waits for data to ride on; default 50 us
	AckSoon     mono.Duration // the same when the sender waits for it; default 4 us
	RTOInitial  mono.Duration // time-out before the first round trip is known; default 20 ms
	RTOMin      mono.Duration // default 5 ms: a peer that lost its core is back by then
	RTOMax      mono.Duration // default 1 s
	ProbeMin    mono.Duration // tail-loss probe; default 500 us
	ReorderMin  mono.Duration // default 20 us
	DelayTarget mono.Duration // round trip, queues included, that the congestion control aims at on paths that are shorter; default 125 us
	PeerLost    mono.Duration // silence of a peer that owes an acknowledgement until it counts as lost; default 30 s
	KeepAlive   mono.Duration // silence of a peer after which it is asked whether it is there; default 5 s, at most PeerLost/4
}

// WithDefaults fills in the defaults. depth is how many datagrams of one peer
// may wait at the receiver; it bounds the window.
func (c Config) WithDefaults(depth int) Config {
	if c.Window == 0 {
		for c.Window = 256; c.Window > max(depth, 1); c.Window /= 2 {
		}
	}
	c.AckEvery = cmp.Or(c.AckEvery, max(1, c.Window/4))
	c.AckDelay = cmp.Or(c.AckDelay, 50*mono.Microsecond)
	c.AckSoon = cmp.Or(c.AckSoon, 4*mono.Microsecond)
	c.RTOInitial = cmp.Or(c.RTOInitial, 20*mono.Millisecond)
	c.RTOMin = cmp.Or(c.RTOMin, 5*mono.Millisecond)
	c.RTOMax = cmp.Or(c.RTOMax, mono.Second)
	c.ProbeMin = cmp.Or(c.ProbeMin, 500*mono.Microsecond)
	c.ReorderMin = cmp.Or(c.ReorderMin, 20*mono.Microsecond)
	c.DelayTarget = cmp.Or(c.DelayTarget, 125*mono.Microsecond)
	c.PeerLost = cmp.Or(c.PeerLost, 30*mono.Second)
	c.KeepAlive = cmp.Or(c.KeepAlive, min(5*mono.Second, c.PeerLost/4))
	return c
}
