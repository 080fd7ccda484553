package route

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// TestError_saysWhatTheKernelSays: who retries when there is no way needs one list
// of errors, whether the kernel looks for the way or this package.
func TestError_saysWhatTheKernelSays(t *testing.T) {
	all := []error{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN}
	for _, tt := range []struct{ reason, want error }{
		{ErrNoRoute, syscall.ENETUNREACH}, {ErrNoNeighbour, syscall.EHOSTUNREACH}, {ErrTableFull, syscall.EHOSTUNREACH}, {ErrLinkDown, syscall.ENETDOWN}, {ErrLocal, nil},
	} {
		err := fmt.Errorf("dialling: %w", &Error{Reason: tt.reason})
		for _, errno := range all {
			if got := errors.Is(err, errno); got != (errno == tt.want) {
				t.Errorf("%v is %v: %t", tt.reason, errno, got)
			}
		}
		if !errors.Is(err, tt.reason) {
			t.Errorf("%v is not %v", err, tt.reason)
		}
	}
}
