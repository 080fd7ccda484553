package verbs

// rdQP is what a queue pair of type RD has besides the common parts.
type rdQP struct {
	datagramQP
	in rdReceiver
}

// conn is what a reliable queue pair keeps for one peer. An idle peer has
// nothing but this.
type conn struct {
	// Requests of the user, from the oldest that is not complete, in the
	// order of posting; linked by wqe.after.
	head, tail int32
	// What is to be cut into segments: requests, and answers to the Reads and
	// atomics of the peer. They do not wait for one another: two peers could
	// each hold back the answer that the other one needs.
	requests, answers requestList

	msn      [4]uint32 // of the last message on each untagged queue
	sends    int32     // Sends that are cut and not acknowledged
	credit   int32     // how many of them the peer has receives for
	reads    int32     // Reads and atomics that are cut and not answered
	answered int32     // Reads and atomics of the peer whose answer is not acknowledged
	record   uint32    // number of the last Write-Record

	answerLast bool // an answer was cut last
	rnr        bool // it found no receive, and waits to hear that there are some
	refused    bool // it asked for what was not granted: nothing is taken from it any more

	inbox *inbox // nil when nothing is out of order, and no message is in parts
}

func (c *conn) init() {
	c.head, c.tail = none, none
	c.requests, c.answers = requestList{none, none}, requestList{none, none}
	c.credit = 1
}

// inbox is where what arrives waits: messages for the rest of their segments,
// and events for what comes before them.
type inbox struct {
	msgs     []message // messages of several segments, by MSN modulo the window
	events   []event   // what to do when a ULPDU is delivered, by LSN modulo the window
	requests []request // what those of Reads and atomics ask for, likewise
	used     int       // messages in parts
}

// message is an untagged message of several segments that is being placed.
type message struct {
	buf  rqe
	more [MaxSGE - 1][]byte // what buf.more points to: its place in the ring is used again
	msn  uint32
	len  uint32 // known with its last segment
	last bool   // that has been placed
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
	kind  eventKind
	flags WCFlags
	len   uint32
	wrid  uint64
	imm   uint64
	name  uint32 // MSN of the message, key to invalidate, or number of the request that is answered
	inv   uint32
}

type eventKind uint8

const (
	eventNone     eventKind = iota
	eventRecv               // complete a receive: wrid, len, status
	eventMessage            // complete the message with MSN name
	eventImm                // complete a receive with immediate data
	eventRequest            // answer a Read or an atomic
	eventAnswered           // the answer to request name is complete
	eventRecord             // a chunk of a Write-Record: see recordTable.delivered
)

// inboxOf returns the peer's inbox, which it gets when it needs one.
func (q *rdReceiver) inboxOf(c *conn) *inbox {
	if c.inbox == nil {
		if n := len(q.inboxes); n > 0 {
			c.inbox = q.inboxes[n-1]
			q.inboxes = q.inboxes[:n-1]
		} else {
			window := q.ctx.ep.Config().Window
			c.inbox = &inbox{
				msgs: make([]message, window), events: make([]event, window), requests: make([]request, window),
			}
		}
	}
	return c.inbox
}

// rest gives back what an idle peer does not need.
func (q *rdQP) rest(ah *AH) {
	c := &ah.conn
	if c.inbox != nil && c.inbox.used == 0 && ah.peer.Rcv.InOrder() {
		q.in.giveInbox(c)
	}
	q.sq.trim()
}

// inboxesKept is how many inboxes, of 66 KiB, wait to be used again.
const inboxesKept = 16

func (q *rdReceiver) giveInbox(c *conn) {
	if len(q.inboxes) < inboxesKept {
		q.inboxes = append(q.inboxes, c.inbox)
	}
	c.inbox = nil
}

// idle reports whether nothing is outstanding towards the peer.
func (c *conn) idle() bool {
	return c.head == none && c.requests.cur == none && c.answers.cur == none
}
