package mpi_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/xwarp/xwarp/mpi"
)

func TestClassOf(t *testing.T) {
	inner := &mpi.Error{Class: mpi.ErrTag, Op: "Send", Rank: -1, Detail: "tag -4", Err: io.EOF}
	for _, c := range []struct {
		err  error
		want mpi.ErrorClass
	}{
		{nil, mpi.Success},
		{inner, mpi.ErrTag},
		{fmt.Errorf("in the program: %w", inner), mpi.ErrTag},
		{io.EOF, mpi.ErrUnknown},
	} {
		if got := mpi.ClassOf(c.err); got != c.want {
			t.Errorf("ClassOf(%v) = %v, want %v", c.err, got, c.want)
		}
	}
	if want := "mpi: Send: invalid tag: tag -4: EOF"; inner.Error() != want || !errors.Is(inner, io.EOF) {
		t.Errorf("error is %q, want %q", inner, want)
	}
	if got := mpi.ErrorClass(999).String(); got != "error class 999" {
		t.Error(got)
	}
}
