package xdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// overlay maps memory for the UMEM of a queue on which one process sends and
// another receives, which may be the same, or none (nil) where the queue is not
// used that way. The UMEM is the arena of the sender, but for its first bytes,
// which are those of the receiver's. Since every slot receives into the beginning
// of his arena and sends from behind it, both find in the UMEM what they mean under
// the addresses of their own arenas, and neither what the other has besides.
// The caller unmaps it.
func overlay(sender, receiver *Arena, receive int) ([]byte, error) {
	if sender == nil {
		sender = receiver
	}
	if receiver == nil {
		receiver = sender
	}
	if sender == nil { // a queue that must be there and without users
		return unix.Mmap(-1, 0, receive, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	}
	b, err := unix.Mmap(sender.FD(), 0, sender.Len(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("xdp: cannot map %d bytes: %w", sender.Len(), err)
	}
	if receiver == sender {
		return b, nil
	}
	at := unsafe.Pointer(unsafe.SliceData(b))
	_, err = unix.MmapPtr(receiver.FD(), 0, at, uintptr(receive), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		_ = unix.Munmap(b)
		return nil, fmt.Errorf("xdp: cannot map %d bytes over others: %w", receive, err)
	}
	return b, nil
}
