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

// SRQInit describes a shared receive queue.
type SRQInit struct {
	MaxWR int // default 512
	Limit int // EventSRQLimitReached when fewer are posted; 0 never
}

// SRQ is a shared receive queue (ibv_create_srq(3)).
type SRQ struct{}

// CreateSRQ makes a shared receive queue.
func (p *PD) CreateSRQ(init SRQInit) (*SRQ, error) { return nil, errSoon }

// PostRecv posts a buffer.
func (s *SRQ) PostRecv(wr *RecvWR) error { return errSoon }

// Modify arms the limit event anew.
func (s *SRQ) Modify(limit int) error { return errSoon }

// Len returns how many receives are posted.
func (s *SRQ) Len() int { return 0 }

// Destroy ends the queue.
func (s *SRQ) Destroy() error { return errSoon }

// MW is a memory window (ibv_alloc_mw(3)), type 2.
type MW struct{}

// AllocMW makes a window that is not bound.
func (p *PD) AllocMW() (*MW, error) { return nil, errSoon }

// RKey returns the key to give to peers, valid while bound. It changes with each bind.
func (m *MW) RKey() uint32 { return 0 }

// Dealloc ends the window.
func (m *MW) Dealloc() error { return errSoon }

// EventType is the kind of an AsyncEvent.
type EventType uint8

// Kinds of asynchronous events (ibv_get_async_event(3)).
const (
	EventPeerLost      EventType = iota + 1 // AH: silent for too long
	EventPeerRestarted                      // AH: its process began anew; make a new handle
	EventQPAccessErr                        // QP, AH: the peer asked for memory that was not granted
	EventQPReqErr                           // QP, AH: the peer sent what makes no sense
	EventQPFatal                            // QP
	EventSQDrained                          // QP
	EventSRQLimitReached                    // SRQ
	EventQPLastWQEReached                   // QP
)

// AsyncEvent is something that happened apart from any work request.
type AsyncEvent struct {
	Type EventType
	QP   *QP
	AH   *AH
	SRQ  *SRQ
}

// GetAsyncEvent returns the oldest event that was not taken yet.
func (c *Context) GetAsyncEvent() (AsyncEvent, bool) { return AsyncEvent{}, false }

// QPState is the state of a queue pair (ibv_modify_qp(3)).
type QPState uint8

// States.
const (
	StateReset QPState = iota
	StateInit
	StateRTR
	StateRTS
	StateSQD
	StateErr
)

// Modify moves the queue pair to another state.
func (q *QP) Modify(to QPState) error { return errSoon }

// State returns the state.
func (q *QP) State() QPState { return StateRTS }

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
