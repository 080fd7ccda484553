package verbs

import "slices"

// Link knows the network device that a context stands on.
type Link interface {
	// Trouble asks what is wrong with the device now, and returns nil if nothing is.
	// It is a control call.
	Trouble() error
}

// Trouble returns what is wrong with the network device, or nil: it may be down, have
// no carrier, or have lost its address. It is a control call, for when a peer is lost:
// the cause may be here.
func (c *Context) Trouble() error {
	if c.fatal != nil || c.cfg.Link == nil || c.closed {
		return c.fatal
	}
	return c.cfg.Link.Trouble()
}

// Fail ends everything that is under way, because nothing goes through the network
// device any more: what was posted completes with RetryExcErr, connections end, and
// EventDeviceFatal is raised (IBV_EVENT_DEVICE_FATAL). Any goroutine may call it; it
// happens in the next step of the engine.
func (c *Context) Fail(cause error) { c.order(&failure{cause, false}) }

// FailIfStuck is Fail for a trouble of the device that lets some things pass, such as an
// MTU that is too small: it does nothing while reliable datagrams get through, and raises
// EventPortErr (IBV_EVENT_PORT_ERR) for programs with a protocol of their own over UD.
func (c *Context) FailIfStuck(cause error) { c.order(&failure{cause, true}) }

func (c *Context) order(f *failure) {
	c.failing.Store(f)
	c.cfg.Engine.Wake()
}

// failure is what another goroutine wants of the engine's.
type failure struct {
	cause   error
	ifStuck bool
}

// obey does what Fail or FailIfStuck was called for last.
func (c *Context) obey() {
	f := c.failing.Swap(nil)
	if c.fatal != nil {
		return
	}
	stuck := func(ah *AH) bool { return ah != nil && ah.peer.Snd.Stuck() }
	if f.ifStuck && !slices.ContainsFunc(c.ahs, stuck) { // reliable datagrams get through to all peers
		c.raise(AsyncEvent{Type: EventPortErr})
		return
	}
	c.fatal = f.cause
	c.raise(AsyncEvent{Type: EventDeviceFatal})
	for _, ah := range c.ahs {
		if ah != nil {
			c.rd.fail(ah, RetryExcErr)
		}
	}
	for _, q := range c.streams.rcs {
		if q != nil {
			q.rc.lost(f.cause)
		}
	}
}
