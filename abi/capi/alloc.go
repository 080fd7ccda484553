package capi

import (
	"sync"

	"github.com/xwarp/xwarp/mpi"
)

// allocated is the memory of MPI_Alloc_mem: C frees it by its address alone.
type allocated struct {
	mu     sync.Mutex
	memory map[Addr][]byte
}

// AllocMem is MPI_Alloc_mem.
func AllocMem(l *Lib, size int, info Handle, base Addr) error {
	if err := l.up(); err != nil {
		return err
	}
	if _, err := l.infoOrNull(info); err != nil {
		return err
	}
	if base == 0 {
		return fail(mpi.ErrArg, "baseptr is NULL")
	}
	b, err := l.proc.AllocBytes(size)
	if err != nil {
		return err
	}
	m, at := &l.memory, addressOf(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.memory == nil {
		m.memory = map[Addr][]byte{}
	}
	if at != 0 {
		m.memory[at] = b
	}
	*base.word() = uintptr(at)
	return nil
}

// FreeMem is MPI_Free_mem.
func FreeMem(l *Lib, base Addr) error {
	err := l.up()
	if err != nil || base == 0 {
		return err
	}
	m := &l.memory
	m.mu.Lock()
	b, there := m.memory[base]
	delete(m.memory, base)
	m.mu.Unlock()
	if !there {
		return fail(mpi.ErrBase, "%#x is no address that MPI_Alloc_mem returned, or was freed", uintptr(base))
	}
	return mpi.Free(l.proc, b)
}
