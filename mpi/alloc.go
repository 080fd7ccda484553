package mpi

import (
	"errors"
	"math"
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// Alloc returns n zeroed elements in memory that messages are sent from and
// received into without a copy on the way (MPI_Alloc_mem), or, when the arena
// (XWARP_ARENA) has no room for them, in memory like any other. Give them back
// with [Free]; the garbage collector does not.
func Alloc[T Scalar](p *Proc, n int) ([]T, error) {
	size := sizeOf[T]()
	if n < 0 || n > math.MaxInt/size {
		return nil, fail(ErrArg, "Alloc", "%d elements", n)
	}
	b, err := p.alloc(n * size)
	if err != nil {
		return nil, err
	}
	return mem.ScalarsOf[T](b), nil
}

// Free gives back what [Alloc] returned (MPI_Free_mem).
func Free[T Scalar](p *Proc, s []T) error { return p.free(mem.BytesOf(s)) }

func (p *Proc) alloc(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	arena := p.ctx.Arena()
	p.ep.Enter()
	addr, full := arena.Alloc(n, 64)
	var b []byte
	var lack error
	if full == nil {
		b = arena.At(addr, n)
	} else {
		b, lack = syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	}
	if lack == nil {
		p.allocated[mem.AddressOf(b)] = n
	}
	p.ep.Leave()
	if lack != nil {
		return nil, &Error{Class: ErrNoMem, Op: "Alloc", Rank: -1, Err: errors.Join(full, lack)}
	}
	if full == nil { // pages are zeros
		clear(b)
	}
	return b, nil
}

func (p *Proc) free(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	arena := p.ctx.Arena()
	p.ep.Enter()
	defer p.ep.Leave()
	at := mem.AddressOf(b)
	if n, known := p.allocated[at]; !known || n != len(b) {
		return fail(ErrBase, "Free", "%d bytes that Alloc did not return, that are a part only, or that were freed before", len(b))
	}
	delete(p.allocated, at)
	addr, inArena := arena.Find(b)
	if !inArena {
		return syscall.Munmap(b[:len(b):len(b)])
	}
	arena.Free(addr)
	return nil
}
