package shm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// puller holds the arguments of a call, so that none is allocated.
type puller struct {
	local  [2]unix.Iovec
	remote [2]unix.RemoteIovec
	guard  [guardLen]byte
}

// guardLen is the length of a guard in bytes.
const guardLen = 8

// read fills dst from the memory of a process, and then the guard.
func (p *puller) read(pid int, dst []byte, addr, guard uint64) error {
	p.local[1].Base = &p.guard[0]
	p.local[1].SetLen(guardLen)
	p.remote[1] = unix.RemoteIovec{Base: uintptr(guard), Len: guardLen}
	for {
		if len(dst) > 0 {
			p.local[0].Base = &dst[0]
		}
		p.local[0].SetLen(len(dst))
		p.remote[0] = unix.RemoteIovec{Base: uintptr(addr), Len: len(dst)}
		n, err := unix.ProcessVMReadv(pid, p.local[:], p.remote[:], 0)
		p.local[0].Base = nil
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == len(dst)+guardLen:
			return nil
		case n == 0 || len(dst) == 0:
			return unix.EFAULT
		default: // cut short by a signal
			n = min(n, len(dst))
			dst, addr = dst[n:], addr+uint64(n)
		}
	}
}

// canPull tries to read what a caller says of itself. Whether that is allowed
// depends on the user, on namespaces and on how the kernel is set up (ptrace(2),
// "Ptrace access mode checking"); and what is read tells whether the process id
// means the process that has called.
func canPull(pid int, c *call) bool {
	var p puller
	var got [nonceLen]byte
	return pid > 0 && p.read(pid, got[:], c.At, c.At) == nil && got == c.Nonce
}

// Pull fills dst from the neighbour's memory at addr with process_vm_readv(2):
// one copy. Then it reads the guard, a word in the neighbour's memory that tells
// whether addr was still meant when the copy was made. It takes as long as
// copying takes, so long messages are pulled in pieces. Only a receiver of messages
// from the neighbour can pull, and only where Pulls is true on its side.
func (n *Channel) Pull(dst []byte, addr, guard uint64) (word uint64, err error) {
	if n.in == nil || n.in.pid == 0 {
		return 0, fmt.Errorf("shm: the memory of rank %d cannot be read", n.rank)
	}
	p := &n.channels.pull
	if err := p.read(n.in.pid, dst, addr, guard); err != nil {
		return 0, fmt.Errorf("shm: %d bytes at %#x of rank %d: %w", len(dst), addr, n.rank, err)
	}
	return binary.NativeEndian.Uint64(p.guard[:]), nil
}
