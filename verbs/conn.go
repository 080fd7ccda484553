package verbs

import (
	"github.com/xwarp/xwarp/internal/mono"
	"github.com/xwarp/xwarp/internal/serial"
)

// conn is what a queue pair keeps for one peer.
type conn struct {
	// Sending: the requests to this peer in the order of posting, linked by
	// index in the send queue. head is the oldest that is not done, cur the
	// first that is not sent whole.
	head, cur, tail int32
	msnOut          uint32 // of the last untagged message
	queued          bool   // is in QP.ready
	dead            bool   // lost, or closed: everything to it fails

	// The last acknowledgement that rode on data, until the next step applies it.
	acked  bool
	window uint16
	ack    serial.U32
	ackAt  mono.Time

	// Receiving.
	msgs   []message // messages of several segments, by MSN modulo the window
	events []event   // what to do when a ULPDU is delivered, by LSN modulo the window
}

// message is an untagged message of several segments that is being placed.
type message struct {
	buf  rqe
	more [MaxSGE - 1][]byte // what buf.more points to: its place in the ring is used again
	msn  uint32
	len  uint32 // known with its last segment
	used bool
}

// begin makes m the message msn, which goes to the receive e.
func (m *message) begin(e *rqe, msn uint32) {
	*m = message{buf: *e, msn: msn, used: true}
	if e.more != nil {
		m.more = *e.more
		m.buf.more = &m.more
	}
}

// event is what the delivery of a ULPDU means. The zero value means nothing,
// as for all but the last segment of a Send.
type event struct {
	kind   eventKind
	status Status
	len    uint32
	wrid   uint64
	msn    uint32 // of the message to finish, for eventMessage
}

type eventKind uint8

const (
	eventNone    eventKind = iota
	eventRecv              // complete a receive: wrid, len, status
	eventMessage           // complete the message msn
	eventEnd               // the peer ended the association: len is the cause
)

func (c *conn) init(window int) {
	c.head, c.cur, c.tail = -1, -1, -1
	c.msgs = make([]message, window)
	c.events = make([]event, window)
}
