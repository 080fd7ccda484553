package capi

import (
	"sync"
	"sync/atomic"

	"github.com/xwarp/xwarp/mpi"
)

// A Handle names an object of MPI in the program. How it looks is for the ABI to say.
type Handle uintptr

// kind is what a handle is for. The numbers are MPICH's.
type kind uintptr

const (
	kindComm kind = 1 + iota
	kindGroup
	kindDatatype
	kindFile
	kindErrhandler
	kindOp
	kindInfo
	kindWin
	kindKeyval
	_
	kindRequest
	kindMessage
	_
	kindSession
)

// firstIndex is the lowest number in handles of ours: lower ones are predefined.
const firstIndex = 256

const (
	chunkSize = 256
	maxChunks = 1 << 14
)

// A table has the objects of one kind that the program has handles for. To look one up takes
// no lock.
type table[T any] struct {
	kind   kind
	serial bool // only one thread at a time adds objects and removes them
	chunks [maxChunks]atomic.Pointer[[chunkSize]row[T]]

	mu   sync.Mutex // guards what follows, and used of all rows
	free []int
	n    int
}

// lock takes the lock where it is needed: an instruction that locks waits until all that was stored before is in the cache, be
// it lines that another processor has.
func (t *table[T]) lock() {
	if !t.serial {
		t.mu.Lock()
	}
}

func (t *table[T]) unlock() {
	if !t.serial {
		t.mu.Unlock()
	}
}

// row has an object. Whether it is used is looked at without the lock, for a program may use a handle only
// behind the call that has made it, and before the one that frees it.
type row[T any] struct {
	used  bool
	value T
}

// add puts an object into the table.
func (t *table[T]) add(v T) Handle {
	t.lock()
	r, h := t.place()
	r.value = v
	t.unlock()
	return h
}

// take puts the zero value into the table, for the caller to set where it is. It is for objects that are not searched for:
// find may see it before.
func (t *table[T]) take() (*T, Handle) {
	t.lock()
	r, h := t.place()
	t.unlock()
	return &r.value, h
}

// place is a row for an object. The caller has the lock.
func (t *table[T]) place() (*row[T], Handle) {
	index := t.n
	if last := len(t.free) - 1; last >= 0 {
		index, t.free = t.free[last], t.free[:last]
	} else {
		if t.n++; index%chunkSize == 0 {
			t.chunks[index/chunkSize].Store(new([chunkSize]row[T]))
		}
	}
	r := &t.chunks[index/chunkSize].Load()[index%chunkSize]
	r.used = true
	return r, makeHandle(t.kind, index)
}

func (t *table[T]) row(h Handle) *row[T] {
	index := indexOf(t.kind, h)
	if index < 0 || index >= chunkSize*maxChunks {
		return nil
	}
	if chunk := t.chunks[index/chunkSize].Load(); chunk != nil && chunk[index%chunkSize].used {
		return &chunk[index%chunkSize]
	}
	return nil
}

// get returns an object, or nil.
func (t *table[T]) get(h Handle) *T {
	if r := t.row(h); r != nil {
		return &r.value
	}
	return nil
}

// find returns the handle of an object, or none.
func (t *table[T]) find(none Handle, is func(*T) bool) Handle {
	t.lock()
	defer t.unlock()
	for i := range t.n {
		h := makeHandle(t.kind, i)
		if v := t.get(h); v != nil && is(v) {
			return h
		}
	}
	return none
}

// remove takes an object out of the table.
func (t *table[T]) remove(h Handle) {
	t.lock()
	if r := t.row(h); r != nil {
		*r = row[T]{}
		t.free = append(t.free, indexOf(t.kind, h))
	}
	t.unlock()
}

// rankFrom is a rank as package mpi has it.
func rankFrom(r int) int {
	switch {
	case r >= 0:
		return r
	case r == MPI_PROC_NULL:
		return mpi.ProcNull
	case r == MPI_ANY_SOURCE:
		return mpi.AnySource
	case r == MPI_ROOT:
		return mpi.Root
	}
	return mpi.Undefined
}

// rankTo is a rank as the program has it.
func rankTo(r int) int {
	switch {
	case r >= 0:
		return r
	case r == mpi.ProcNull:
		return MPI_PROC_NULL
	case r == mpi.AnySource:
		return MPI_ANY_SOURCE
	case r == mpi.Root:
		return MPI_ROOT
	}
	return MPI_UNDEFINED
}

// tagFrom is a tag as package mpi has it.
func tagFrom(tag int) int {
	switch {
	case tag >= 0:
		return tag
	case tag == MPI_ANY_TAG:
		return mpi.AnyTag
	}
	return mpi.Undefined
}
