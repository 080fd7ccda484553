package launch

import (
	"io"
	"sync"

	"github.com/xwarp/xwarp/internal/boot"
)

// outbox writes lines in order, in a goroutine of its own, so that a reader
// who is slow or stuck never stops the loops of agent and controller. What
// they post is limited by the number of ranks; bulk, the ranks' output, waits
// for room. It owns its writer, which stays open until the owner says close: it
// may be a socket that the other direction is still read from, and a reader who
// is gone can have left words there.
type outbox struct {
	mu     sync.Mutex
	change sync.Cond
	lines  [][]byte
	closed bool
	failed bool
	done   chan struct{} // closed after close, when all is written or cannot be
}

const outboxBulk = 64 // lines beyond which bulk waits

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
		for _, line := range lines {
			if _, err := w.Write(line); err != nil {
				o.giveUp() // the reader of the other direction notices, too
				return
			}
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
func (o *outbox) post(v any) { o.put(marshal(v), false) }

// postBulk queues a message when there is room.
func (o *outbox) postBulk(v any) { o.put(marshal(v), true) }

// postText queues whole lines.
func (o *outbox) postText(lines string) { o.put([]byte(lines), false) }

func marshal(v any) []byte {
	line, err := boot.AppendLine(nil, v)
	if err != nil {
		panic("launch: " + err.Error()) // our own types always marshal
	}
	return line
}

func (o *outbox) put(line []byte, bulk bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for bulk && len(o.lines) >= outboxBulk && !o.closed && !o.failed {
		o.change.Wait()
	}
	if !o.closed && !o.failed {
		o.lines = append(o.lines, line)
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
