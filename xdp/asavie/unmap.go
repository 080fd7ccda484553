package asavie

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// unmapRings removes the mappings of a socket's rings. asavie/xdp forgets them
// when it closes a socket, and the kernel keeps a socket, and the queue that
// it is bound to, for as long as it is mapped. The only place left to learn
// the addresses from is the kernel's own list.
func unmapRings(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("asavie: fstat: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("asavie: cannot find the mappings of the rings: %w", err)
	}
	for _, m := range mappingsOf(maps, st.Ino) {
		if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, m.start, m.end-m.start, 0); errno != 0 {
			return fmt.Errorf("asavie: munmap: %w", errno)
		}
	}
	return nil
}

type mapping struct{ start, end uintptr }

// mappingsOf finds the mappings of the socket with an inode number in the
// content of /proc/self/maps (proc_pid_maps(5)):
//
//	7f0c3c000000-7f0c3c002000 rw-s 80000000 00:08 4711    socket:[4711]
func mappingsOf(maps []byte, inode uint64) []mapping {
	name := []byte(fmt.Sprintf("socket:[%d]", inode))
	var found []mapping
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line)
		if len(f) != 6 || !bytes.Equal(f[5], name) {
			continue
		}
		from, to, _ := bytes.Cut(f[0], []byte("-"))
		start, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		if err1 == nil && err2 == nil && start < end {
			found = append(found, mapping{uintptr(start), uintptr(end)})
		}
	}
	return found
}
