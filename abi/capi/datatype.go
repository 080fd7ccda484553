package capi

import (
	"sync"

	"github.com/xwarp/xwarp/mpi"
)

// predefinedTypes are the datatypes that need not be made.
var predefinedTypes = map[Handle]mpi.Datatype{
	MPI_AINT:                    mpi.TypeAint,
	MPI_COUNT:                   mpi.TypeCount,
	MPI_OFFSET:                  mpi.TypeOffset,
	MPI_PACKED:                  mpi.TypePacked,
	MPI_SHORT:                   mpi.TypeShort,
	MPI_INT:                     mpi.TypeInt,
	MPI_LONG:                    mpi.TypeLong,
	MPI_LONG_LONG:               mpi.TypeLongLong,
	MPI_UNSIGNED_SHORT:          mpi.TypeUnsignedShort,
	MPI_UNSIGNED:                mpi.TypeUnsigned,
	MPI_UNSIGNED_LONG:           mpi.TypeUnsignedLong,
	MPI_UNSIGNED_LONG_LONG:      mpi.TypeUnsignedLongLong,
	MPI_FLOAT:                   mpi.TypeFloat,
	MPI_C_FLOAT_COMPLEX:         mpi.TypeCFloatComplex,
	MPI_CXX_FLOAT_COMPLEX:       mpi.TypeCXXFloatComplex,
	MPI_DOUBLE:                  mpi.TypeDouble,
	MPI_C_DOUBLE_COMPLEX:        mpi.TypeCDoubleComplex,
	MPI_CXX_DOUBLE_COMPLEX:      mpi.TypeCXXDoubleComplex,
	MPI_LOGICAL:                 mpi.TypeLogical,
	MPI_INTEGER:                 mpi.TypeInteger,
	MPI_REAL:                    mpi.TypeReal,
	MPI_COMPLEX:                 mpi.TypeComplex,
	MPI_DOUBLE_PRECISION:        mpi.TypeDoublePrecision,
	MPI_DOUBLE_COMPLEX:          mpi.TypeDoubleComplex,
	MPI_LONG_DOUBLE:             mpi.TypeLongDouble,
	MPI_C_LONG_DOUBLE_COMPLEX:   mpi.TypeCLongDoubleComplex,
	MPI_CXX_LONG_DOUBLE_COMPLEX: mpi.TypeCXXLongDoubleComplex,
	MPI_FLOAT_INT:               mpi.TypeFloatInt,
	MPI_DOUBLE_INT:              mpi.TypeDoubleInt,
	MPI_LONG_INT:                mpi.TypeLongInt,
	MPI_2INT:                    mpi.TypeTwoInt,
	MPI_SHORT_INT:               mpi.TypeShortInt,
	MPI_LONG_DOUBLE_INT:         mpi.TypeLongDoubleInt,
	MPI_2REAL:                   mpi.TypeTwoReal,
	MPI_2DOUBLE_PRECISION:       mpi.TypeTwoDoublePrecision,
	MPI_2INTEGER:                mpi.TypeTwoInteger,
	MPI_C_BOOL:                  mpi.TypeCBool,
	MPI_CXX_BOOL:                mpi.TypeCXXBool,
	MPI_WCHAR:                   mpi.TypeWChar,
	MPI_INT8_T:                  mpi.TypeInt8,
	MPI_UINT8_T:                 mpi.TypeUint8,
	MPI_CHAR:                    mpi.TypeChar,
	MPI_SIGNED_CHAR:             mpi.TypeSignedChar,
	MPI_UNSIGNED_CHAR:           mpi.TypeUnsignedChar,
	MPI_BYTE:                    mpi.TypeByte,
	MPI_INT16_T:                 mpi.TypeInt16,
	MPI_UINT16_T:                mpi.TypeUint16,
	MPI_INT32_T:                 mpi.TypeInt32,
	MPI_UINT32_T:                mpi.TypeUint32,
	MPI_INT64_T:                 mpi.TypeInt64,
	MPI_UINT64_T:                mpi.TypeUint64,
	MPI_INTEGER1:                mpi.TypeInteger1,
	MPI_CHARACTER:               mpi.TypeCharacter,
	MPI_INTEGER2:                mpi.TypeInteger2,
	MPI_INTEGER4:                mpi.TypeInteger4,
	MPI_REAL4:                   mpi.TypeReal4,
	MPI_INTEGER8:                mpi.TypeInteger8,
	MPI_REAL8:                   mpi.TypeReal8,
	MPI_COMPLEX8:                mpi.TypeComplex8,
	MPI_COMPLEX16:               mpi.TypeComplex16,
	MPI_INTEGER16:               mpi.TypeInteger16,
	MPI_REAL16:                  mpi.TypeReal16,
	MPI_COMPLEX32:               mpi.TypeComplex32,
}

// datatypes are those that the program has handles for.
type datatypes struct {
	predefined [slots]struct {
		handle Handle
		t      mpi.Datatype
	}
	made table[madeType]

	mu      sync.Mutex // guards what follows
	handles map[mpi.Datatype]Handle
	f90     map[parameters]Handle
}

// madeType is a datatype that was made.
type madeType struct {
	mpi.Datatype
	large bool        // by a function with large counts
	f90   *parameters // not nil: by one of those for types of Fortran, and it is not to be freed
	uses  int         // how often the program has got its handle, guarded by datatypes.mu
}

func (d *datatypes) init() {
	d.made.kind = kindDatatype
	d.handles = map[mpi.Datatype]Handle{}
	d.f90 = map[parameters]Handle{}
	for h, t := range predefinedTypes {
		if h == MPI_DATATYPE_NULL {
			continue // what the ABI does not have: MPI_INTEGER16
		}
		d.predefined[slotOf(h)].handle, d.predefined[slotOf(h)].t = h, t
		d.handles[t] = h
	}
}

// handle gives the program a handle of a datatype, which it must free unless the datatype is
// predefined.
func (d *datatypes) handle(t mpi.Datatype, large bool) Handle {
	d.mu.Lock()
	defer d.mu.Unlock()
	h, there := d.handles[t]
	if !there {
		h = d.made.add(madeType{Datatype: t, large: large})
		d.handles[t] = h
	}
	if m := d.made.get(h); m != nil {
		m.uses++
	}
	return h
}

// drop takes back a handle that the program has got.
func (d *datatypes) drop(h Handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.made.get(h)
	if m == nil {
		return
	}
	if m.uses--; m.uses == 0 {
		delete(d.handles, m.Datatype)
		d.made.remove(h)
	}
}

// last reports whether the program has got the handle no more than once.
func (d *datatypes) last(h Handle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.made.get(h)
	return m != nil && m.uses == 1
}

// datatype returns a datatype, or says what is wrong.
func (l *Lib) datatype(h Handle) (mpi.Datatype, error) {
	if p := &l.types.predefined[slotOf(h)]; p.handle == h && !p.t.IsNull() {
		return p.t, nil
	}
	if m := l.types.made.get(h); m != nil {
		return m.Datatype, nil
	}
	if h == MPI_DATATYPE_NULL {
		return mpi.Datatype{}, fail(mpi.ErrType, "MPI_DATATYPE_NULL")
	}
	return mpi.Datatype{}, fail(mpi.ErrType, "%#x is no datatype, or was freed", uintptr(h))
}

// data is the buffer, the count and the datatype of a call.
func (l *Lib) data(buf Addr, count int, datatype Handle) (mpi.Data, error) {
	t, err := l.datatype(datatype)
	switch {
	case count == 0 && !needsType && (err != nil || !t.Committed()):
		return mpi.Bytes(nil, 0, 0, mpi.TypeByte), nil
	case err != nil:
		return mpi.Data{}, err
	case count < 0:
		return mpi.Data{}, fail(mpi.ErrCount, "%d elements", count)
	case !t.Committed():
		return mpi.Data{}, fail(mpi.ErrType, "the datatype was not committed: call MPI_Type_commit")
	case count == 0:
		return mpi.Bytes(nil, 0, 0, t), nil
	}
	// What the elements touch, from the lowest byte on. The buffer of datatypes with absolute
	// addresses is MPI_BOTTOM, 0.
	_, extent := t.Extent()
	low, size := t.TrueExtent()
	if size == 0 {
		return mpi.Bytes(nil, 0, count, t), nil
	}
	more := (count - 1) * extent
	if more < 0 {
		low += more
	}
	size += max(more, -more)
	at := buf + Addr(low)
	if !at.memory() || at+Addr(size) < at {
		return mpi.Data{}, fail(mpi.ErrBuffer, "%d elements at address %#x", count, uintptr(buf))
	}
	return mpi.Bytes(at.bytes(size), -low, count, t), nil
}

// GetAddress is MPI_Get_address.
func GetAddress(_ *Lib, location Addr, address Ints) error {
	address.set(0, int(location))
	return nil
}

// AintAdd is MPI_Aint_add.
func AintAdd(_ *Lib, base, disp int) int64 { return int64(base + disp) }

// AintDiff is MPI_Aint_diff.
func AintDiff(_ *Lib, addr1, addr2 int) int64 { return int64(addr1 - addr2) }
