package boot

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
)

// Record returns the memory that the launcher has given this process for what it
// wants to know of it when it has ended, in good order or not; see package trace.
// It returns nil when the launcher wants to know nothing. The memory stays mapped
// as long as the process lives. Only the first call finds it.
func Record() ([]byte, error) {
	s, ok := os.LookupEnv(config.EnvRecordFD)
	if !ok {
		return nil, nil
	}
	fd, err := strconv.Atoi(s)
	if err != nil || fd <= 2 {
		return nil, envError(config.EnvRecordFD, fmt.Sprintf("is %.32q: want a descriptor above 2", s))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size == 0 {
		return nil, envError(config.EnvRecordFD, fmt.Sprintf("is %d, which is no memory here (was it closed, or inherited through another program?)", fd))
	}
	b, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("boot: memory of the record: %w", err)
	}
	if err := os.Unsetenv(config.EnvRecordFD); err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	return b, unix.Close(fd)
}
