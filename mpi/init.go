package mpi

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/boot/pmi"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// Environment of a rank, besides what the launcher sets.
const (
	EnvEager      = "XWARP_EAGER"        // Config.EagerMax in bytes, such as 4096 or 16k; 0 means that only empty messages are eager
	EnvEagerIdle  = "XWARP_EAGER_IDLE"   // Config.EagerIdle in bytes
	EnvDelay      = "XWARP_DELAY_TARGET" // the delay that congestion control aims at, such as 125us or 1ms; default 500us
	EnvEagerNear  = "XWARP_EAGER_NEAR"   // Config.EagerNear in bytes
	EnvCalibrate  = "XWARP_CALIBRATE"    // 0 leaves all limits as they are by default; see Config.NoCalibrate
	EnvRendezvous = "XWARP_RENDEZVOUS"   // Config.Rendezvous: auto, write or read
	EnvTransport  = "XWARP_TRANSPORT"    // Config.Transport: rd, rc, ud or hybrid
	EnvPromote    = "XWARP_PROMOTE"      // Config.PromoteMessages: after how many messages hybrid connects with a peer
	EnvFaults     = "XWARP_FAULTS"       // what is to go wrong with datagrams, for tests: loss=0.01,dup=0.001,reorder=0.01,corrupt=0.001
	EnvBulk       = "XWARP_BULK"         // how large data leaves an AF_XDP endpoint: auto, frames or kernel; see device.Bulk
	EnvShared     = boot.EnvShared       // 0 sends messages inside a host through the network too; see Config.NoShared
	EnvNetWait    = boot.EnvNetWait      // how long Init waits for a network that is down, such as 30s; default 20s
	EnvColl       = "XWARP_COLL"         // Config.Algorithms: rows COLLECTIVE[.hosts][:BYTES[:RANKS]]=ALGORITHM, such as bcast:64k=binomial
	EnvArena      = boot.EnvArena        // size in bytes of the arena that Alloc takes from, such as 256m
	EnvUnexpected = "XWARP_UNEXPECTED"   // Config.UnexpectedMax in bytes, such as 16m
	EnvPeerLost   = "XWARP_PEER_LOST"    // how long a rank may be silent until it counts as lost, such as 30s; default 1h
	EnvStats      = "XWARP_STATS"        // 1 counts the calls of the program; see Config.Stats
	EnvCheck      = "XWARP_CHECK"        // 1 compares what ranks call before each collective; see Config.Check
	EnvThreads    = "XWARP_THREADS"      // Config.Threads: single, funneled, serialized or multiple
)

// Init joins the job that this process was started for (MPI_Init), by xrun or
// by a launcher that speaks PMI, such as MPICH's mpiexec or Slurm's srun
// --mpi=pmi2. A process that nobody launched becomes a job of one rank. Which
// network is used, and how, is for the environment to say, which xrun sets:
// XWARP_FABRIC, by default kernel UDP, and XWARP_DEVICE, by default the loopback
// device when all ranks are on one host and else that of the default route. Ranks
// on one host talk through shared memory, unless XWARP_SHARED is 0.
func Init() (*Proc, error) { return InitWith(Config{}) }

// InitWith is Init with a configuration. What it leaves out is what the
// environment says, or the default.
func InitWith(cfg Config) (*Proc, error) {
	p, err := join(cfg)
	var e *Error
	if err == nil || errors.As(err, &e) {
		return p, err
	}
	return nil, &Error{Class: ErrOther, Op: "Init", Rank: -1, Err: err}
}

func join(cfg Config) (*Proc, error) {
	defaults, spec, err := fromEnv(os.LookupEnv)
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
	cfg = cfg.or(defaults)
	if cfg.NoShared && cfg.Transport == RC && spec.Seat != "" && here > 1 {
		return nil, fail(ErrArg, "Init", "ranks that share a queue of their NIC cannot connect through it: do not set %s=0, or use another transport than rc", EnvShared)
	}
	var ctx *verbs.Context
	err = defaults.patience.Await(func() (err error) {
		if here < job.Size() && spec.Device == "" {
			if spec.Addr, err = outwardAddr(spec.IPv6); err != nil {
				return err
			}
		}
		ctx, err = open(job, spec, cfg.Transport)
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
func open(job boot.Job, spec device.Spec, t Transport) (*verbs.Context, error) {
	spec.Key = job.Key()
	spec.RC = t == RC || t == Hybrid
	if t == RC && (spec.Fabric == "" || spec.Fabric == "udp") {
		spec.Fabric = "tcp" // nobody needs the datagrams
	}
	if f := &spec.Faults; f.Loss+f.Dup+f.Reorder+f.Corrupt > 0 {
		f.Seed = job.Key() + uint64(job.Rank())
	}
	if t != RD && device.SeveralDevices(spec.Device) != nil {
		return nil, fail(ErrArg, "Init", "several devices (%s) are for transport rd: name one in %s, or do not use transport %v", spec.Device, boot.EnvDevice, t)
	}
	if strings.HasPrefix(spec.Fabric, "xdp") {
		_, local := job.Host()
		spec.Port = device.BasePort + uint16(local)
		if spec.RC { // each rank of a host has its share
			spec.TCPPorts = device.TCPPorts / max(spec.Poller.Ranks, local+1)
			spec.TCPBase = device.TCPBase + uint16(local*spec.TCPPorts)
		}
	}
	return device.Open(spec)
}

// peerLost is the default of EnvPeerLost. A rank that computes without calling MPI
// is silent, too, and so is one whose network is down for a while. The launcher
// notices at once that a rank has died, and soon that a host has vanished, so this
// only ends the wait where there is no launcher of ours, or where the network of
// the ranks is down for good and that of the launcher is not.
const peerLost = time.Hour

// minPeerLost is less than a process may have to wait for a processor.
const minPeerLost = time.Second

// delayTarget is the delay that congestion control aims at. A rank that sends
// looks at what arrives every 32 frames, which take it 100 us, and where both ends
// send each waits for the other: that is a delay which a smaller window does not
// shorten. With the default of 125 us two ranks that exchanged 1 MiB took 4.4 ms,
// with this 1.6 ms. A path that only one end sends on stays far below either.
const delayTarget = 500 * time.Microsecond

// Less than minDelayTarget no host reacts in, and more than maxDelayTarget no queue
// should hold.
const (
	minDelayTarget = 10 * time.Microsecond
	maxDelayTarget = 100 * time.Millisecond
)

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
		return netip.Addr{}, fmt.Errorf("the job has ranks on several hosts, and this one has no default route (%w): set %s to the network device that joins them", err, boot.EnvDevice)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}

// fromEnv reads the environment.
func fromEnv(lookup func(string) (string, bool)) (cfg Config, spec device.Spec, err error) {
	spec.Fabric, _ = lookup(boot.EnvFabric)
	spec.Device, _ = lookup(boot.EnvDevice)
	spec.Dgram.PeerLost, spec.Dgram.DelayTarget = peerLost, delayTarget
	spec.Seat, _ = lookup(boot.EnvSeat)
	cfg.Algorithms, _ = lookup(EnvColl)
	v := variables{lookup: lookup}
	v.read(EnvPeerLost, func(s string) (err error) {
		spec.Dgram.PeerLost, err = time.ParseDuration(s)
		if err != nil || spec.Dgram.PeerLost < minPeerLost {
			return fail(ErrArg, "Init", "%s is %.32q: want a time of at least %v, such as 30s or 5m", EnvPeerLost, s, minPeerLost)
		}
		return nil
	})
	v.read(EnvDelay, func(s string) (err error) {
		spec.Dgram.DelayTarget, err = time.ParseDuration(s)
		if err != nil || spec.Dgram.DelayTarget < minDelayTarget || spec.Dgram.DelayTarget > maxDelayTarget {
			return fail(ErrArg, "Init", "%s is %.32q: want a time from %v to %v, such as 125us", EnvDelay, s, minDelayTarget, maxDelayTarget)
		}
		return nil
	})
	v.limit(EnvEager, &cfg.EagerMax)
	v.limit(EnvEagerIdle, &cfg.EagerIdle)
	v.limit(EnvEagerNear, &cfg.EagerNear)
	v.size(EnvUnexpected, &cfg.UnexpectedMax)
	v.size(EnvArena, &spec.Arena)
	v.word(EnvTransport, func(s string) (err error) { cfg.Transport, err = p2p.ParseTransport(s); return err })
	v.word(EnvRendezvous, func(s string) (err error) { cfg.Rendezvous, err = p2p.ParseRendezvous(s); return err })
	v.word(EnvFaults, func(s string) (err error) { spec.Faults, err = device.ParseFaults(s); return err })
	v.word(EnvBulk, func(s string) (err error) { spec.Bulk, err = device.ParseBulk(s); return err })
	v.read(EnvThreads, func(s string) (err error) { cfg.Threads, err = parseThreadLevel(s); return err })
	v.read(EnvPromote, func(s string) (err error) {
		if cfg.PromoteMessages, err = strconv.Atoi(s); err != nil || cfg.PromoteMessages < 1 {
			return fail(ErrArg, "Init", "%s is %.32q: want a number of messages", EnvPromote, s)
		}
		return nil
	})
	shared, calibrate := true, true
	v.flag(EnvCalibrate, &calibrate)
	v.flag(EnvStats, &cfg.Stats)
	v.flag(EnvCheck, &cfg.Check)
	v.flag(EnvShared, &shared)
	v.flag(boot.EnvIPv6, &spec.IPv6)
	cfg.NoShared, cfg.NoCalibrate = !shared, !calibrate
	if v.err != nil {
		return cfg, spec, v.err
	}
	wait, err := boot.NetWait(lookup)
	if err != nil {
		return cfg, spec, fail(ErrArg, "Init", "%v", err)
	}
	cfg.patience = device.NewPatience(wait, EnvNetWait)
	err = fromLauncher(lookup, &cfg, &spec)
	return cfg, spec, err
}

// variables reads variables of the environment that are set. After the first bad one
// the others are passed over.
type variables struct {
	lookup func(string) (string, bool)
	err    error
}

// read hands a variable to parse, whose errors name it.
func (v *variables) read(name string, parse func(string) error) bool {
	s, ok := v.lookup(name)
	if ok && v.err == nil {
		v.err = parse(s)
	}
	return ok && v.err == nil
}

// word is read for a parse whose errors do not name the variable.
func (v *variables) word(name string, parse func(string) error) {
	v.read(name, func(s string) error {
		if err := parse(s); err != nil {
			return fail(ErrArg, "Init", "%s: %v", name, err)
		}
		return nil
	})
}

// size reads a number of bytes.
func (v *variables) size(name string, to *int) bool {
	return v.read(name, func(s string) (err error) { *to, err = parseSize(name, s); return err })
}

// limit is size for a limit that is -1 when there is to be none.
func (v *variables) limit(name string, to *int) {
	if v.size(name, to) && *to == 0 {
		*to = -1
	}
}

// flag reads 0 or 1.
func (v *variables) flag(name string, to *bool) bool {
	return v.read(name, func(s string) error {
		if s != "0" && s != "1" {
			return fail(ErrArg, "Init", "%s is %.32q: want 0 or 1", name, s)
		}
		*to = s == "1"
		return nil
	})
}

// fromLauncher reads what the launcher knows about the machine.
func fromLauncher(lookup func(string) (string, bool), cfg *Config, spec *device.Spec) error {
	if s, ok := lookup(boot.EnvBulkQueue); ok && cfg.Transport == p2p.RD { // the others keep to one queue
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil {
			return fail(ErrArg, "Init", "%s is %.32q: want the number of a queue, or 0", boot.EnvBulkQueue, s)
		}
		spec.BulkQueue = int(n)
	}
	if s, ok := lookup(boot.EnvMachine); ok {
		c := &spec.Poller
		if n, err := fmt.Sscanf(s, "%d/%d", &c.Ranks, &c.Cores); n != 2 || c.Ranks < 1 || c.Cores < 1 {
			return fail(ErrArg, "Init", "%s is %.32q: want ranks and processors, such as 8/4 (%v)", boot.EnvMachine, s, err)
		}
	}
	return nil
}

// parseSize reads a number of bytes from a variable.
func parseSize(name, s string) (int, error) {
	n, err := boot.ParseSize(s)
	if err != nil {
		return 0, fail(ErrArg, "Init", "%s is %v", name, err)
	}
	return n, nil
}
