package llp

import "github.com/xwarp/xwarp/internal/base/mono"

// senderPeriod is how long a peer counts as an active sender after it has sent data.
const senderPeriod = mono.Millisecond

// leastWindow is the window of a peer however many there are: with fewer
// units in flight a single loss could not be told from reordering.
const leastWindow = 4

// senders counts the peers that send at present and divides the room for what
// they send among them, so that even if all of them send a whole window at
// once nothing is dropped here.
type senders struct {
	period    uint32 // number of the present period
	until     mono.Time
	now, last int // peers that were heard in this period, and in the one before
	room      int // datagrams that may wait to be received
	most      int // largest window
	window    uint16
}

func (s *senders) init(room, most int) {
	*s = senders{period: 1, room: room, most: most, window: uint16(most)}
}

// count notes that a peer which was not heard in this period has sent data.
func (s *senders) count(a *Assoc, now mono.Time) {
	if now >= s.until {
		s.last = s.now
		if now >= s.until.Add(senderPeriod) {
			s.last = 0
		}
		s.now, s.until = 0, now.Add(senderPeriod)
		s.period++
	}
	a.period = s.period
	s.now++
	s.window = uint16(min(s.most, max(leastWindow, s.room/s.active())))
}

// active returns how many peers send at present, at least 1.
func (s *senders) active() int { return max(s.now, s.last, 1) }
