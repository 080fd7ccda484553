package shm

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// ringMemory is a memfd that one ring lies in, or several: a huge page then, if the kernel has one. Rings have their
// pages at once there, and one entry of the TLB finds all of them when a process gets its turn.
type ringMemory struct {
	b           []byte
	fd          int
	rings, used int
}

// channelsHuge is how many huge pages the rings of a process have. Of more neighbours than these are for most send
// little: a ring of theirs is a memfd of its own, whose pages come when they are touched.
const channelsHuge = 2

// place returns where the next ring begins, control and data, in which memory. The caller closes fd.
func (l *Channels) place() (m *ringMemory, at, fd int, err error) {
	if n := len(l.memory); n > 0 && l.memory[n-1].used < l.memory[n-1].rings {
		m = l.memory[n-1]
	} else if m, err = newRingMemory(l.ringLen(), n < channelsHuge); err == nil {
		l.memory = append(l.memory, m)
	}
	if err == nil {
		fd, err = unix.FcntlInt(uintptr(m.fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		return nil, 0, -1, err
	}
	at = m.used * l.ringLen()
	if m.used++; m.used == m.rings {
		unix.Close(m.fd)
		m.fd = -1
	}
	return m, at, fd, nil
}

// ringLen returns how many bytes a ring takes, control and data.
func (l *Channels) ringLen() int { return dataAt + l.cfg.Ring }

// newRingMemory makes memory for rings of so many bytes: for one, or for a huge page of them.
func newRingMemory(long int, huge bool) (m *ringMemory, err error) {
	m = &ringMemory{rings: 1}
	size := long
	if many := mem.HugePage / long; many > 1 && huge {
		m.rings, size = many, mem.HugePage
	}
	m.fd, m.b, err = newMemory(memfdName, size)
	return m, err
}

// close gives the memory back.
func (m *ringMemory) close() (err error) {
	if m.fd >= 0 {
		err = unix.Close(m.fd)
	}
	return errors.Join(err, os.NewSyscallError("munmap", mem.Unmap(m.b)))
}
