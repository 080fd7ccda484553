package progress

// Waker is a Parker that another goroutine can wake.
type Waker interface {
	// Wake ends the present Park, or the next one when there is none. Any
	// goroutine may call it.
	Wake()
}

// Nudge makes the next Step count as work, and wakes the goroutine that runs the engine:
// it looks again at what it waits for. Any goroutine may call it.
func (e *Engine) Nudge() {
	e.nudged.Store(true)
	e.Wake()
}

// nudges returns 1 if there was a Nudge since the last time.
func (e *Engine) nudges() int {
	if e.nudged.Load() && e.nudged.Swap(false) {
		return 1
	}
	return 0
}
