//go:build mpich

package capi

import "github.com/xwarp/xwarp/mpi"

// In MPICH's ABI handles are as wide as an int: 2 bits say whether it is predefined, 4 of
// what kind, and the rest is an index, in datatypes with the size.

const handleSize = 4

// noHandler is the class of errors with handles of error handlers: MPICH 4.0 has none of its own.
const noHandler = mpi.ErrArg

// needsType: MPICH does not look at the datatype of no elements, which need not be committed.
const needsType = false

// setsWhole: MPI_Status_set_elements counts elements of its datatype, be it derived.
const setsWhole = true

func makeHandle(k kind, index int) Handle { return 2<<30 | Handle(k)<<26 | Handle(index+firstIndex) }

func indexOf(k kind, h Handle) int {
	if h>>26 != 2<<4|Handle(k) || h&(1<<26-1) < firstIndex {
		return -1
	}
	return int(h&(1<<26-1)) - firstIndex
}

// slotOf gives every predefined handle a number of its own below slots. Five datatypes of
// pairs are predefined that do not look so.
func slotOf(h Handle) int {
	slot := int(h&0xff | h>>26&15<<8)
	if h>>30 == 2 {
		slot ^= 0x80
	}
	return slot
}

const slots = 1 << 12

const statusSize = 20

// status is MPI_Status.
type status struct {
	lo, hiCancelled  uint32
	source, tag, err int32
}

func (s *status) set(st mpi.Status) {
	s.source, s.tag = int32(rankTo(st.Source)), int32(tagTo(st.Tag))
	s.lo, s.hiCancelled = uint32(st.Bytes()), uint32(st.Bytes()>>32)<<1
	if st.Cancelled() {
		s.hiCancelled |= 1
	}
}

func (s *status) get() mpi.Status {
	return mpi.StatusOf(rankFrom(int(s.source)), tagFrom(int(s.tag)), int(s.lo)|int(s.hiCancelled>>1)<<32, s.hiCancelled&1 != 0)
}

// classes are the numbers of error classes of package mpi.
var classes = [...]int{
	mpi.Success: MPI_SUCCESS,
	1:           MPI_ERR_BUFFER,
	2:           MPI_ERR_COUNT,
	3:           MPI_ERR_TYPE,
	4:           MPI_ERR_TAG,
	5:           MPI_ERR_COMM,
	6:           MPI_ERR_RANK,
	7:           MPI_ERR_REQUEST,
	8:           MPI_ERR_ROOT,
	9:           MPI_ERR_GROUP,
	10:          MPI_ERR_OP,
	11:          MPI_ERR_TOPOLOGY,
	12:          MPI_ERR_DIMS,
	13:          MPI_ERR_ARG,
	14:          MPI_ERR_UNKNOWN,
	15:          MPI_ERR_TRUNCATE,
	16:          MPI_ERR_OTHER,
	17:          MPI_ERR_INTERN,
	18:          MPI_ERR_PENDING,
	19:          MPI_ERR_IN_STATUS,
	20:          MPI_ERR_ACCESS,
	21:          MPI_ERR_AMODE,
	22:          MPI_ERR_ASSERT,
	23:          MPI_ERR_BAD_FILE,
	24:          MPI_ERR_BASE,
	25:          MPI_ERR_CONVERSION,
	26:          MPI_ERR_DISP,
	27:          MPI_ERR_DUP_DATAREP,
	28:          MPI_ERR_FILE_EXISTS,
	29:          MPI_ERR_FILE_IN_USE,
	30:          MPI_ERR_FILE,
	31:          MPI_ERR_INFO_KEY,
	32:          MPI_ERR_INFO_NOKEY,
	33:          MPI_ERR_INFO_VALUE,
	34:          MPI_ERR_INFO,
	35:          MPI_ERR_IO,
	36:          MPI_ERR_KEYVAL,
	37:          MPI_ERR_LOCKTYPE,
	38:          MPI_ERR_NAME,
	39:          MPI_ERR_NO_MEM,
	40:          MPI_ERR_NOT_SAME,
	41:          MPI_ERR_NO_SPACE,
	42:          MPI_ERR_NO_SUCH_FILE,
	43:          MPI_ERR_PORT,
	44:          MPI_ERR_QUOTA,
	45:          MPI_ERR_READ_ONLY,
	46:          MPI_ERR_RMA_ATTACH,
	47:          MPI_ERR_RMA_CONFLICT,
	48:          MPI_ERR_RMA_RANGE,
	49:          MPI_ERR_RMA_SHARED,
	50:          MPI_ERR_RMA_SYNC,
	51:          MPI_ERR_SERVICE,
	52:          MPI_ERR_SIZE,
	53:          MPI_ERR_SPAWN,
	54:          MPI_ERR_UNSUPPORTED_DATAREP,
	55:          MPI_ERR_UNSUPPORTED_OPERATION,
	56:          MPI_ERR_WIN,
	57:          MPI_ERR_RMA_FLAVOR,
	58:          MPI_ERR_PROC_ABORTED,
	59:          MPI_ERR_VALUE_TOO_LARGE,
	60:          MPI_ERR_SESSION,
	61:          MPI_ERR_ERRHANDLER,
	62:          MPI_ERR_ABI,
}

// shift is between the numbers of errors that the program adds, there and in package mpi.
const shift = MPI_ERR_LASTCODE - 0x3fff

func classTo(c mpi.ErrorClass) int {
	if c > 0x3fff {
		return int(c) + shift
	}
	if int(c) < len(classes) && c >= 0 {
		return classes[c]
	}
	return int(c)
}

func classFrom(code int) mpi.ErrorClass {
	if code > MPI_ERR_LASTCODE {
		return mpi.ErrorClass(code - shift)
	}
	for c, n := range classes {
		if n == code {
			return mpi.ErrorClass(c)
		}
	}
	return mpi.ErrorClass(code)
}

// tagTo is a tag as the program has it.
func tagTo(tag int) int {
	if tag == mpi.AnyTag {
		return MPI_ANY_TAG
	}
	return tag
}
