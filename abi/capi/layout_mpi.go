//go:build !mpich

package capi

import "github.com/xwarp/xwarp/mpi"

// In the ABI of the standard handles are as wide as addresses. Those below 0x1000 are
// predefined; ours are an index, from 256 on, and the kind of object in 4 bits.

// handleSize is how many bytes a handle takes in an array.
const handleSize = 8

// noHandler is the class of errors with handles of error handlers.
const noHandler = mpi.ErrErrhandler

// needsType: no elements have a datatype, too.
const needsType = true

// setsWhole: MPI_Status_set_elements counts elements of its datatype, be it derived.
const setsWhole = false

func makeHandle(k kind, index int) Handle { return Handle(index+firstIndex)<<4 | Handle(k) }

// indexOf returns the index of an object of ours, or -1.
func indexOf(k kind, h Handle) int {
	if h&15 != Handle(k) || h < firstIndex<<4 || h >= 1<<31 {
		return -1
	}
	return int(h>>4) - firstIndex
}

// slotOf gives every predefined handle a number of its own below slots.
func slotOf(h Handle) int { return int(h & (slots - 1)) }

const slots = 1 << 10

// statusSize is how many bytes an MPI_Status takes.
const statusSize = 32

// status is MPI_Status.
type status struct {
	source, tag, err int32
	lo, hi           uint32
	cancelled        int32
	_                [2]int32
}

func (s *status) set(st mpi.Status) {
	s.source, s.tag = int32(st.Source), int32(st.Tag)
	s.lo, s.hi, s.cancelled = uint32(st.Bytes()), uint32(st.Bytes()>>32), 0
	if st.Cancelled() {
		s.cancelled = 1
	}
}

func (s *status) get() mpi.Status {
	return mpi.StatusOf(int(s.source), int(s.tag), int(s.lo)|int(s.hi)<<32, s.cancelled != 0)
}

// classTo is the number of an error class of package mpi, which are those of this ABI.
func classTo(c mpi.ErrorClass) int { return int(c) }

// classFrom is the error class of a number.
func classFrom(code int) mpi.ErrorClass { return mpi.ErrorClass(code) }
