package capi

import (
	"errors"

	"github.com/xwarp/xwarp/mpi"
)

// unlessPending is err without what is said of operations that were never waited for: in C
// programs leave receives behind, and other libraries end without a word.
func unlessPending(err error) error {
	if parts, ok := err.(interface{ Unwrap() []error }); ok {
		kept := make([]error, 0, len(parts.Unwrap()))
		for _, part := range parts.Unwrap() {
			kept = append(kept, unlessPending(part))
		}
		return errors.Join(kept...)
	}
	if mpi.ClassOf(err) == mpi.ErrPending {
		return nil
	}
	return err
}
