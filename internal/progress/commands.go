package progress

import (
	"errors"

	"github.com/xwarp/xwarp/internal/mono"
)

// Command is work that another goroutine hands to the engine's owner, which is
// how MPI_THREAD_MULTIPLE crosses over. A pointer to a request implements it,
// so that handing it over allocates nothing.
type Command interface {
	// Execute runs inside a Step. It must not block, and must not call Step.
	Execute(now mono.Time)
}

// Waker is a Parker that another goroutine can wake.
type Waker interface {
	// Wake ends the present Park, or the next one when there is none. Any
	// goroutine may call it.
	Wake()
}

// commandRoom is how many commands may wait. A goroutine that finds no room is
// ahead of the engine by far and has to wait anyway.
const commandRoom = 256

// ErrBusy says that too many commands wait for the engine. Yield, then try
// again.
var ErrBusy = errors.New("progress: command ring is full")

// Post hands c to the goroutine that runs the engine and wakes it. Any
// goroutine may call it. c is executed once, in one of the next steps, in the
// order of Post among commands of one goroutine.
func (e *Engine) Post(c Command) error {
	if !e.commands.Push(c) {
		return ErrBusy
	}
	e.Wake()
	return nil
}

// drain executes the commands that wait, at most the budget of one step.
func (e *Engine) drain() int {
	for n := range Budget {
		c, ok := e.commands.Pop()
		if !ok {
			return n
		}
		c.Execute(e.now)
	}
	return Budget
}
