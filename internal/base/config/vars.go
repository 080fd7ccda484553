package config

import "time"

// Variables of users.
const (
	EnvFabric     = "XWARP_FABRIC"
	EnvDevice     = "XWARP_DEVICE"
	EnvIPv6       = "XWARP_IPV6"
	EnvTransport  = "XWARP_TRANSPORT"
	EnvBusyPoll   = "XWARP_BUSY_POLL"
	EnvBulk       = "XWARP_BULK"
	EnvShared     = "XWARP_SHARED"
	EnvArena      = "XWARP_ARENA"
	EnvNetWait    = "XWARP_NET_WAIT"
	EnvPeerLost   = "XWARP_PEER_LOST"
	EnvDelay      = "XWARP_DELAY_TARGET"
	EnvFaults     = "XWARP_FAULTS"
	EnvSecure     = "XWARP_SECURE"
	EnvPMI        = "XWARP_PMI"
	EnvABI        = "XWARP_ABI"
	EnvEager      = "XWARP_EAGER"
	EnvEagerIdle  = "XWARP_EAGER_IDLE"
	EnvEagerNear  = "XWARP_EAGER_NEAR"
	EnvCalibrate  = "XWARP_CALIBRATE"
	EnvRendezvous = "XWARP_RENDEZVOUS"
	EnvPromote    = "XWARP_PROMOTE"
	EnvUnexpected = "XWARP_UNEXPECTED"
	EnvColl       = "XWARP_COLL"
	EnvThreads    = "XWARP_THREADS"
	EnvProgress   = "XWARP_PROGRESS"
	EnvAsync      = "XWARP_ASYNC"
	EnvAsyncTime  = "XWARP_ASYNC_INTERVAL"
	EnvStats      = "XWARP_STATS"
	EnvCheck      = "XWARP_CHECK"

	EnvGhostFailure = "XWARP_GHOST_FAILURE"
	EnvGhostBinding = "XWARP_GHOST_BINDING"
)

// Variables that the launcher sets for ranks.
const (
	EnvRank       = "XWARP_RANK"
	EnvSize       = "XWARP_SIZE"
	EnvGhosts     = "XWARP_GHOSTS"
	EnvHost       = "XWARP_HOST"
	EnvLocalRank  = "XWARP_LOCAL_RANK"
	EnvJob        = "XWARP_JOB"
	EnvMachine    = "XWARP_MACHINE"
	EnvBootFD     = "XWARP_BOOT_FD"
	EnvRecordFD   = "XWARP_RECORD_FD"
	EnvSlot       = "XWARP_QUEUE_SLOT"
	EnvDeviceNote = "XWARP_DEVICE_NOTE"
)

// Defaults that others use, too.
const (
	DefaultFabric     = "udp"
	DefaultArena      = 64 << 20 // bytes
	DefaultEager      = 16 << 10 // bytes
	DefaultEagerIdle  = 64 << 10 // bytes
	DefaultUnexpected = 64 << 20 // bytes
	DefaultPromote    = 50       // messages
)

var fabrics = Words{{"xdp", "AF_XDP"}, {Name: "xdp:generic"}, {Name: "xdp:driver"}, {"xdp:asavie", "another driver"}, {"udp", "the kernel's"}}

// Transports are what can carry messages between hosts.
var Transports = Words{
	{"rd", "reliable datagrams"}, {"rc", "a connection to each peer"}, {"ud", "unreliable datagrams and reliability of MPI's own"},
	{"hybrid", "rd, and connections for large data"},
}

// ABIs say whose libraries programs in C and Fortran get.
var ABIs = Words{{"auto", "those of xwarp that fit, where make abi has built them"}, {"off", "those that the system finds"}}

// Rendezvous are the ways in which long messages cross the network.
var Rendezvous = Words{{"auto", "write"}, {"write", "by the sender into the memory of the receiver"}, {"read", "by the receiver; not over ud"}}

// Bulk are the ways for large data.
var Bulk = Words{{"auto", "what is better as a rule"}, {"frames", "of AF_XDP"}, {"kernel", "a UDP socket beside it, 64 KiB at a time"}, {"tcp", "TCP of the kernel beside it, for messages of MPI of several datagrams"}}

// Threads are the levels of MPI_Init_thread.
var Threads = Words{{Name: "single"}, {Name: "funneled"}, {Name: "serialized"}, {Name: "multiple"}}

// GhostFailures say what the end of a ghost is for its job.
var GhostFailures = Words{{"abort", "the job ends"}, {"fallback", "ranks serve themselves from their next Fence on"}}

// GhostBindings say which ghost of a host serves what.
var GhostBindings = Words{
	{"rank", "all of a rank by one"}, {"segment", "Puts and Gets, and accumulates where all ranks of a window say so, by where in the memory of the host they are"}, {"random", "Puts and Gets in turn"},
	{"operations", "by the one that did fewest"}, {"bytes", "by the one that moved least"},
}

// Progresses say what makes progress while a rank computes, without ghosts.
var Progresses = Words{
	{"none", "nobody"}, {"thread", "a thread of each rank, on the processors that the rank has"},
	{"thread-core", "a thread of each rank, on the second half of these processors, which the rank does without"},
}

// Asyncs say for which windows ghosts do what is asked for.
var Asyncs = Words{
	{"on", "all that they can serve"}, {"off", "none"}, {"auto", "each rank's while it computes for more than a seventh of its time"},
	{"auto-ghosts", "the same, and ghosts tell one another of it, so that Puts and Gets follow without a call of all ranks"},
}

// defaultAsyncTime is that of Casper, minAsyncTime what a process may have to wait for a processor.
const (
	defaultAsyncTime = time.Second
	minAsyncTime     = 10 * time.Millisecond
)

// NetWait is longer than a link takes to come up, and shorter than xrun waits for ranks.
const defaultNetWait = 20 * time.Second

// A rank that computes without calling MPI is silent, too, and so is one whose network is
// down for a while. The launcher notices at once that a rank has died, and soon that a host
// has vanished, so this only ends the wait where there is no launcher of ours, or where the
// network of the ranks is down for good and that of the launcher is not.
const defaultPeerLost = time.Hour

// minPeerLost is less than a process may have to wait for a processor.
const minPeerLost = time.Second

// defaultDelay is the delay that congestion control aims at. A rank that sends looks at what
// arrives every 32 frames, which take it 100 us, and where both ends send each waits for the
// other: that is a delay which a smaller window does not shorten. With 125 us, the default of
// the protocol, two ranks that exchanged 1 MiB took 4.4 ms, with this 1.6 ms. A path that only
// one end sends on stays far below either.
const defaultDelay = 500 * time.Microsecond

// Less than minDelay no host reacts in, and more than maxDelay no queue should hold.
const (
	minDelay = 10 * time.Microsecond
	maxDelay = 100 * time.Millisecond
)

// groups are all variables; reading them sets s.
func (s *Settings) groups() []Group {
	return []Group{
		{"The network", true, s.network()}, {"Messages", true, s.messages()}, {"The program", true, s.program()},
		{"What the rank is", true, identity()}, {"Between launcher and rank", false, s.launcher()}, {"Tests and packaging", false, tests()},
	}
}

func (s *Settings) network() []Var {
	return []Var{
		{Name: EnvFabric, Flag: "--fabric F", Of: "xrun, xperf", By: "mpi", value: named(&s.Fabric, fabrics, "xdp where xrun can use it, else "+DefaultFabric),
			Doc: "carrier between hosts"},
		{Name: EnvDevice, Flag: "--device DEV", Of: "xrun, xperf", By: "mpi", value: text(&s.Device, "names of network devices, such as eth1 or eth1,eth2", "that of the route to the other hosts"),
			Doc: "network device, or several with commas between them, as in eth1,eth2"},
		{Name: EnvIPv6, Flag: "--ipv6, -6", Of: "xrun, xperf", By: "mpi, xrun", value: onOff(&s.IPv6, false),
			Doc: "use IPv6 addresses of the hosts' devices"},
		{Name: EnvTransport, Flag: "--transport T", Of: "xrun, xperf", By: "mpi, xrun", value: word(&s.Transport, Transports),
			Doc: "what carries messages between hosts"},
		{Name: EnvBusyPoll, Flag: "--busy-poll", Of: "xrun, xperf", By: "mpi, xrun", value: onOff(&s.BusyPoll, false),
			Doc: "a rank that waits over AF_XDP polls the network card itself, in place of its interrupts, where the driver can"},
		{Name: EnvSecure, Flag: "--secure", Of: "xrun, xperf", By: "mpi, xrun", value: onOff(&s.Secure, false),
			Doc: "encrypt and authenticate what goes over the network, AES-GCM, with a secret that is drawn for the job"},
		{Name: EnvBulk, Flag: "--bulk WAY", Of: "xperf", By: "mpi", value: word(&s.Bulk, Bulk),
			Doc: "how large data leaves an AF_XDP endpoint"},
		{Name: EnvShared, By: "mpi, xrun", value: onOff(&s.Shared, true),
			Doc: "messages inside a host go through the network, too"},
		{Name: EnvArena, By: "mpi, xrun", value: size(&s.Arena, sizeText(DefaultArena)),
			Doc: "bytes of memory of a rank for frames, collectives and Alloc"},
		{Name: EnvNetWait, By: "mpi, xrun", value: span(&s.NetWait, defaultNetWait, 0, 0),
			Doc: "time for a network that is down when a rank starts"},
		{Name: EnvPeerLost, By: "mpi", value: span(&s.PeerLost, defaultPeerLost, minPeerLost, 0),
			Doc: "time after which a silent rank counts as lost"},
		{Name: EnvDelay, By: "mpi", value: span(&s.DelayTarget, defaultDelay, minDelay, maxDelay),
			Doc: "delay that congestion control aims at"},
		{Name: EnvFaults, By: "mpi", value: text(&s.Faults, "probabilities, such as loss=0.01,dup=0.001,reorder=0.01,corrupt=0.001", ""),
			Doc: "what is to go wrong with datagrams, for tests"},
		{Name: EnvPMI, By: "mpi", value: value{Want: "1, 2 or auto", Default: "auto"},
			Doc: "version of PMI to speak with another launcher than xrun; auto is the choice of that"},
	}
}

func (s *Settings) messages() []Var {
	return []Var{
		{Name: EnvEager, Flag: "--eager N", Of: "xperf", By: "mpi", value: limit(&s.Eager, sizeText(DefaultEager)),
			Doc: "longest message in bytes that is sent without asking the receiver"},
		{Name: EnvEagerIdle, Flag: "--eager-idle N", Of: "xperf", By: "mpi", value: limit(&s.EagerIdle, "as measured, else "+sizeText(DefaultEagerIdle)),
			Doc: "the same for a rank on another host that little is under way to"},
		{Name: EnvEagerNear, Flag: "--eager-near N", Of: "xperf", By: "mpi", value: limit(&s.EagerNear, "as measured, else "+sizeText(DefaultEager)),
			Doc: "longest message in bytes that is copied through shared memory to a rank on the same host"},
		{Name: EnvCalibrate, By: "mpi", value: onOff(&s.Calibrate, true),
			Doc: "do not measure where the two limits above are best"},
		{Name: EnvRendezvous, Flag: "--rendezvous W", Of: "xperf", By: "mpi", value: word(&s.Rendezvous, Rendezvous),
			Doc: "how messages of MPI above the limits cross the network"},
		{Name: EnvPromote, By: "mpi", value: count(&s.Promote, DefaultPromote),
			Doc: "after how many large messages to a peer, or 256 KiB of them, transports rd and hybrid connect with it, to send large data by TCP where that is faster"},
		{Name: EnvUnexpected, By: "mpi", value: size(&s.Unexpected, sizeText(DefaultUnexpected)),
			Doc: "bytes of short messages that wait for their receives before their senders have to"},
		{Name: EnvColl, By: "mpi", value: text(&s.Algorithms, "rows COLLECTIVE[.hosts][:BYTES[:RANKS]]=ALGORITHM, such as bcast:64k=binomial", ""),
			Doc: "algorithms of collectives to use before those of the tables; xperf compare algorithms finds rows"},
	}
}

func (s *Settings) program() []Var {
	return []Var{
		{Name: EnvThreads, By: "mpi", value: word(&s.Threads, Threads),
			Doc: "which goroutines of a rank call MPI, unless the program says so"},
		{Name: EnvProgress, Flag: "--progress WHO", Of: "xrun", By: "mpi, xrun", value: word(&s.Progress, Progresses),
			Doc: "who makes progress while a rank computes"},
		{Name: EnvAsync, Flag: "--async WHICH", Of: "xrun", By: "mpi, xrun", value: word(&s.Async, Asyncs),
			Doc: "which windows ghosts serve, unless the info async_config of the window or of its communicator says so"},
		{Name: EnvAsyncTime, By: "mpi", value: span(&s.AsyncTime, defaultAsyncTime, minAsyncTime, 0),
			Doc: "how long a rank whose async_config is auto or auto-ghosts looks at what it does before it decides, and how often ghosts tell one another"},
		{Name: EnvABI, Flag: "--abi A", Of: "xrun", By: "xrun", value: word(&s.ABI, ABIs),
			Doc: "libraries of MPI that programs in C and Fortran find"},
		{Name: EnvGhostFailure, Flag: "--ghost-failure W", Of: "xrun", By: "mpi, xrun", value: word(&s.GhostFailure, GhostFailures),
			Doc: "what happens when a ghost ends before the ranks"},
		{Name: EnvGhostBinding, Flag: "--ghost-binding B", Of: "xrun", By: "mpi", value: word(&s.GhostBinding, GhostBindings),
			Doc: "which of several ghosts of a host serves what of a rank's windows"},
		{Name: EnvStats, By: "mpi", value: onOff(&s.Stats, false),
			Doc: "count the calls of the program (xrun --stats does so, and prints the counts)"},
		{Name: EnvCheck, By: "mpi", value: onOff(&s.Check, false),
			Doc: "compare what the ranks call before each collective, and tell them where they differ"},
	}
}

// identity is read by scripts as well.
func identity() []Var {
	return []Var{
		{Name: EnvRank, By: "mpi", value: own("a number"), Doc: "number of the rank"},
		{Name: EnvSize, By: "mpi", value: own("a number"), Doc: "number of ranks"},
		{Name: EnvHost, By: "mpi", value: own("a number"), Doc: "number of the rank's host"},
		{Name: EnvLocalRank, By: "mpi", value: own("a number"), Doc: "number of the rank among those on its host"},
	}
}

func (s *Settings) launcher() []Var {
	return []Var{
		{Name: EnvJob, By: "xrun", value: own("a word"), Doc: "name of the job, the same for all its ranks; no secret"},
		{Name: EnvGhosts, By: "mpi", value: own("a number"), Doc: "how many ghosts the job has; their numbers follow those of the ranks"},
		{Name: EnvMachine, By: "mpi", value: share(&s.Machine), Doc: "ranks of the job on this machine, and the processors that they have"},
		{Name: EnvBootFD, By: "mpi", value: own("a descriptor"), Doc: "socket to the launcher"},
		{Name: EnvRecordFD, By: "mpi", value: own("a descriptor"), Doc: "memory for what the rank leaves behind"},
		{Name: EnvSlot, By: "mpi", value: text(&s.Slot, "text of xdp.Slot", ""), Doc: "place at a queue that the ranks of the host share"},
		{Name: EnvDeviceNote, By: "xrun", value: own("a path"), Doc: "what the janitor of an agent is to undo in network cards"},
	}
}

// tests are variables that tests, CI and packaging read. Those of single tests begin with
// testPrefix and are not listed.
func tests() []Var {
	return []Var{
		{Name: "XWARP_REQUIRE_XDP", By: "tests", value: own(zeroOrOne), Doc: "a test that needs AF_XDP fails where there is none"},
		{Name: "XWARP_REQUIRE_TSHARK", By: "tests", value: own(zeroOrOne), Doc: "a test that needs tshark fails where there is none"},
		{Name: "XWARP_SEEDS", By: "tests", value: own("a number"), Doc: "how many seeds the simulator plays"},
		{Name: "XWARP_LONG", By: "tests", value: own("1"), Doc: "tests that take minutes run, too, and those that try some combinations try all"},
		{Name: "XWARP_SIW_CAPTURES", By: "tests", value: own("a folder"), Doc: "captures of Linux' software iWARP to read"},
		{Name: "XWARP_BOX", By: "Vagrantfile", value: own("a name"), Doc: "image of the two machines"},
		{Name: "XWARP_HOSTS", By: "packaging/provision", value: own("names and addresses"), Doc: "the machines to set up"},
		{Name: "XWARP_KEY", By: "packaging/provision", value: own("a path"), Doc: "their key for ssh"},
	}
}

const testPrefix = prefix + "TEST_"
