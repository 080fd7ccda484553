package mpi

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// Environment of a rank, besides what the launcher sets.
const (
	EnvEager = "XWARP_EAGER" // Config.EagerMax in bytes, such as 4096 or 16k; 0 means that only empty messages are eager
	EnvArena = "XWARP_ARENA" // size in bytes of the arena that Alloc takes from, such as 256m
)

// Init joins the job that xrun started this process for (MPI_Init). A process
// that nobody launched becomes a job of one rank. Which network is used, and
// how, is for the launcher and the environment to say.
func Init() (*Proc, error) {
	p, err := join()
	var e *Error
	if err == nil || errors.As(err, &e) {
		return p, err
	}
	return nil, &Error{Class: ErrOther, Op: "Init", Rank: -1, Err: err}
}

func join() (*Proc, error) {
	cfg, spec, err := fromEnv(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	job, err := boot.Join()
	if errors.Is(err, boot.ErrNoLauncher) {
		job, err = boot.Solo(), nil
	}
	if err != nil {
		return nil, err
	}
	if spec.Poller.Ranks, err = ranksHere(job); err != nil {
		return nil, err
	}
	ctx, err := open(job, spec)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", job.Rank(), err)
	}
	return New(job, ctx, cfg)
}

// open opens the device of a rank.
func open(job boot.Job, spec device.Spec) (*verbs.Context, error) {
	spec.Key = job.Key()
	spec.Dgram.PeerLost = peerLost
	if strings.HasPrefix(spec.Fabric, "xdp") {
		_, local := job.Host()
		spec.Port = device.BasePort + uint16(local)
	}
	return device.Open(spec)
}

// peerLost is how long a rank may be silent while it owes an acknowledgement. A
// rank that computes without calling MPI is silent, and the launcher notices
// those that die at once, so this only ends a wait for a host that has vanished.
const peerLost = 10 * time.Minute

const keyHost = "host"

// ranksHere returns how many ranks share this host, and its cores.
func ranksHere(job boot.Job) (int, error) {
	mine, _ := job.Host()
	if err := errors.Join(job.Put(keyHost, strconv.Itoa(mine)), job.Fence()); err != nil {
		return 0, err
	}
	n := 0
	for rank := range job.Size() {
		if host, ok := job.Get(rank, keyHost); ok && host == strconv.Itoa(mine) {
			n++
		}
	}
	return n, nil
}

// fromEnv reads the environment.
func fromEnv(lookup func(string) (string, bool)) (cfg Config, spec device.Spec, err error) {
	spec.Fabric, _ = lookup(boot.EnvFabric)
	spec.Device, _ = lookup(boot.EnvDevice)
	if s, ok := lookup(EnvEager); ok {
		if cfg.EagerMax, err = parseSize(EnvEager, s); err != nil {
			return cfg, spec, err
		}
		if cfg.EagerMax == 0 {
			cfg.EagerMax = -1
		}
	}
	if s, ok := lookup(EnvArena); ok {
		spec.Arena, err = parseSize(EnvArena, s)
	}
	return cfg, spec, err
}

// parseSize reads a number of bytes with an optional unit of 1024 (k), its
// square (m) or its cube (g).
func parseSize(name, s string) (int, error) {
	shift := 0
	digits := s
	if i := strings.IndexAny(s, "kKmMgG"); i >= 0 && i == len(s)-1 {
		digits, shift = s[:i], map[byte]int{'k': 10, 'm': 20, 'g': 30}[s[i]|0x20]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n<<shift > 1<<40 {
		return 0, fail(ErrArg, "Init", "%s is %.32q: want a number of bytes, such as 4096, 16k or 256m", name, s)
	}
	return int(n << shift), nil
}
