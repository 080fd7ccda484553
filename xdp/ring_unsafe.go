package xdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
)

// fabric.Desc is read and written by the kernel as a struct xdp_desc.
var (
	_ [unsafe.Sizeof(unix.XDPDesc{})]byte           = [unsafe.Sizeof(fabric.Desc{})]byte{}
	_ [unsafe.Offsetof(unix.XDPDesc{}.Len)]byte     = [unsafe.Offsetof(fabric.Desc{}.Len)]byte{}
	_ [unsafe.Offsetof(unix.XDPDesc{}.Options)]byte = [unsafe.Offsetof(fabric.Desc{}.Flags)]byte{}
)

// rings are the four rings of a socket, mapped into this process. The mappings
// hold the socket open: it goes only when they are gone too.
type rings struct {
	fill       fillRing
	completion completionRing
	rx         rxRing
	tx         txRing
	mappings   [][]byte
}

// depths are the sizes of the rings in entries, each a power of two.
type depths struct{ fill, completion, rx, tx int }

// mapRings maps the rings of a socket whose sizes were set. It works as well
// on a socket that another process made and passed on.
func mapRings(fd int, d depths) (*rings, error) { return mapSlot(fd, fd, d) }

// mapSlot maps the rings of a slot: its own two of fd, and those that all slots
// share of the socket that they were made for.
func mapSlot(shared, fd int, d depths) (*rings, error) { return mapEach(shared, shared, fd, fd, d) }

// mapLine maps the rings of two sockets that have none in common with others: to
// receive those of one, to send those of the other, which may be the same.
func mapLine(receive, send int, d depths) (*rings, error) {
	return mapEach(receive, send, receive, send, d)
}

// mapEach maps each ring of the socket that is named for it.
func mapEach(fill, completion, rx, tx int, d depths) (*rings, error) {
	off, err := mmapOffsets(rx)
	if err != nil {
		return nil, fmt.Errorf("getsockopt XDP_MMAP_OFFSETS: %w", err)
	}
	r := &rings{}
	r.fill.addrs = mapRing[mem.Addr](r, &err, fill, unix.XDP_UMEM_PGOFF_FILL_RING, off.Fr, d.fill, &r.fill.indices, producer)
	r.completion.addrs = mapRing[mem.Addr](r, &err, completion, unix.XDP_UMEM_PGOFF_COMPLETION_RING, off.Cr, d.completion, &r.completion.indices, consumer)
	r.rx.descs = mapRing[fabric.Desc](r, &err, rx, unix.XDP_PGOFF_RX_RING, off.Rx, d.rx, &r.rx.indices, consumer)
	r.tx.descs = mapRing[fabric.Desc](r, &err, tx, unix.XDP_PGOFF_TX_RING, off.Tx, d.tx, &r.tx.indices, producer)
	if err != nil {
		r.unmap()
		return nil, err
	}
	return r, nil
}

// mapRx maps the RX ring of a socket, which keeps the mapping.
func mapRx(s *socket, depth int) (*rxRing, error) {
	off, err := mmapOffsets(s.fd)
	if err != nil {
		return nil, fmt.Errorf("getsockopt XDP_MMAP_OFFSETS: %w", err)
	}
	s.rings = &rings{}
	rx := &s.rings.rx
	rx.descs = mapRing[fabric.Desc](s.rings, &err, s.fd, unix.XDP_PGOFF_RX_RING, off.Rx, depth, &rx.indices, consumer)
	return rx, err
}

func (r *rings) unmap() {
	for _, m := range r.mappings {
		// It fails only for a slice that Mmap did not return.
		_ = unix.Munmap(m)
	}
	*r = rings{}
}

// role says which of a ring's indices is ours.
type role bool

const (
	producer role = true
	consumer role = false
)

// mapRing maps one ring, connects its indices and returns its entries. It does
// nothing when *failed says that a ring before it could not be mapped.
func mapRing[T any](r *rings, failed *error, fd int, page int64, off unix.XDPRingOffset, depth int, ix *indices, side role) []T {
	if *failed != nil {
		return nil
	}
	var entry T
	size := int(off.Desc) + depth*int(unsafe.Sizeof(entry))
	m, err := unix.Mmap(fd, page, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		*failed = fmt.Errorf("mmap of ring %#x: %w", page, err)
		return nil
	}
	r.mappings = append(r.mappings, m)
	word := func(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&m[at])) }
	ix.shared, ix.kernel = word(off.Consumer), word(off.Producer)
	if side == producer {
		ix.shared, ix.kernel = ix.kernel, ix.shared
	}
	ix.flags = word(off.Flags)
	ix.mask = uint32(depth - 1)
	ix.ours, ix.theirs = *ix.shared, *ix.shared
	return unsafe.Slice((*T)(unsafe.Pointer(&m[off.Desc])), depth)
}
