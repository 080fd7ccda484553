package p2p

// burstDetector tells from the batches to a peer whether nonblocking sends come in
// bursts. A message that is sent alone and at once costs a system call, as much as
// thirty in a batch; a program that sends windows gains nothing by that, for only the
// last message of a window counts. So after some long batches in a row the first
// message waits for the others, too, until a batch was short.
type burstDetector struct {
	windows uint8 // long batches in a row
	single  bool  // a message was sent alone since the last batch
}

const (
	windowLeast  = 16 // messages of a long batch
	windowsLeast = 2  // long batches in a row that make a burst likely
)

// waits decides whether the first message after a step waits for others.
func (d *burstDetector) waits() bool {
	if d.windows >= windowsLeast {
		return true
	}
	if d.single { // nothing has followed the last one
		d.windows = 0
	}
	d.single = true
	return false
}

// flushed notes that a batch of so many messages was posted.
func (d *burstDetector) flushed(messages int) {
	d.single = false
	if messages < windowLeast {
		d.windows = 0
	} else if d.windows < windowsLeast {
		d.windows++
	}
}
