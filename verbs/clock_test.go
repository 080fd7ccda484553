package verbs_test

import "github.com/xwarp/xwarp/internal/base/mono"

// handClock is a clock that the test moves.
type handClock struct{ now mono.Time }

func (c *handClock) Now() mono.Time { return c.now }
