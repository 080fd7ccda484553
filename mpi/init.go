package mpi

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/internal/job/boot/pmi"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// Variables of the environment of a rank; docs/CONFIG.md says what they mean.
const (
	EnvEager      = config.EnvEager
	EnvEagerIdle  = config.EnvEagerIdle
	EnvDelay      = config.EnvDelay
	EnvEagerNear  = config.EnvEagerNear
	EnvCalibrate  = config.EnvCalibrate
	EnvRendezvous = config.EnvRendezvous
	EnvTransport  = config.EnvTransport
	EnvPromote    = config.EnvPromote
	EnvFaults     = config.EnvFaults
	EnvBulk       = config.EnvBulk
	EnvSecure     = config.EnvSecure
	EnvBusyPoll   = config.EnvBusyPoll
	EnvShared     = config.EnvShared
	EnvNetWait    = config.EnvNetWait
	EnvColl       = config.EnvColl
	EnvArena      = config.EnvArena
	EnvUnexpected = config.EnvUnexpected
	EnvPeerLost   = config.EnvPeerLost
	EnvStats      = config.EnvStats
	EnvCheck      = config.EnvCheck
	EnvThreads    = config.EnvThreads
	EnvProgress   = config.EnvProgress
	EnvAsync      = config.EnvAsync
	EnvAsyncTime  = config.EnvAsyncTime

	EnvGhostFailure = config.EnvGhostFailure
	EnvGhostBinding = config.EnvGhostBinding
)

// Init joins the job that this process was started for (MPI_Init), by xrun or
// by a launcher that speaks PMI, such as MPICH's mpiexec or Slurm's srun
// --mpi=pmi2. A process that no launcher started becomes a job of one rank. Which
// network is used, and how, is for the environment to say, which xrun sets:
// XWARP_FABRIC, by default kernel UDP, and XWARP_DEVICE, by default the loopback
// device when all ranks are on one host and else that of the default route. Ranks
// on one host talk through shared memory, unless XWARP_SHARED is 0.
func Init() (*Proc, error) { return InitWith(Config{}) }

// InitWith is Init with a configuration. What it leaves out is what the
// environment says, or the default.
func InitWith(cfg Config) (*Proc, error) {
	p, err := join(cfg)
	if _, ok := errors.AsType[*Error](err); err == nil || ok {
		return p, err
	}
	return nil, &Error{Class: ErrOther, Op: "Init", Rank: -1, Err: err}
}

func join(cfg Config) (*Proc, error) {
	defaults, spec, err := environment()
	if err != nil {
		return nil, err
	}
	job, err := findJob()
	if err != nil {
		return nil, err
	}
	cfg.witness = witnessFor(job)
	here, err := ranksHere(job)
	if err != nil {
		return nil, err
	}
	if spec.Poller.Ranks == 0 { // the launcher did not say how crowded the machine is
		spec.Poller.Ranks = here
	}
	if cfg = cfg.or(defaults); cfg.Progress != ProgressNone {
		spec.Poller.Ranks *= 2 // each with a thread
	}
	if cfg.NoShared && cfg.Transport == RC && spec.Slot != "" && here > 1 {
		return nil, fail(ErrArg, "Init", "ranks that share a queue of their NIC cannot connect through it: do not set %s=0, or use another transport than rc", EnvShared)
	}
	var ctx *verbs.Context
	err = defaults.retries.Await(func() (err error) {
		if here < job.Size()+boot.Ghosts(job) && spec.Device == "" {
			if spec.Addr, err = outwardAddr(spec.IPv6); err != nil {
				return err
			}
		}
		ctx, err = open(job, spec, cfg)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", job.Rank(), err)
	}
	if cfg.record, err = boot.Record(); err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	return New(job, ctx, cfg)
}

// findJob asks for a launcher, ours first.
func findJob() (boot.Job, error) {
	job, err := boot.Join()
	if errors.Is(err, boot.ErrNoLauncher) {
		job, err = pmi.Join(os.Stderr)
	}
	if errors.Is(err, boot.ErrNoLauncher) {
		job, err = boot.Solo(), nil
	}
	return job, err
}

// open opens the device of a rank.
func open(job boot.Job, spec device.Spec, cfg Config) (_ *verbs.Context, err error) {
	t := cfg.Transport
	spec.Key = job.Key()
	if spec.Secret, err = secretOf(job, cfg); err != nil {
		return nil, err
	}
	onXDP := strings.HasPrefix(spec.Fabric, "xdp")
	if spec.RC = t == RC; t == RD || t == Hybrid {
		spec.Beside(t == Hybrid)
	}
	if t == RC && (spec.Fabric == "" || spec.Fabric == "udp") {
		spec.Fabric = "tcp" // RC needs no datagrams
	}
	if f := &spec.Faults; f.Loss+f.Dup+f.Reorder+f.Corrupt > 0 {
		f.Seed = job.Key() + uint64(job.Rank())
	}
	if t != RD && device.SeveralDevices(spec.Device) != nil {
		return nil, fail(ErrArg, "Init", "several devices (%s) are for transport rd: name one in %s, or do not use transport %v", spec.Device, config.EnvDevice, t)
	}
	if onXDP {
		_, local := job.Host()
		spec.Port = device.BasePort + uint16(local)
		if spec.RC { // each rank of a host has its share
			spec.TCPPorts = device.TCPPorts / max(spec.Poller.Ranks, local+1)
			spec.TCPBase = device.TCPBase + uint16(local*spec.TCPPorts)
		}
	}
	return device.Open(spec)
}

const keyHost = "host"

// ranksHere returns how many ranks and ghosts share this host, and its cores.
func ranksHere(job boot.Job) (int, error) {
	mine, _ := job.Host()
	if err := errors.Join(job.Put(keyHost, strconv.Itoa(mine)), job.Fence()); err != nil {
		return 0, err
	}
	n := 0
	for rank := range job.Size() + boot.Ghosts(job) {
		if host, ok := job.Get(rank, keyHost); ok && host == strconv.Itoa(mine) {
			n++
		}
	}
	return n, nil
}

// outwardAddr returns the address that other hosts reach this one by, for
// launchers that name no device: that of the default route.
func outwardAddr(ipv6 bool) (netip.Addr, error) {
	// Nothing is sent: the kernel only chooses a route. The addresses are for
	// documentation (RFC 5737, RFC 3849), so no host has a route of its own to them.
	network, to := "udp4", "192.0.2.1:9"
	if ipv6 {
		network, to = "udp6", "[2001:db8::1]:9"
	}
	c, err := net.Dial(network, to)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the job has ranks on several hosts, and this one has no default route (%w): set %s to the network device that joins them", err, config.EnvDevice)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}

// environment returns the configuration and the device that the environment of this process
// asks for.
func environment() (Config, device.Spec, error) {
	if err := config.CheckNames(os.Environ()); err != nil {
		return Config{}, device.Spec{}, fail(ErrArg, "Init", "%v", err)
	}
	return fromEnv(os.LookupEnv)
}

// fromEnv is environment for any variables.
func fromEnv(lookup func(string) (string, bool)) (cfg Config, spec device.Spec, err error) {
	s, err := config.Read(lookup)
	if err != nil {
		return cfg, spec, fail(ErrArg, "Init", "%v", err)
	}
	cfg = Config{
		EagerMax: s.Eager, EagerIdle: s.EagerIdle, EagerNear: s.EagerNear, NoCalibrate: !s.Calibrate, UnexpectedMax: s.Unexpected,
		PromoteMessages: s.Promote, NoShared: !s.Shared, Secure: s.Secure, Algorithms: s.Algorithms, Stats: s.Stats, Check: s.Check,
		Threads: ThreadLevel(config.Threads.Index(s.Threads)), Transport: Transport(config.Transports.Index(s.Transport)),
		Rendezvous: Rendezvous(config.Rendezvous.Index(s.Rendezvous)),
		Asynchrony: Asynchrony{Progress(config.Progresses.Index(s.Progress)), Async(config.Asyncs.Index(s.Async)), s.AsyncTime,
			GhostConfig{GhostFailure(config.GhostFailures.Index(s.GhostFailure)), GhostBinding(config.GhostBindings.Index(s.GhostBinding))}},
		joining: joining{retries: device.NewRetryBudget(s.NetWait, EnvNetWait)},
	}
	spec = device.Spec{Fabric: s.Fabric, Device: s.Device, Slot: s.Slot, Arena: s.Arena, IPv6: s.IPv6, BusyPoll: s.BusyPoll}
	spec.Dgram.PeerLost, spec.Dgram.DelayTarget = s.PeerLost, s.DelayTarget
	spec.Poller.Ranks, spec.Poller.Cores = s.Machine.Ranks, s.Machine.Cores
	if spec.Bulk, err = device.ParseBulk(s.Bulk); err != nil {
		return cfg, spec, fail(ErrArg, "Init", "%s: %v", EnvBulk, err)
	}
	if spec.Faults, err = device.ParseFaults(s.Faults); err != nil {
		return cfg, spec, fail(ErrArg, "Init", "%s: %v", EnvFaults, err)
	}
	return cfg, spec, nil
}
