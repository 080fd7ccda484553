package launch

import (
	"io"
	"sync"

	"github.com/xwarp/xwarp/internal/job/boot"
)

// outbox writes lines in order, in a goroutine of its own, so that a reader
// that is slow or stuck never stops the loops of agent and controller. What
// they post is limited by the number of ranks; bulk, the ranks' output and what they
// ask, waits for room. It owns its writer, which stays open until the owner says close: it
// may be a socket that the other direction is still read from, and a reader that
// is gone can have left words there.
type outbox struct {
	mu     sync.Mutex
	change sync.Cond
	lines  []message
	free   []outputBuf // that was written
	closed bool
	failed bool
	done   chan struct{} // closed after close, when all is written or cannot be
}

// message is something to write, and the memory that it lies in if that was lent.
type message struct {
	line []byte
	lent outputBuf
}

const outboxOutput = 16 // messages beyond which bulk waits

func newOutbox(w io.WriteCloser) *outbox {
	o := &outbox{done: make(chan struct{})}
	o.change.L = &o.mu
	go o.run(w)
	return o
}

func (o *outbox) run(w io.WriteCloser) {
	defer close(o.done)
	defer w.Close()
	for {
		o.mu.Lock()
		for len(o.lines) == 0 && !o.closed {
			o.change.Wait()
		}
		lines := o.lines
		o.lines = nil
		o.change.Broadcast()
		o.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		for _, m := range lines {
			if _, err := w.Write(m.line); err != nil {
				o.giveUp() // the reader of the other direction notices, too
				return
			}
			o.recycle(m.lent)
		}
	}
}

// giveUp takes no more lines and waits for close.
func (o *outbox) giveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed, o.lines = true, nil
	o.change.Broadcast()
	for !o.closed {
		o.change.Wait()
	}
}

// post queues a message.
func (o *outbox) post(v any) { o.put(message{line: marshal(v)}, false) }

// postWithRoom queues a message when there is room.
func (o *outbox) postWithRoom(v any) { o.put(message{line: marshal(v)}, true) }

// awaitRoom waits until there is room, or nothing is taken any more.
func (o *outbox) awaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitForRoom()
}

func (o *outbox) waitForRoom() {
	for len(o.lines) >= outboxOutput && !o.closed && !o.failed {
		o.change.Wait()
	}
}

// postData queues a report and the bytes that follow it.
func (o *outbox) postData(r report, data []byte) {
	r.Length = len(data)
	o.put(message{line: append(marshal(r), data...)}, false)
}

// postText queues whole lines.
func (o *outbox) postText(lines string) { o.put(message{line: []byte(lines)}, false) }

// outputBuf is memory for bytes that are to be posted, with room before them for what a
// report says about them.
type outputBuf []byte

// bulkHead is more than the line of a report with bytes takes.
const bulkHead = 128

func (b outputBuf) data() []byte { return b[bulkHead:] }

// lend returns memory for postBulk.
func (o *outbox) lend() outputBuf {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.free); n > 0 {
		b := o.free[n-1]
		o.free = o.free[:n-1]
		return b
	}
	return make(outputBuf, bulkHead+outputPiece)
}

// postOutput queues a report and the first n bytes in b, which was lent, when there is
// room.
func (o *outbox) postOutput(r report, b outputBuf, n int) {
	r.Length = n
	head := marshal(r)
	at := bulkHead - len(head)
	copy(b[at:], head)
	o.put(message{b[at : bulkHead+n], b}, true)
}

// recycle keeps lent memory for the next use.
func (o *outbox) recycle(b outputBuf) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b != nil && len(o.free) < outboxOutput {
		o.free = append(o.free, b)
	}
}

func marshal(v any) []byte {
	line, err := boot.AppendLine(nil, v)
	if err != nil {
		panic("launch: " + err.Error()) // our own types always marshal
	}
	return line
}

func (o *outbox) put(m message, bulk bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if bulk {
		o.waitForRoom()
	}
	if !o.closed && !o.failed {
		o.lines = append(o.lines, m)
		o.change.Broadcast()
	}
}

// close lets the outbox close its writer after what it holds.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.change.Broadcast()
}
