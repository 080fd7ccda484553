package xdp

import (
	"errors"
	"fmt"
)

// Reasons why a device cannot be used, for errors.Is. An interface with
// a foreign XDP program gives a *bpf.AttachedError instead.
var (
	ErrNoDevice    = errors.New("no such network device")
	ErrPermission  = errors.New("not permitted")
	ErrDeviceDown  = errors.New("the device is down")
	ErrMTU         = errors.New("the MTU does not fit")
	ErrNoQueue     = errors.New("no such queue")
	ErrQueueBusy   = errors.New("another AF_XDP socket holds the queue")
	ErrMemlock     = errors.New("the limit of locked memory is too low")
	ErrUnsupported = errors.New("not supported")
	ErrSlotTaken   = errors.New("another port has the slot")
	ErrNoSteering  = errors.New("it cannot steer to a queue for each")
)

// Error says why a device cannot be used, and what to do.
type Error struct {
	Device string
	Reason error  // one of the reasons above
	Detail string // what exactly, may be empty
	Remedy string // what to do
	Cause  error  // what the kernel said, may be nil
}

func (e *Error) Error() string {
	s := fmt.Sprintf("xdp: %s: %v", e.Device, e.Reason)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	s += ": " + e.Remedy
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

const permissionRemedy = "run as root or give the program CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF (setcap cap_net_raw,cap_net_admin,cap_bpf+ep FILE)"
