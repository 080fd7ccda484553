package llp

import "github.com/xwarp/xwarp/internal/mono"

// censusPeriod is how long a peer counts as active after it has sent data.
const censusPeriod = mono.Millisecond

// leastWindow is the window of a peer however many there are: with fewer
// ULPDUs in flight a single loss could not be told from reordering.
const leastWindow = 4

// census counts the peers that send at present and divides the room in the
// carrier's receive queue among them, so that even if all of them send a whole
// window at once nothing is dropped here.
type census struct {
	period    uint32 // number of the present period
	until     mono.Time
	now, last int // peers that were heard in this period, and in the one before
	room      int // datagrams that may wait to be received
	most      int // largest window
	window    uint16
}

func (c *census) init(room, most int) {
	*c = census{period: 1, room: room, most: most, window: uint16(most)}
}

// count notes that a peer which was not heard in this period has sent data.
func (c *census) count(p *Peer, now mono.Time) {
	if now >= c.until {
		c.last = c.now
		if now >= c.until.Add(censusPeriod) {
			c.last = 0
		}
		c.now, c.until = 0, now.Add(censusPeriod)
		c.period++
	}
	p.period = c.period
	c.now++
	c.window = uint16(min(c.most, max(leastWindow, c.room/c.active())))
}

// active returns how many peers send at present, at least 1.
func (c *census) active() int { return max(c.now, c.last, 1) }
