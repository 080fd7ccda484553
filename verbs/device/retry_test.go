package device

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xwarp/xwarp/internal/carrier/inet/route"
	"github.com/xwarp/xwarp/xdp"
)

func TestDown(t *testing.T) {
	for _, err := range []error{
		&xdp.Error{Device: "eth9", Reason: xdp.ErrDeviceDown},
		&route.Error{Reason: route.ErrLinkDown}, &route.Error{Reason: route.ErrNoRoute}, &route.Error{Reason: route.ErrNoNeighbour},
		fmt.Errorf("eth9: %w", errNoAddress), fmt.Errorf("a socket: %w", syscall.ENETUNREACH),
	} {
		if !Down(err) {
			t.Errorf("%v: nothing to wait for", err)
		}
	}
	for _, err := range []error{nil, errors.New("no"), &xdp.Error{Reason: xdp.ErrNoDevice}, &route.Error{Reason: route.ErrLocal}, syscall.EADDRINUSE} {
		if Down(err) {
			t.Errorf("%v: it may be gone soon", err)
		}
	}
}

func TestRetryBudget(t *testing.T) {
	tries := 0
	try := func(until int, then error) func() error {
		tries = 0
		return func() error {
			if tries++; tries < until {
				return syscall.ENETDOWN
			}
			return then
		}
	}
	p := NewRetryBudget(time.Hour, "SETTING")
	if err := p.Await(try(3, nil)); err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	if err := p.Await(try(2, syscall.EPERM)); err != syscall.EPERM || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	p = NewRetryBudget(time.Nanosecond, "SETTING")
	if err := p.Await(try(3, nil)); tries != 2 || !errors.Is(err, syscall.ENETDOWN) || !strings.Contains(err.Error(), "after 1ns, and SETTING=5m gives it more time") {
		t.Errorf("%d tries, %v", tries, err)
	}
	if err := p.Await(try(2, nil)); tries != 1 || err == nil {
		t.Errorf("what is spent is spent: %d tries, %v", tries, err)
	}
	if err := new(RetryBudget).Await(try(2, nil)); tries != 1 || err != syscall.ENETDOWN {
		t.Errorf("without budget: %d tries, %v", tries, err)
	}
}
