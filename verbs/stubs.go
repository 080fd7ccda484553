package verbs

import (
	"errors"
	"net/netip"

	"github.com/xwarp/xwarp/internal/mono"
)

var errSoon = errors.New("verbs: being built")

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
