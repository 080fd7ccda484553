package capi

import (
	"maps"
	"slices"
	"strconv"

	"github.com/xwarp/xwarp/mpi"
)

// abiState is what the program has told about Fortran, and about representations of data in
// files.
type abiState struct {
	fortran  *mpi.Info
	booleans map[int]bool // sizes of logicals that it has told the values of
	datareps map[string]bool
}

// AbiGetVersion is MPI_Abi_get_version: -1 of an ABI that is not the standard's.
func AbiGetVersion(_ *Lib, major, minor Ints) error {
	version, subversion := MPI_ABI_VERSION, MPI_ABI_SUBVERSION
	if version < 0 {
		version, subversion = -1, -1
	}
	major.set(0, version)
	minor.set(0, subversion)
	return nil
}

// AbiGetInfo is MPI_Abi_get_info.
func AbiGetInfo(l *Lib, to Handles) error {
	return l.newInfo(infoOf(map[string]int{"mpi_aint_size": 8, "mpi_count_size": 8, "mpi_offset_size": 8}), nil, to)
}

func infoOf(sizes map[string]int) *mpi.Info {
	i := &mpi.Info{}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		_ = i.Set(key, strconv.Itoa(sizes[key])) // which has a key and a value
	}
	return i
}

// fortranSizes are the sizes of Fortran's types that this library goes by.
var fortranSizes = map[string]int{"mpi_logical_size": 4, "mpi_integer_size": 4, "mpi_real_size": 4, "mpi_double_precision_size": 8}

// AbiSetFortranInfo is MPI_Abi_set_fortran_info, once, with the sizes that this library has.
func AbiSetFortranInfo(l *Lib, info Handle) error {
	i, err := l.info(info)
	if err != nil {
		return err
	}
	for key, size := range fortranSizes {
		if v, ok := i.Get(key); ok && v != strconv.Itoa(size) {
			return fail(mpi.ErrABI, "%s is %s, and not %d", key, v, size)
		}
	}
	if l.abi.fortran != nil {
		return fail(mpi.ErrABI, "it was called before")
	}
	l.abi.fortran = i.Dup()
	return nil
}

// AbiGetFortranInfo is MPI_Abi_get_fortran_info.
func AbiGetFortranInfo(l *Lib, to Handles) error {
	if l.abi.fortran == nil {
		to.set(0, MPI_INFO_NULL)
		return nil
	}
	return l.newInfo(l.abi.fortran.Dup(), nil, to)
}

// logical checks the size of a logical.
func logical(size int) error {
	if !slices.Contains([]int{1, 2, 4, 8, 16}, size) {
		return fail(mpi.ErrArg, "a logical of %d bytes", size)
	}
	return nil
}

// AbiSetFortranBooleans is MPI_Abi_set_fortran_booleans: true is 1 and false is 0 here.
func AbiSetFortranBooleans(l *Lib, size int, yes, no Addr) error {
	if err := logical(size); err != nil {
		return err
	}
	if !yes.memory() || !no.memory() {
		return fail(mpi.ErrArg, "an address is NULL")
	}
	want := make([]byte, size)
	if !slices.Equal(no.bytes(size), want) {
		return fail(mpi.ErrABI, "false must be 0")
	}
	want[0] = 1
	if !slices.Equal(yes.bytes(size), want) {
		return fail(mpi.ErrABI, "true must be 1")
	}
	if l.abi.booleans[size] {
		return fail(mpi.ErrABI, "it was called before")
	}
	if l.abi.booleans == nil {
		l.abi.booleans = map[int]bool{}
	}
	l.abi.booleans[size] = true
	return nil
}

// AbiGetFortranBooleans is MPI_Abi_get_fortran_booleans.
func AbiGetFortranBooleans(l *Lib, size int, yes, no Addr, isSet Ints) error {
	if err := logical(size); err != nil {
		return err
	}
	isSet.setFlag(l.abi.booleans[size])
	if l.abi.booleans[size] {
		if !yes.memory() || !no.memory() {
			return fail(mpi.ErrArg, "an address is NULL")
		}
		clear(no.bytes(size))
		clear(yes.bytes(size))
		yes.bytes(1)[0] = 1
	}
	return nil
}

// Pcontrol is MPI_Pcontrol, which libraries that profile have in place of this one.
func Pcontrol(*Lib, int) error { return nil }

// nativeDatareps are the representations that are always there.
var nativeDatareps = []string{"native", "external32", "internal"}

// RegisterDatarep is MPI_Register_datarep.
func RegisterDatarep(l *Lib, name string, _ Addr, _ bool, _ Addr, _ bool, extent, _ Addr) error {
	switch {
	case name == "" || len(name) >= MPI_MAX_DATAREP_STRING:
		return fail(mpi.ErrArg, "the name of a representation has 1 to %d characters", MPI_MAX_DATAREP_STRING-1)
	case extent == 0:
		return fail(mpi.ErrArg, "the function for extents is NULL")
	case l.abi.datareps[name] || slices.Contains(nativeDatareps, name):
		return fail(mpi.ErrDupDatarep, "representation %s is there", name)
	}
	if l.abi.datareps == nil {
		l.abi.datareps = map[string]bool{}
	}
	l.abi.datareps[name] = true
	return nil
}
