package mpi

import (
	"errors"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// allocated is what p has of memory that Alloc returned.
type allocated struct {
	n       int
	segment *p2p.Segment // that the ghost of this rank sends from; nil: none
	ghost   int32
	key     uint32
}

// Alloc returns n zeroed elements in memory that messages are sent from and
// received into without a copy on the way (MPI_Alloc_mem), or, when the arena
// (XWARP_ARENA) has no room for them, in memory like any other. In a job with ghosts,
// memory in which large messages may lie is such that a ghost sends these while the rank
// computes: they are copied then. Give it back with [Free]; the garbage collector does not.
func Alloc[T Scalar](p *Proc, n int) ([]T, error) {
	size := sizeOf[T]()
	if n < 0 || n > math.MaxInt/size {
		return nil, fail(ErrArg, "Alloc", "%d elements", n)
	}
	b, err := p.alloc(n*size, true)
	if err != nil {
		return nil, err
	}
	return mem.ScalarsOf[T](b), nil
}

// AllocBytes is [Alloc] of bytes that are not zeroed: whatever was there before.
func (p *Proc) AllocBytes(n int) ([]byte, error) {
	if n < 0 {
		return nil, fail(ErrArg, "Proc.AllocBytes", "%d bytes", n)
	}
	return p.alloc(n, false)
}

// Free gives back what [Alloc] returned (MPI_Free_mem).
func Free[T Scalar](p *Proc, s []T) error { return p.free(mem.BytesOf(s)) }

// alloc returns n bytes that the ghost of this rank sends from, or else such as allocOwn does.
func (p *Proc) alloc(n int, zero bool) ([]byte, error) {
	if b := p.allocShared(n); b != nil {
		return b, nil
	}
	return p.allocOwn(n, zero)
}

// allocShared returns n zeroed bytes that the ghost of this rank sends from. Nil: it cannot, or has nothing
// to send from there, for messages that are so short go at once, and a rank on this host copies them itself.
func (p *Proc) allocShared(n int) []byte {
	if p.ghosts == nil || p.async.Async == AsyncOff || !slices.ContainsFunc(p.hosts, func(host int) bool { return host != p.hosts[p.rank] }) {
		return nil
	}
	p.ep.Enter()
	defer p.ep.Leave()
	in := p.ep.Inside()
	if n <= max(in.WriteMax(), os.Getpagesize()) || !p.hasGhost() {
		return nil
	}
	segment, err := in.Segments().New(n)
	if err != nil {
		return nil
	}
	// Pages are taken when they are touched, as those of allocOwn: programs ask for more than they use.
	b, ghost := segment.Bytes()[:n:n], p.ghosts.Of[p.rank]
	if key := p2p.Delegations(in).Share(segment, b, ghost); key != 0 {
		p.allocated[mem.AddressOf(b)] = allocated{n, segment, ghost, key}
		return b
	}
	_ = segment.Close() // it was mapped by us
	return nil
}

// allocOwn returns n bytes of memory that this process alone has mapped, all zero if that is wanted.
func (p *Proc) allocOwn(n int, zero bool) ([]byte, error) {
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
		p.allocated[mem.AddressOf(b)] = allocated{n: n}
	}
	p.ep.Leave()
	if lack != nil {
		return nil, &Error{Class: ErrNoMem, Op: "Alloc", Rank: -1, Err: errors.Join(full, lack)}
	}
	if full == nil && zero { // new pages are zeros
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
	a, known := p.allocated[at]
	if !known || a.n != len(b) {
		return fail(ErrBase, "Free", "%d bytes that Alloc did not return, that are a part only, or that were freed before", len(b))
	}
	delete(p.allocated, at)
	if a.segment != nil {
		p2p.Delegations(p.ep.Inside()).Unshare(a.ghost, a.key)
		return a.segment.Close()
	}
	addr, inArena := arena.Find(b)
	if !inArena {
		return syscall.Munmap(b[:len(b):len(b)])
	}
	arena.Free(addr)
	return nil
}
