package capi

import "github.com/xwarp/xwarp/mpi"

// TypeSize is MPI_Type_size.
func TypeSize(l *Lib, datatype Handle, size Ints) error {
	t, err := l.datatype(datatype)
	if err == nil {
		size.setCount(t.Size())
	}
	return err
}

// TypeSizeX is MPI_Type_size_x.
func TypeSizeX(l *Lib, datatype Handle, size Ints) error { return TypeSize(l, datatype, size) }

// TypeGetExtent is MPI_Type_get_extent.
func TypeGetExtent(l *Lib, datatype Handle, lb, extent Ints) error {
	t, err := l.datatype(datatype)
	if err == nil {
		low, n := t.Extent()
		lb.set(0, low)
		extent.set(0, n)
	}
	return err
}

// TypeGetExtentX is MPI_Type_get_extent_x.
func TypeGetExtentX(l *Lib, datatype Handle, lb, extent Ints) error {
	return TypeGetExtent(l, datatype, lb, extent)
}

// TypeGetTrueExtent is MPI_Type_get_true_extent.
func TypeGetTrueExtent(l *Lib, datatype Handle, lb, extent Ints) error {
	t, err := l.datatype(datatype)
	if err == nil {
		low, n := t.TrueExtent()
		lb.set(0, low)
		extent.set(0, n)
	}
	return err
}

// TypeGetTrueExtentX is MPI_Type_get_true_extent_x.
func TypeGetTrueExtentX(l *Lib, datatype Handle, lb, extent Ints) error {
	return TypeGetTrueExtent(l, datatype, lb, extent)
}

// synonyms are names that MPICH has for datatypes with two of them.
var synonyms = map[string]string{"MPI_LONG_LONG": "MPI_LONG_LONG_INT", "MPI_C_FLOAT_COMPLEX": "MPI_C_COMPLEX"}

// TypeGetName is MPI_Type_get_name.
func TypeGetName(l *Lib, datatype Handle, name Text, length Ints) error {
	s := "MPI_DATATYPE_NULL"
	err := l.up()
	if err == nil && datatype != MPI_DATATYPE_NULL {
		var t mpi.Datatype
		if t, err = l.datatype(datatype); err == nil {
			if s = l.proc.TypeName(t); t.Predefined() && synonyms[s] != "" {
				s = synonyms[s]
			}
		}
	}
	if err == nil {
		length.set(0, name.set(s, MPI_MAX_OBJECT_NAME))
	}
	return err
}

// TypeSetName is MPI_Type_set_name.
func TypeSetName(l *Lib, datatype Handle, name string) error {
	t, err := l.datatype(datatype)
	if err == nil {
		err = l.up()
	}
	if err != nil {
		return err
	}
	return l.proc.TypeSetName(t, name)
}

// TypeMatchSize is MPI_Type_match_size.
func TypeMatchSize(l *Lib, typeclass, size int, datatype Handles) error {
	class := mpi.TypeClass(0)
	switch typeclass {
	case MPI_TYPECLASS_REAL:
		class = mpi.TypeClassReal
	case MPI_TYPECLASS_INTEGER:
		class = mpi.TypeClassInteger
	case MPI_TYPECLASS_COMPLEX:
		class = mpi.TypeClassComplex
	}
	t, err := mpi.TypeMatchSize(class, size)
	if t == mpi.TypeInteger16 && MPI_INTEGER16 == MPI_DATATYPE_NULL {
		err = fail(mpi.ErrArg, "this ABI has no integers of 16 bytes")
	}
	return l.create(t, err, datatype, false)
}

// TypeGetValueIndex is MPI_Type_get_value_index.
func TypeGetValueIndex(l *Lib, value, index Handle, pair Handles) error {
	v, err := l.datatype(value)
	if err != nil {
		return err
	}
	i, err := l.datatype(index)
	if err != nil {
		return err
	}
	t := mpi.TypeValueIndex(v, i)
	if t.IsNull() {
		pair.set(0, MPI_DATATYPE_NULL)
		return nil
	}
	return l.create(t, nil, pair, false)
}
