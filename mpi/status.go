package mpi

import (
	"sort"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Special ranks, tags and counts. The numbers are those of the MPI standard
// ABI.
const (
	AnySource = -1     // in a receive: from any rank
	AnyTag    = -2     // in a receive: with any tag
	ProcNull  = -3     // a rank that is not there: communication with it does nothing
	Undefined = -32766 // no count
	MaxTag    = 1<<31 - 1
)

// Scalar is every type of element that can be communicated: of a fixed size, and
// without pointers.
type Scalar interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Status tells about a message (MPI_Status).
type Status struct {
	Source int // rank that sent it
	Tag    int
	bytes  int

	cancelled bool
}

// StatusOf is the status of a message of so many bytes, for libraries that keep statuses in a
// form of their own.
func StatusOf(source, tag, bytes int, cancelled bool) Status {
	return Status{Source: source, Tag: tag, bytes: bytes, cancelled: cancelled}
}

// Cancelled reports whether the operation was taken back (MPI_Test_cancelled):
// then there was no message.
func (s Status) Cancelled() bool { return s.cancelled }

// Bytes returns the length of the message in bytes. After a receive that was
// too short it is what was received.
func (s Status) Bytes() int { return s.bytes }

// Count returns how many elements of type T the message has (MPI_Get_count),
// or Undefined when it is no whole number.
func Count[T Scalar](s Status) int {
	var one [1]T
	size := len(mem.BytesOf(one[:]))
	if s.bytes%size != 0 {
		return Undefined
	}
	return s.bytes / size
}

// Count returns how many elements of a datatype the message has (MPI_Get_count), or
// Undefined when it is no whole number.
func (s Status) Count(t Datatype) int {
	if t.t != nil {
		if n, whole := t.t.GetCount(s.bytes); whole {
			return n
		}
	}
	return Undefined
}

// Elements returns how many elements of predefined datatypes a message has that was
// received with datatype t (MPI_Get_elements), or Undefined when it is no whole
// number.
func (s Status) Elements(t Datatype) int {
	if t.t != nil {
		if n, whole := t.t.GetElements(s.bytes); whole {
			return n
		}
	}
	return Undefined
}

// SetElements makes the status that of a message of n predefined elements that was
// received with datatype t (MPI_Status_set_elements), for libraries that have
// statuses of their own. Source and Tag are fields.
func (s *Status) SetElements(t Datatype, n int) error {
	const op = "Status.SetElements"
	if n < 0 {
		return fail(ErrCount, op, "%d elements", n)
	}
	if t.t == nil {
		return fail(ErrArg, op, "elements of %v", t)
	}
	each, _ := t.t.GetElements(t.Size())
	switch {
	case n == 0:
		s.bytes = 0
	case each == 0:
		return fail(ErrArg, op, "%v has no elements", t)
	default:
		s.bytes = n / each * t.Size()
		s.bytes += sort.Search(t.Size(), func(b int) bool {
			has, _ := t.t.GetElements(b)
			return has >= n%each
		})
	}
	return nil
}

// SetCancelled says whether the status is that of an operation that was taken back
// (MPI_Status_set_cancelled).
func (s *Status) SetCancelled(cancelled bool) { s.cancelled = cancelled }

// emptyStatus is the status of nothing (MPI 4.1, section 3.7.3).
func emptyStatus() Status { return Status{Source: AnySource, Tag: AnyTag} }

// status translates what the point-to-point layer tells.
func (c *Comm) status(st p2p.Status) Status {
	s := Status{Source: c.from(st.Source), Tag: int(st.Tag), bytes: st.Bytes, cancelled: st.Mark == p2p.Cancelled}
	if st.Tag == match.Any {
		s.Tag = AnyTag
	}
	return s
}
