package device

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/xdp"
)

// Down reports whether Open, or asking for the way to a peer, has failed for a
// reason that may be gone soon: a link that is down, an address or a route that the
// device has not been given yet, a neighbour that does not answer.
func Down(err error) bool {
	down := []error{xdp.ErrDeviceDown, errNoAddress, syscall.EADDRNOTAVAIL, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTUNREACH}
	return slices.ContainsFunc(down, func(why error) bool { return errors.Is(err, why) })
}

var errNoAddress = errors.New("no address")

// RetryBudget is time to spend on waiting for a network that is down. The zero value
// waits for nothing. One goroutine uses it.
type RetryBudget struct {
	all, left time.Duration
	setting   string
}

// retryPause is the time from one try to the next.
const retryPause = 100 * time.Millisecond

// NewRetryBudget returns budget for a time, of which setting is the name of what
// says how long it is.
func NewRetryBudget(d time.Duration, setting string) *RetryBudget {
	return &RetryBudget{all: d, left: d, setting: setting}
}

// Await calls try until it succeeds, or fails for another reason than that the
// network is down, or the budget is at its end.
func (p *RetryBudget) Await(try func() error) error {
	clock := mono.Real{}
	for {
		begun := clock.Now()
		err := try()
		if !Down(err) {
			return err
		}
		if p.left <= 0 {
			if p.all == 0 {
				return err
			}
			return fmt.Errorf("%w; it was still so after %v, and %s=5m gives it more time", err, p.all, p.setting)
		}
		time.Sleep(min(retryPause, p.left))
		p.left -= clock.Now().Sub(begun)
	}
}
