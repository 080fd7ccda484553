package capi

import (
	"math"

	"github.com/xwarp/xwarp/mpi"
)

// noStatus is MPI_STATUS_IGNORE.
const noStatus Statuses = 0

// status returns a status of the program, which must be there.
func (s Statuses) load() (mpi.Status, error) {
	if s.ignored() {
		return mpi.Status{}, fail(mpi.ErrArg, "a status is wanted, not MPI_STATUS_IGNORE")
	}
	return s.at(0).get(), nil
}

// GetCount is MPI_Get_count.
func GetCount(l *Lib, status Statuses, datatype Handle, count Ints) error {
	return l.elements(status, datatype, count, mpi.Status.Count)
}

// GetElements is MPI_Get_elements.
func GetElements(l *Lib, status Statuses, datatype Handle, count Ints) error {
	return l.elements(status, datatype, count, mpi.Status.Elements)
}

// GetElementsX is MPI_Get_elements_x.
func GetElementsX(l *Lib, status Statuses, datatype Handle, count Ints) error {
	return GetElements(l, status, datatype, count)
}

func (l *Lib) elements(status Statuses, datatype Handle, count Ints, of func(mpi.Status, mpi.Datatype) int) error {
	st, err := status.load()
	if err != nil {
		return err
	}
	t, err := l.datatype(datatype)
	if err != nil {
		return err
	}
	n := of(st, t)
	if n == mpi.Undefined {
		n = MPI_UNDEFINED
	}
	count.setCount(n)
	return nil
}

// StatusSetElements is MPI_Status_set_elements. The count is of elements of predefined datatypes,
// but in MPICH, whose programs and tests go by that, of the datatype itself.
func StatusSetElements(l *Lib, status Statuses, datatype Handle, count int) error {
	st, err := status.load()
	if err != nil {
		return err
	}
	t, err := l.datatype(datatype)
	if err == nil && setsWhole {
		t, count, err = whole(t, count)
	}
	if err == nil {
		err = st.SetElements(t, count)
	}
	if err == nil {
		status.set(0, st)
	}
	return err
}

// whole is as many bytes as a count of a datatype has.
func whole(t mpi.Datatype, count int) (mpi.Datatype, int, error) {
	switch size := t.Size(); {
	case count <= 0: // none, or an error of its own
		return t, count, nil
	case size > math.MaxInt/count:
		return t, 0, fail(mpi.ErrCount, "%d of %v are more bytes than can be counted", count, t)
	default:
		return mpi.TypeByte, count * size, nil
	}
}

// StatusSetElementsX is MPI_Status_set_elements_x.
func StatusSetElementsX(l *Lib, status Statuses, datatype Handle, count int) error {
	return StatusSetElements(l, status, datatype, count)
}

// StatusSetCancelled is MPI_Status_set_cancelled.
func StatusSetCancelled(_ *Lib, status Statuses, flag int) error {
	st, err := status.load()
	if err == nil {
		st.SetCancelled(flag != 0)
		status.set(0, st)
	}
	return err
}

// TestCancelled is MPI_Test_cancelled.
func TestCancelled(_ *Lib, status Statuses, flag Ints) error {
	st, err := status.load()
	if err == nil {
		flag.setFlag(st.Cancelled())
	}
	return err
}

// StatusGetSource is MPI_Status_get_source.
func StatusGetSource(_ *Lib, status Statuses, source Ints) error {
	_, err := status.load()
	if err == nil {
		source.set(0, int(status.at(0).source))
	}
	return err
}

// StatusSetSource is MPI_Status_set_source.
func StatusSetSource(_ *Lib, status Statuses, source int) error {
	_, err := status.load()
	if err == nil {
		status.at(0).source = int32(source)
	}
	return err
}

// StatusGetTag is MPI_Status_get_tag.
func StatusGetTag(_ *Lib, status Statuses, tag Ints) error {
	_, err := status.load()
	if err == nil {
		tag.set(0, int(status.at(0).tag))
	}
	return err
}

// StatusSetTag is MPI_Status_set_tag.
func StatusSetTag(_ *Lib, status Statuses, tag int) error {
	_, err := status.load()
	if err == nil {
		status.at(0).tag = int32(tag)
	}
	return err
}

// StatusGetError is MPI_Status_get_error.
func StatusGetError(_ *Lib, status Statuses, number Ints) error {
	_, err := status.load()
	if err == nil {
		number.set(0, int(status.at(0).err))
	}
	return err
}

// StatusSetError is MPI_Status_set_error.
func StatusSetError(_ *Lib, status Statuses, number int) error {
	_, err := status.load()
	if err == nil {
		status.setError(0, number)
	}
	return err
}
