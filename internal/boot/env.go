package boot

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The environment of a rank. Scripts and wrappers may read all of it.
const (
	EnvRank      = "XWARP_RANK"       // number of the rank
	EnvSize      = "XWARP_SIZE"       // number of ranks
	EnvHost      = "XWARP_HOST"       // number of the host
	EnvLocalRank = "XWARP_LOCAL_RANK" // number among the ranks of the host
	EnvBootFD    = "XWARP_BOOT_FD"    // descriptor of the socket to the launcher
	EnvPMIFD     = "PMI_FD"           // the same, for programs that speak PMI (internal/boot/pmi)
	EnvFabric    = "XWARP_FABRIC"     // carrier to use: "xdp", "xdp:generic", "udp", ...
	EnvDevice    = "XWARP_DEVICE"     // network device to use: "eth1", "lo", ...
	EnvSeat      = "XWARP_SEAT"       // place at a queue that the ranks of the host share, for device.Spec.Seat
	EnvRecordFD  = "XWARP_RECORD_FD"  // descriptor of memory for what the rank leaves behind (internal/trace)
	EnvNetWait   = "XWARP_NET_WAIT"   // how long the start of a rank waits for a network that is down, such as 30s; default DefaultNetWait
	EnvArena     = "XWARP_ARENA"      // bytes of the arena that a rank has for itself, such as 256m
	EnvShared    = "XWARP_SHARED"     // 0: messages inside a host go through the network too
	EnvBulkQueue = "XWARP_BULK_QUEUE" // queue of the device for large data, for device.Spec.BulkQueue; 0: there is none
	EnvIPv6      = "XWARP_IPV6"       // 1: use the IPv6 address of the device
	EnvMachine   = "XWARP_MACHINE"    // ranks of the job on this machine, a slash, and the processors that they have: "8/4"
	EnvJob       = "XWARP_JOB"        // name of the job, the same on all its ranks; no secret
)

// DefaultNetWait is the default of EnvNetWait: longer than a link takes to come up,
// and shorter than xrun waits for ranks.
const DefaultNetWait = 20 * time.Second

// NetWait reads EnvNetWait.
func NetWait(lookup func(string) (string, bool)) (time.Duration, error) {
	s, ok := lookup(EnvNetWait)
	if !ok {
		return DefaultNetWait, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is %.32q: want a time such as 30s or 5m, or 0", EnvNetWait, s)
	}
	return d, nil
}

// placement is what the environment says.
type placement struct {
	rank, size, host, localRank, fd int
}

// placementFromEnv reads the environment. It returns ErrNoLauncher when there
// is nothing to read, and for the children of a rank; and an *EnvError for what no rank
// ever had, which would be a job of its own otherwise.
func placementFromEnv(lookup func(string) (string, bool)) (placement, error) {
	_, launched := lookup(EnvBootFD)
	cause := func(name string) string {
		if launched {
			return EnvBootFD
		}
		return name
	}
	var p placement
	for _, v := range []struct {
		name string
		into *int
	}{{EnvRank, &p.rank}, {EnvSize, &p.size}, {EnvHost, &p.host}, {EnvLocalRank, &p.localRank}, {EnvBootFD, &p.fd}} {
		s, ok := lookup(v.name)
		switch {
		case !ok && launched:
			return placement{}, envError(v.name, "is not set")
		case !ok:
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 1<<30 {
			return placement{}, &EnvError{v.name, fmt.Sprintf("is %.32q: want a number", s), cause(v.name)}
		}
		*v.into = n
	}
	switch {
	case !launched && (p.size == 0 || p.rank < p.size): // also a child of a rank: it has all but the descriptor
		return placement{}, ErrNoLauncher
	case p.rank >= p.size:
		return placement{}, &EnvError{EnvRank, fmt.Sprintf("is %d, but the job has %d ranks", p.rank, p.size), cause(EnvRank)}
	case p.localRank > p.rank:
		return placement{}, envError(EnvLocalRank, fmt.Sprintf("is %d, more than the rank %d", p.localRank, p.rank))
	case p.fd <= 2:
		return placement{}, envError(EnvBootFD, fmt.Sprintf("is %d: want a descriptor above 2", p.fd))
	}
	return p, nil
}

// bootSocket returns the inherited socket and keeps it from our own children.
func bootSocket(fd int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, envError(EnvBootFD, fmt.Sprintf("is %d, which is no socket here (was it closed, or inherited through another program?)", fd))
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("boot: descriptor %d: %w", fd, err)
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}

// An EnvError is an environment that no launcher of ours makes.
type EnvError struct {
	Name, Problem string
	Cause         string // the variable without which nobody would have looked
}

func envError(name, problem string) error { return &EnvError{name, problem, EnvBootFD} }

func (e *EnvError) Error() string {
	return "boot: " + e.Name + " " + e.Problem + "; start the program with xrun, or without any " + e.Cause + " to run it alone"
}
