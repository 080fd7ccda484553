package p2p

// habit is how nonblocking sends to a peer come. A message that goes at once, by
// itself, costs a system call, as much as thirty that ride on a train. Who sends
// windows of messages gains nothing by that, for the last one of them counts. So
// after some windows in a row the first message waits for the others too, until it
// has done so for few.
type habit struct {
	windows uint8 // long trains in a row
	single  bool  // a message has gone by itself since the last train
}

const (
	windowLeast  = 16 // messages of a long train
	windowsLeast = 2  // long trains that make a habit
)

// waits decides whether the first message after a step waits for others.
func (h *habit) waits() bool {
	if h.windows >= windowsLeast {
		return true
	}
	if h.single { // nothing has followed the last one
		h.windows = 0
	}
	h.single = true
	return false
}

// departed notes that a train with so many messages has left.
func (h *habit) departed(messages int) {
	h.single = false
	if messages < windowLeast {
		h.windows = 0
	} else if h.windows < windowsLeast {
		h.windows++
	}
}
