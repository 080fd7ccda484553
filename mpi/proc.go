package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/mpi/internal/coll"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
	"github.com/xwarp/xwarp/mpi/internal/rma"
	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/verbs/device"
)

// Config tunes MPI. Its zero value is ready to use.
type Config struct {
	// Transport carries messages between hosts. Default: XWARP_TRANSPORT from
	// the environment in Init, else RD.
	Transport Transport
	// EagerMax is the largest message in bytes that is sent without asking
	// the receiver first. -1 means that only empty messages are. Default:
	// XWARP_EAGER from the environment in Init, else 16 KiB.
	EagerMax int
	// EagerIdle is the largest message in bytes that is sent without asking to a
	// rank on another host that little is under way to; at most 1 MiB. Default:
	// XWARP_EAGER_IDLE from the environment in Init, else EagerMax where that is
	// given, else what is measured, up to 128 KiB: see NoCalibrate. Without that it
	// is 64 KiB.
	EagerIdle int
	// EagerNear is the largest message in bytes that is copied through shared
	// memory to a rank on the same host; what is longer the receiver copies
	// itself. -1 means that none is; at most 1 MiB. Default: XWARP_EAGER_NEAR from
	// the environment in Init, else EagerMax where that is given, else what is
	// measured: see NoCalibrate. Without that it is 16 KiB.
	EagerNear int
	// NoCalibrate leaves EagerIdle and EagerNear as they are by default. Default:
	// XWARP_CALIBRATE=0 in the environment of Init says so, else EagerNear follows what
	// copying takes on this machine, and EagerIdle the time that messages of the program
	// take to each rank with and without asking, unless they or EagerMax are given.
	NoCalibrate bool
	// Rendezvous is how longer messages cross the network: see the constants of its
	// type. Default: XWARP_RENDEZVOUS from the environment in Init, else auto.
	Rendezvous Rendezvous
	// Receives and Sends are the numbers of buffers of EagerMax bytes for
	// messages on their way in and out. Defaults: 256 and 64.
	Receives, Sends int
	// UnexpectedMax is how many bytes of short messages may wait here for
	// their receives before their senders have to wait. Default:
	// XWARP_UNEXPECTED from the environment in Init, else 64 MiB.
	UnexpectedMax int
	// PromoteMessages and PromoteBytes say after how much of long messages that was
	// sent to a peer RD, where there is TCP of the kernel beside it, and Hybrid connect
	// with it, whichever comes first, and Connections with how many peers at most.
	// Defaults: 50, 256 KiB and 64.
	PromoteMessages, PromoteBytes, Connections int
	// NoShared sends messages to ranks on the same host through the network
	// too. Default: XWARP_SHARED=0 in the environment of Init says so, else
	// they go through shared memory.
	NoShared bool
	// Secure refuses to start without encryption: everything that leaves the host is
	// encrypted and authenticated, with a secret that xrun --secure, or Run, has drawn for
	// the job. Messages through shared memory are not. Default: XWARP_SECURE=1 in the
	// environment says so; with xrun --secure it is so anyway.
	Secure bool
	// Algorithms is rows that come before those of the tables that choose
	// algorithms of collectives: see EnvColl. All ranks have the same.
	// Default: XWARP_COLL from the environment, else none.
	Algorithms string
	// Threads says which goroutines use the Proc. Default: XWARP_THREADS from
	// the environment, else one at a time. See InitThread.
	Threads ThreadLevel
	Asynchrony
	// Hooks are called around the calls of the program. Default: none.
	Hooks *Hooks
	// Stats counts the calls of the program: see Comm.Stats and Proc.Stats, and
	// xrun --stats. It costs some 100 ns per call. Default: hooks and xrun turn it
	// on, and XWARP_STATS=1 in the environment.
	Stats bool
	// Check compares what the ranks call before each collective: its name, root,
	// predefined operation and number of bytes. Where they call different things, all
	// of them get an error that says which rank called what, and nothing hangs. (Where
	// a rank exits at once because of it, others may see that it is lost instead.)
	// Neighbours, lengths that each rank has for itself, and operations that are
	// functions are not compared; of intercommunicators only names are. It is for
	// finding errors: a collective takes an exchange of 96 bytes with each rank longer,
	// and waits for all. All ranks have the same. Default: XWARP_CHECK=1 in the
	// environment.
	Check bool

	secret []byte // of the ranks of Run; or nil
	apart  bool   // no world model: see SessionInit
	joining
	witness *witness // or nil
}

// or returns the configuration with defaults for what is not set.
func (c Config) or(defaults Config) Config {
	c.Transport = cmp.Or(c.Transport, defaults.Transport)
	c.EagerMax = cmp.Or(c.EagerMax, defaults.EagerMax)
	c.EagerIdle = cmp.Or(c.EagerIdle, defaults.EagerIdle)
	c.EagerNear = cmp.Or(c.EagerNear, defaults.EagerNear)
	c.NoCalibrate = c.NoCalibrate || defaults.NoCalibrate
	c.Rendezvous = cmp.Or(c.Rendezvous, defaults.Rendezvous)
	c.Receives = cmp.Or(c.Receives, defaults.Receives)
	c.Sends = cmp.Or(c.Sends, defaults.Sends)
	c.UnexpectedMax = cmp.Or(c.UnexpectedMax, defaults.UnexpectedMax)
	c.PromoteMessages = cmp.Or(c.PromoteMessages, defaults.PromoteMessages)
	c.PromoteBytes = cmp.Or(c.PromoteBytes, defaults.PromoteBytes)
	c.Connections = cmp.Or(c.Connections, defaults.Connections)
	c.Algorithms = cmp.Or(c.Algorithms, defaults.Algorithms)
	c.Secure = c.Secure || defaults.Secure
	c.NoShared = c.NoShared || defaults.NoShared
	c.Stats = c.Stats || defaults.Stats
	c.Check = c.Check || defaults.Check
	c.Hooks = cmp.Or(c.Hooks, defaults.Hooks)
	c.Threads = cmp.Or(c.Threads, defaults.Threads)
	c.Asynchrony = c.Asynchrony.or(defaults.Asynchrony)
	c.retries = defaults.retries
	return c
}

// joining is what Init knows of the job.
type joining struct {
	retries *device.RetryBudget // with a network that is down; or nil
	record  []byte              // where xrun reads what the rank leaves behind; or nil
}

// Asynchrony says which component does what other ranks want of a rank while that computes.
type Asynchrony struct {
	// Progress says what makes progress in the rank. Default: XWARP_PROGRESS from the
	// environment, else ProgressNone: see the constants of its type.
	Progress Progress
	// Async says which windows ghosts serve that say nothing of it, and AsyncInterval for how long a
	// rank looks at what it does before it decides, where that is AsyncAuto or AsyncAutoGhosts. All ranks have the
	// same. Defaults: XWARP_ASYNC and XWARP_ASYNC_INTERVAL from the environment, else AsyncOn and 1 s.
	Async         Async
	AsyncInterval time.Duration
	// Ghosts says what ghosts do. Defaults: XWARP_GHOST_FAILURE and XWARP_GHOST_BINDING from the
	// environment, else GhostAbort and GhostByRank.
	Ghosts GhostConfig
}

// or is Config.or.
func (a Asynchrony) or(defaults Asynchrony) Asynchrony {
	a.Progress = cmp.Or(a.Progress, defaults.Progress)
	a.Async = cmp.Or(a.Async, defaults.Async)
	a.AsyncInterval = cmp.Or(a.AsyncInterval, defaults.AsyncInterval)
	a.Ghosts.Failure = cmp.Or(a.Ghosts.Failure, defaults.Ghosts.Failure)
	a.Ghosts.Binding = cmp.Or(a.Ghosts.Binding, defaults.Ghosts.Binding)
	return a
}

// check says what cannot be.
func (a Asynchrony) check() error {
	if a.AsyncInterval < 0 {
		return fail(ErrArg, "Init", "Config.AsyncInterval is %v: it must be above 0, or 0 for the default", a.AsyncInterval)
	}
	return nil
}

// Transport is what carries messages between hosts.
type Transport = p2p.Transport

// The transports: reliable datagrams, a TCP connection to each peer, unreliable
// datagrams with reliability of MPI's own, and reliable datagrams with connections
// beside them for large data.
const (
	RD     = p2p.RD
	RC     = p2p.RC
	UD     = p2p.UD
	Hybrid = p2p.Hybrid
)

// Rendezvous is how a message crosses the network that is too long to be sent without
// asking.
type Rendezvous = p2p.Rendezvous

// The ways: the sender writes into the memory of the receiver, or the receiver reads
// that of the sender (but never over UD, or what a datatype scatters or gathers).
// Auto is the one that is better as a rule.
const (
	RendezvousAuto  = p2p.RendezvousAuto
	RendezvousWrite = p2p.RendezvousWrite
	RendezvousRead  = p2p.RendezvousRead
)

// ParseRendezvous returns the way with a name: auto, write or read.
func ParseRendezvous(s string) (Rendezvous, error) { return p2p.ParseRendezvous(s) }

// ParseTransport returns the transport with a name: rd, rc, ud or hybrid.
func ParseTransport(s string) (Transport, error) { return p2p.ParseTransport(s) }

// Proc is an MPI process: one rank of a job.
//
// A Proc and everything made from it is for one goroutine at a time, unless more
// was asked for: see [InitThread]. Messages move while one of its functions is
// called.
type Proc struct {
	job      boot.Job
	ctx      *verbs.Context
	ep       *p2p.Endpoint
	world    *Comm
	self     *Comm
	rank     int
	contexts contextSet // that no communicator has
	buffer   sendBuffer
	where
	threads
	calls  calls        // nonblocking collectives
	dups   int          // Idups and Ishrinks under way
	tables *coll.Tables // of collectives; nil: those that are built in
	owned
	types     map[Datatype]*typeNotes
	finalized atomic.Bool
	UserErrors
	watch    *watch // or nil
	sessions int    // that are open
	apart    bool   // there is no world model, only sessions
	check    bool   // see Config.Check
	gone     gone
	meeting  *Comm              // of all ranks, for those that have no communicator yet: see sessionContext
	creating map[int32]struct{} // tags of communicators that are being made there
}

// owned is what Free, or the end of the process, takes back.
type owned struct {
	allocated map[uint64]allocated // what Alloc returned, by address
	slots     map[*slots]struct{}  // of communicators
	kept      []keptSlots          // of some that were freed
}

// where says where the processes of the job are.
type where struct {
	hosts  []int       // that ranks of World run on
	ghosts *rma.Ghosts // or nil
	async  Asynchrony  // of windows that say nothing
	boards *rma.Boards // nil: of no window Puts and Gets follow them
}

// Job is how the ranks of a job find one another: what a launcher gives them. Init
// finds the one that this process was started for; a program that is a launcher
// itself, or has its ranks in one process, gives its own to New.
type Job = boot.Job

// Keys under which ranks tell one another about themselves.
const (
	keyCard  = "card"
	keyPlace = "place"
)

// New joins the job through an open verbs context. All ranks of the job call
// it. The process owns ctx from now on, also when there is an error; Finalize
// closes it. Programs call [Init].
func New(job Job, ctx *verbs.Context, cfg Config) (*Proc, error) {
	p := &Proc{
		job: job, ctx: ctx, rank: job.Rank(), threads: threads{main: syscall.Gettid()}, contexts: newContextSet(),
		owned: owned{allocated: map[uint64]allocated{}, slots: map[*slots]struct{}{}}, types: map[Datatype]*typeNotes{}, creating: map[int32]struct{}{},
		apart: cfg.apart, check: cfg.Check, where: where{async: cfg.Asynchrony},
	}
	err := cfg.Asynchrony.check()
	if err == nil {
		err = p.choose(cfg.Algorithms)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	err = p.open(cfg)
	if err == nil {
		err = p.connect(cfg.retries)
	}
	if err != nil {
		return nil, errors.Join(&Error{Class: ErrOther, Op: "Init", Rank: -1, Detail: fmt.Sprintf("rank %d of %d", job.Rank(), job.Size()), Err: err}, p.close())
	}
	if err := p.observe(cfg); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.rank < job.Size() { // else it is a ghost
		p.world, p.self = newWorld(p), newSelf(p)
		if err := p.attend(cfg); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// observe makes what the configuration asks for see the calls of the process. Where windows may want to know how
// much of its time it is in MPI (see predict), and goroutines make them at the same time, all calls are seen
// from the beginning: they look for the watch without a lock.
func (p *Proc) observe(cfg Config) error {
	decides := p.ghosts != nil && cfg.Threads == ThreadMultiple
	if !cfg.Stats && cfg.Hooks == nil && cfg.record == nil && !decides {
		return nil
	}
	var record *trace.Record
	if cfg.record != nil {
		var err error
		if record, err = trace.NewRecord(cfg.record, p.rank, mono.Real{}.Origin().UnixNano()); err != nil {
			return &Error{Class: ErrOther, Op: "Init", Rank: -1, Detail: "what xrun wants to be recorded", Err: err}
		}
	}
	p.watch = newWatch(p, record)
	p.watch.hooks = cfg.Hooks
	if record != nil {
		record.SetCarrier(p.carrier())
	}
	return nil
}

// carrier says what carries messages to other hosts, for people.
func (p *Proc) carrier() string {
	a := p.ctx.Attr()
	if a.CarrierDetail == "" {
		return a.Carrier
	}
	return a.Carrier + " on " + a.CarrierDetail
}

func (p *Proc) open(cfg Config) (err error) {
	c := p2p.Config{
		Rank: p.job.Rank(), Size: p.job.Size() + boot.Ghosts(p.job), Ghosts: boot.Ghosts(p.job), Transport: cfg.Transport, Key: p.job.Key(),
		PromoteMessages: cfg.PromoteMessages, PromoteBytes: cfg.PromoteBytes, Connections: cfg.Connections,
		EagerMax: cfg.EagerMax, EagerIdle: cfg.EagerIdle, EagerNear: cfg.EagerNear, Calibrate: !cfg.NoCalibrate,
		Rendezvous: cfg.Rendezvous, Receives: cfg.Receives, Sends: cfg.Sends, UnexpectedMax: cfg.UnexpectedMax,
		Threads: cfg.Threads == ThreadMultiple || cfg.Progress != ProgressNone && p.rank < p.job.Size(), Numbers: len(cfg.record) > trace.RecordSize(0),
	}
	c.Shared = !cfg.NoShared
	c.Host, _ = p.job.Host()
	if w, ok := p.job.(boot.Watched); ok && w.Lost() != nil {
		c.Aborted = func() error { return aborted(w.Lost()) }
	}
	if w, ok := p.job.(boot.Witness); ok {
		c.Deaths = w.Deaths
	}
	p.ep, err = p2p.New(p.ctx, c)
	p.calls.ep = p.ep
	if err == nil {
		p.calls.reserve(p.ctx.Arena())
	}
	if cfg.witness != nil && err == nil {
		cfg.witness.ep.Store(p.ep)
	}
	return err
}

var errAborted = errors.New("a rank or the launcher has ended it")

func aborted(lost <-chan struct{}) error {
	select {
	case <-lost:
		return errAborted
	default:
		return nil
	}
}

// connect exchanges addresses with all ranks. They have posted receives by
// then, so the first message finds a place.
func (p *Proc) connect(retries *device.RetryBudget) error {
	job := p.job
	host, _ := job.Host()
	err := errors.Join(
		job.Put(keyPlace, strconv.Itoa(host)),
		job.Put(keyCard, p.ep.BusinessCard()),
		job.Fence(),
	)
	if err != nil {
		return err
	}
	cards := make([]string, job.Size()+boot.Ghosts(job))
	hosts := make([]int, len(cards))
	for i := range cards {
		cards[i], _ = job.Get(i, keyCard)
		host, _ := job.Get(i, keyPlace)
		if hosts[i], err = strconv.Atoi(host); err != nil {
			return fmt.Errorf("rank %d has told %q as its host: %w", i, host, err)
		}
	}
	p.hosts = hosts[:job.Size()]
	if len(hosts) > len(p.hosts) {
		if p.ghosts = rma.NewGhosts(p.hosts, hosts[job.Size():]); p.ghosts != nil {
			p2p.Delegations(p.ep.Inside()).Assign(p.ghosts.Of)
		}
	}
	if retries == nil {
		retries = &device.RetryBudget{}
	}
	return p.ep.Connect(cards, retries.Await)
}

// World returns the communicator of all ranks (MPI_COMM_WORLD); nil in a process of
// [SessionInit].
func (p *Proc) World() *Comm {
	if p.apart {
		return nil
	}
	return p.world
}

// Self returns the communicator of this rank alone (MPI_COMM_SELF); nil in a process
// of [SessionInit]. Finalize deletes its attributes before it does anything else, so
// that the Delete of their keys may clean up.
func (p *Proc) Self() *Comm {
	if p.apart {
		return nil
	}
	return p.self
}

// Engine returns the engine that moves the messages of this rank, for programs
// that wait for other things too. It is not for use under ThreadMultiple.
func (p *Proc) Engine() *verbs.Engine { return p.ep.Engine() }

// Abort ends the job on all hosts (MPI_Abort). It does not return when there is
// a launcher; otherwise every later call fails, and the program should end.
func (p *Proc) Abort(code int) {
	p.abort(code, fmt.Sprintf("rank %d called Abort with code %d", p.rank, code))
}

// AbortWith is Abort that says why.
func (p *Proc) AbortWith(code int, why string) { p.abort(code, why) }

func (p *Proc) abort(code int, why string) {
	p.job.Abort(code, why)
	p.ep.End(&p2p.Error{Code: p2p.Ended, Peer: -1, Detail: why})
}
