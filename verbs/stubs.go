package verbs

import (
	"errors"
	"net/netip"

	"github.com/xwarp/xwarp/internal/mono"
)

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

// AttachMcast makes a UD queue pair receive what is sent to an IPv4 group.
func (q *QP) AttachMcast(group netip.Addr) error { return errSoon }

// DetachMcast ends that.
func (q *QP) DetachMcast(group netip.Addr) error { return errSoon }

// CreateAHFromWC returns the handle of whoever sent what was received (ibv_create_ah_from_wc(3)).
func (p *PD) CreateAHFromWC(wc *WC) (*AH, error) { return nil, errSoon }

// Destroy ends the use of the handle: its state is freed once nothing is outstanding.
func (a *AH) Destroy() error { return errSoon }

// Range is a run of bytes of a message.
type Range struct{ Off, Len uint32 }

// Record is what a target knows of one Write-Record when it ended.
type Record struct {
	RKey    uint32    // region or window that was written to
	Addr    uint64    // where the message begins in it
	Len     uint32    // bytes of the message
	Valid   []Range   // what has arrived and was placed, ascending, not adjacent
	Began   mono.Time // arrival of its first chunk
	Whole   bool      // all of it
	Expired bool      // ended by its deadline, or to make room for newer ones
}

// Release gives the record back to its queue pair.
func (r *Record) Release() {}
