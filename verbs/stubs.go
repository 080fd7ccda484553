package verbs

import "errors"

var errSoon = errors.New("verbs: being built")

// ReqNotify arms the queue (ibv_req_notify_cq(3)): the next completion, or
// with solicitedOnly the next solicited or failed one, makes an event on the
// channel.
func (q *CQ) ReqNotify(solicitedOnly bool) error { return errSoon }

// CompChannel tells of completions through a descriptor (ibv_create_comp_channel(3)).
type CompChannel struct{}

// CreateCompChannel makes a channel.
func (c *Context) CreateCompChannel() (*CompChannel, error) { return nil, errSoon }

// FD returns a descriptor for poll(2), select(2) and epoll(7): readable when
// GetEvent may have something. Call it right before each wait. -1 in the simulator.
func (ch *CompChannel) FD() int { return -1 }

// GetEvent makes progress and returns a queue with a completion event, if any.
func (ch *CompChannel) GetEvent() (*CQ, bool) { return nil, false }

// Wait is GetEvent that waits for one.
func (ch *CompChannel) Wait() (*CQ, error) { return nil, errSoon }

// Close ends the channel.
func (ch *CompChannel) Close() error { return errSoon }

func (q *CQ) notify(bool)   {}
func (q *CQ) mark() uint32  { return q.tail }
func (q *CQ) unwind(uint32) {}
