package event

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ring makes the bell readable. The system call is a raw one: it never blocks, and fails only
// when so much was added that the bell is readable anyway; so the scheduler need not know.
func (b Bell) Ring() {
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(b), uintptr(unsafe.Pointer(&one)), 8)
}

// Quiet makes the bell unreadable until it is rung again.
func (b Bell) Quiet() {
	var count uint64
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(b), uintptr(unsafe.Pointer(&count)), 8)
}
