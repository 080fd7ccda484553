package capi

import (
	"syscall"
	"unsafe"

	"github.com/xwarp/xwarp/mpi"
)

// An Addr is an address of the program, or a word that is none but has the type of one in C.
type Addr uintptr

// pointer is for addresses of memory only: what is below lowest must not become a pointer.
func (a Addr) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// Memory has addresses from lowest to below highest, other words are none: Go ends a program
// in which a pointer is lower, and not nil.
const (
	lowest  = 0x1000
	highest = 1 << 56
)

// memory reports whether there can be memory at a.
func (a Addr) memory() bool { return a >= lowest && a < highest }

// bytes is n bytes of memory.
func (a Addr) bytes(n int) []byte { return unsafe.Slice((*byte)(a.pointer()), n) }

// addressOf is where memory of ours is.
func addressOf(b []byte) Addr { return Addr(unsafe.Pointer(unsafe.SliceData(b))) }

// addressOfValue is where a variable of ours is that the program may read.
func addressOfValue[T any](p *T) Addr { return Addr(unsafe.Pointer(p)) }

// String is the text that ends with a byte 0.
func (a Addr) String() string {
	if !a.memory() {
		return ""
	}
	n := 0
	for *(*byte)((a + Addr(n)).pointer()) != 0 {
		n++
	}
	return string(a.bytes(n))
}

// word is the word in memory there.
func (a Addr) word() *uintptr { return (*uintptr)(a.pointer()) }

// Ints are one or more integers of the program: int, or wide as MPI_Count and MPI_Aint are.
type Ints struct {
	At   uintptr
	Wide bool
}

// null reports whether there are none.
func (n Ints) null() bool { return n.At < lowest }

func (n Ints) get(i int) int {
	if n.Wide {
		return int(*(*int64)((Addr(n.At) + Addr(i*8)).pointer()))
	}
	return int(*(*int32)((Addr(n.At) + Addr(i*4)).pointer()))
}

func (n Ints) set(i, v int) {
	if n.null() {
		return
	}
	if n.Wide {
		*(*int64)((Addr(n.At) + Addr(i*8)).pointer()) = int64(v)
		return
	}
	*(*int32)((Addr(n.At) + Addr(i*4)).pointer()) = int32(v)
}

// setCount sets a count, which an int may be too small for: then it is MPI_UNDEFINED.
func (n Ints) setCount(v int) {
	if !n.Wide && int(int32(v)) != v {
		v = MPI_UNDEFINED
	}
	n.set(0, v)
}

// setFlag sets a flag.
func (n Ints) setFlag(yes bool) {
	v := 0
	if yes {
		v = 1
	}
	n.set(0, v)
}

// slice is a copy of count of them.
func (n Ints) slice(count int) []int {
	s := make([]int, count)
	for i := range s {
		s[i] = n.get(i)
	}
	return s
}

// list is slice that says what is wrong with the arguments.
func (n Ints) list(what string, count int) ([]int, error) {
	if err := n.there(what, count); err != nil {
		return nil, err
	}
	return n.slice(count), nil
}

// there says what is wrong with the address of so many.
func (n Ints) there(what string, count int) error {
	switch {
	case count < 0:
		return fail(mpi.ErrArg, "%d %s", count, what)
	case count > 0 && n.null():
		return fail(mpi.ErrArg, "%d %s, and no array of them", count, what)
	}
	return nil
}

// setAll sets them to those of a list that there is room for.
func (n Ints) setAll(list []int, room int) {
	for i, v := range list[:min(len(list), max(room, 0))] {
		n.set(i, v)
	}
}

// Handles are one or more variables of the program with handles.
type Handles uintptr

func (h Handles) null() bool { return h < lowest }

// there says what is wrong with the address of so many.
func (h Handles) there(what string, count int) error {
	if count > 0 && h.null() {
		return fail(mpi.ErrArg, "%d %s, and no array of them", count, what)
	}
	return nil
}

// from is the array from an index on.
func (h Handles) from(i int) Handles { return h + Handles(i*handleSize) }

func (h Handles) get(i int) Handle {
	at := (Addr(h) + Addr(i*handleSize)).pointer()
	if handleSize == 4 {
		return Handle(*(*uint32)(at))
	}
	return Handle(*(*uintptr)(at))
}

func (h Handles) set(i int, v Handle) {
	at := (Addr(h) + Addr(i*handleSize)).pointer()
	if handleSize == 4 {
		*(*uint32)(at) = uint32(v)
		return
	}
	*(*uintptr)(at) = uintptr(v)
}

// Lose makes a variable for an object that was not made say so.
func (h Handles) Lose(none Handle) {
	if !h.null() {
		h.set(0, none)
	}
}

// Text is memory of the program for a string.
type Text uintptr

func (t Text) null() bool { return t < lowest }

// set writes s and the byte 0 after it, of which there is room for so many bytes in all. It
// returns the length of what it has written, without that byte.
func (t Text) set(s string, room int) int {
	if t.null() || room <= 0 {
		return 0
	}
	b := Addr(t).bytes(room)
	n := copy(b[:room-1], s)
	b[n] = 0
	return n
}

// Statuses are one or more variables of type MPI_Status, or MPI_STATUS_IGNORE.
type Statuses uintptr

func (s Statuses) ignored() bool { return s < lowest }

func (s Statuses) at(i int) *status { return (*status)((Addr(s) + Addr(i*statusSize)).pointer()) }

// set sets a status, but not its error.
func (s Statuses) set(i int, st mpi.Status) {
	if !s.ignored() {
		s.at(i).set(st)
	}
}

// setError sets the error of a status.
func (s Statuses) setError(i, code int) {
	if !s.ignored() {
		s.at(i).err = int32(code)
	}
}

// statusOf is a status of ours as one of the program's.
func statusOf(m *StatusMemory) Statuses { return Statuses(unsafe.Pointer(m)) }

// rawNanosleep sleeps without telling Go's runtime. It is not inlined, for the loop around it
// would have no other point at which the runtime can stop the goroutine: a signal finds the
// thread in the system call, where Go does not preempt.
//
//go:noinline
func rawNanosleep(t *syscall.Timespec) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(t)), 0, 0)
}
