package shm

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// puller holds the arguments of a call, so that none is allocated.
type puller struct {
	local  [1]unix.Iovec
	remote [1]unix.RemoteIovec
}

// read fills dst from the memory of a process.
func (p *puller) read(pid int, dst []byte, addr uint64) error {
	for len(dst) > 0 {
		p.local[0].Base = &dst[0]
		p.local[0].SetLen(len(dst))
		p.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(dst)}
		n, err := unix.ProcessVMReadv(pid, p.local[:], p.remote[:], 0)
		p.local[0].Base = nil
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.EFAULT
		}
		dst, addr = dst[n:], addr+uint64(n)
	}
	return nil
}

// canPull tries to read what a caller says of itself. Whether that is allowed
// depends on the user, on namespaces and on how the kernel is set up (ptrace(2),
// "Ptrace access mode checking"); and what is read tells whether the process id
// means the process that has called.
func canPull(pid int, c *laneCall) bool {
	var p puller
	var got [nonceLen]byte
	return pid > 0 && p.read(pid, got[:], c.at) == nil && bytes.Equal(got[:], c.nonce[:])
}

// Pull fills dst from the neighbour's memory at addr with process_vm_readv(2):
// one copy. It takes as long as copying takes, so long messages are pulled in
// pieces. Only who gets messages from the neighbour can pull, and only where
// Lane.Pulls is true on its side.
func (n *Lane) Pull(dst []byte, addr uint64) error {
	if n.in == nil || n.in.pid == 0 {
		return fmt.Errorf("shm: the memory of rank %d cannot be read", n.rank)
	}
	if err := n.lanes.pull.read(n.in.pid, dst, addr); err != nil {
		return fmt.Errorf("shm: %d bytes at %#x of rank %d: %w", len(dst), addr, n.rank, err)
	}
	return nil
}
