package trace

import (
	"fmt"
	"strings"
)

// Losses are frames and datagrams that a carrier has lost or not let pass. When they
// grow they may be why a peer is silent.
type Losses struct {
	NoSocket    uint64 `json:"rx_no_socket"`   // came in on a queue of the NIC without a socket
	NoRoom      uint64 `json:"rx_no_room"`     // came in when there was no room for them
	Checksum    uint64 `json:"rx_checksum"`    // came in with a wrong checksum
	Unreachable uint64 `json:"tx_unreachable"` // were not sent: no next hop
	Refused     uint64 `json:"tx_refused"`     // were not sent: an error of the kernel or the device
	Forged      uint64 `json:"rx_forged"`      // frames and connections that were not authentic, where all is encrypted
	Replayed    uint64 `json:"rx_replayed"`    // came in again, or too late to tell
}

// Words returns all counters, to read and to write, in an order that stays.
func (l *Losses) Words() []*uint64 {
	return []*uint64{&l.NoSocket, &l.NoRoom, &l.Checksum, &l.Unreachable, &l.Refused, &l.Forged, &l.Replayed}
}

// Since returns what was lost after there was old.
func (l Losses) Since(old Losses) Losses {
	for i, w := range l.Words() {
		*w -= min(*old.Words()[i], *w)
	}
	return l
}

// Plus returns the sums of two.
func (l Losses) Plus(o Losses) Losses {
	for i, w := range l.Words() {
		*w += *o.Words()[i]
	}
	return l
}

// Arrivals are how many frames came in on each queue of a network card that has
// several; the last number is that of all further queues together.
type Arrivals [8]uint64

// String lists them for people, or is "" where nothing came in.
func (a Arrivals) String() string {
	var text []string
	for i, n := range a {
		switch {
		case n == 0:
		case i == len(a)-1:
			text = append(text, fmt.Sprintf("%d on others", n))
		default:
			text = append(text, fmt.Sprintf("%d on queue %d", n, i))
		}
	}
	return strings.Join(text, ", ")
}

// String says for people what was lost and what to do about it, or "" where nothing
// was.
func (l Losses) String() string {
	var text []string
	for i, about := range [...]string{
		"came in on a queue of the network card without a socket (queues were added since, or it steers elsewhere: start again, so that there is one on each, or keep to the first N with ethtool -X DEV equal N)",
		"came in and found no room (the receiver did not look for too long)",
		"came in with a wrong checksum",
		"were not sent for want of a next hop (ip route, ip neigh)",
		"were not sent, because the kernel or the device refused them",
		"or connections came in and were refused, for they are not encrypted with the secret of this job (somebody forges or changes them, a rank has another secret, or they are of a job before)",
		"came in a second time, or far too late, and were refused (somebody sends again what he has recorded, or the network doubles and delays)",
	} {
		if n := *l.Words()[i]; n > 0 {
			text = append(text, fmt.Sprintf("%d frames %s", n, about))
		}
	}
	return strings.Join(text, "; ")
}
