package boot

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/internal/base/config"
)

// EnvPMIFD is config.EnvBootFD for programs that speak PMI (internal/job/boot/pmi).
const EnvPMIFD = "PMI_FD"

// placement is what the environment says.
type placement struct {
	rank, size, ghosts, host, localRank, fd int
}

// placementFromEnv reads the environment. It returns ErrNoLauncher when there
// is nothing to read, and for the children of a rank; and an *EnvError for what no rank
// ever had, which would be a job of its own otherwise.
func placementFromEnv(lookup func(string) (string, bool)) (placement, error) {
	_, launched := lookup(config.EnvBootFD)
	cause := func(name string) string {
		if launched {
			return config.EnvBootFD
		}
		return name
	}
	var p placement
	for _, v := range []struct {
		name string
		into *int
	}{{config.EnvRank, &p.rank}, {config.EnvSize, &p.size}, {config.EnvGhosts, &p.ghosts}, {config.EnvHost, &p.host}, {config.EnvLocalRank, &p.localRank}, {config.EnvBootFD, &p.fd}} {
		s, ok := lookup(v.name)
		switch {
		case !ok && v.name == config.EnvGhosts:
			continue
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
	case p.rank >= p.size+p.ghosts:
		return placement{}, &EnvError{config.EnvRank, fmt.Sprintf("is %d, but the job has %d ranks", p.rank, p.size), cause(config.EnvRank)}
	case p.localRank > p.rank:
		return placement{}, envError(config.EnvLocalRank, fmt.Sprintf("is %d, more than the rank %d", p.localRank, p.rank))
	case p.fd <= 2:
		return placement{}, envError(config.EnvBootFD, fmt.Sprintf("is %d: want a descriptor above 2", p.fd))
	}
	return p, nil
}

// bootSocket returns the inherited socket and keeps it from our own children.
func bootSocket(fd int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, envError(config.EnvBootFD, fmt.Sprintf("is %d, which is no socket here (was it closed, or inherited through another program?)", fd))
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
	Cause         string // the variable without which it would not have been read
}

func envError(name, problem string) error { return &EnvError{name, problem, config.EnvBootFD} }

func (e *EnvError) Error() string {
	return "boot: " + e.Name + " " + e.Problem + "; start the program with xrun, or without any " + e.Cause + " to run it alone"
}
