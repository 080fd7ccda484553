package footprint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/ktcp"
	"github.com/xwarp/xwarp/verbs"
)

// kernel carries connections over the kernel's TCP on loopback.
type kernel struct{ arena *mem.Arena }

func newKernel() carrier { return kernel{mem.Over(make([]byte, 16*mem.FrameSize))} }

func (k kernel) open(int) (verbs.Config, error) {
	s, err := ktcp.Open(ktcp.Config{Arena: k.arena, Local: netip.AddrFrom4([4]byte{127, 0, 0, 1})})
	if err != nil {
		return verbs.Config{}, err
	}
	return overStreams(s, mono.Real{}, spinner{}), nil
}

func (kernel) run(server, clients turn) error { return inTurns(server, clients) }

// spareFiles are the descriptors that a program needs for other things.
const spareFiles = 128

// MostOverTCP returns how many connections fit this process, which has both
// ends of each: its limit of open files decides (ulimit -n), which is raised as
// far as it may be.
func MostOverTCP() (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("footprint: limit of open files: %w", err)
	}
	if l.Cur < l.Max {
		l.Cur = l.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			return 0, fmt.Errorf("footprint: raising the limit of open files to %d: %w", l.Max, err)
		}
	}
	return max(int(l.Cur)-spareFiles, 0) / 2, nil
}

// slabs are what the kernel allocates for a TCP socket that a process has open
// and waits for with epoll.
var slabs = [...]string{"TCP", "sock_inode_cache", "dentry", "filp", "eventpoll_epi"}

// ErrNoSlabs is wrapped when the kernel does not tell the sizes of its objects.
var ErrNoSlabs = errors.New("footprint: the sizes of kernel objects are not known")

// Socket returns how many bytes of kernel memory an idle TCP socket takes: its
// objects, by their sizes in /proc/slabinfo, which root may read. Its buffers
// are empty when it is idle, and grow to net.ipv4.tcp_rmem and tcp_wmem when it
// is not.
func Socket() (int64, error) {
	f, err := os.Open("/proc/slabinfo")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoSlabs, err)
	}
	defer f.Close()
	return objects(f, slabs[:])
}

// objects adds up the sizes of one object of each slab in r, which is
// slabinfo(5).
func objects(r io.Reader, names []string) (sum int64, err error) {
	sizes := map[string]int64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		// name, active objects, objects, size of one
		if f := strings.Fields(lines.Text()); len(f) > 3 {
			if n, err := strconv.ParseInt(f[3], 10, 64); err == nil {
				sizes[f[0]] = n
			}
		}
	}
	for _, name := range names {
		size, ok := sizes[name]
		if !ok {
			return 0, fmt.Errorf("%w: slabinfo has no %s", ErrNoSlabs, name)
		}
		sum += size
	}
	return sum, lines.Err()
}
