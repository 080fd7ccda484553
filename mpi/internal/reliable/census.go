package reliable

import "github.com/xwarp/xwarp/internal/mono"

// censusPeriod is how long a peer counts as one that sends after it has sent
// something.
const censusPeriod = mono.Millisecond

// leastWindow is the window of a peer however many there are: with fewer
// packets in flight a loss could not be told from reordering.
const leastWindow = 4

// census counts the peers that send at present, and divides the receive buffers
// among them, so that even if all of them send a whole window at once, there is
// one for each packet.
type census struct {
	period    uint32
	until     mono.Time
	now, last int // peers that were heard in this period, and in the one before
	room      int // receive buffers
	most      int // largest window
	window    uint16
}

func (s *census) init(room, most int) {
	*s = census{period: 1, room: room, most: most, window: uint16(most)}
}

// count notes that a peer which was not heard in this period has sent something.
func (s *census) count(c *conn, now mono.Time) {
	if now >= s.until {
		s.last = s.now
		if now >= s.until.Add(censusPeriod) {
			s.last = 0
		}
		s.now, s.until = 0, now.Add(censusPeriod)
		s.period++
	}
	c.round = s.period
	s.now++
	s.window = uint16(min(s.most, max(leastWindow, s.room/max(s.now, s.last, 1))))
}
