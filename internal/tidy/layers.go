package tidy

// Row is one line of the import table: a package and what it may import
// besides the standard library.
type Row struct {
	// Package is the path below the module. "cmd/*" stands for every package
	// under cmd that has no row of its own.
	Package string
	// May lists the packages of this module that it may import, separated by
	// spaces. Each must have its row further down in the stack, which is
	// further up in the table; so the table cannot describe a cycle or a step
	// upwards. "..." means every row before this one.
	May string
	// Modules lists the foreign modules that it may import.
	Modules string
	// Pure packages are sans-I/O: bytes and the time in, bytes and events
	// out. They get no clock, socket, file, lock, goroutine or channel.
	Pure bool
	// Leaf packages may be imported by everyone above them without being
	// named.
	Leaf bool
}

// Layers is section 2 of the design as data, from the bottom of the stack to
// its top. A new package gets its row here, in its layer. An import that the
// table refuses is a question about the design and not about this file: the
// two seams (internal/fabric and iwarp.LLP) are what keeps the rest apart.
var Layers = []Row{
	// L0: leaves.
	{Package: "internal/mono", Leaf: true},
	{Package: "internal/serial", Leaf: true, Pure: true},
	{Package: "internal/assert", Leaf: true},
	{Package: "internal/crc32c", Leaf: true, Pure: true, Modules: "golang.org/x/sys"},
	{Package: "internal/trace", Leaf: true},
	{Package: "internal/wheel", Leaf: true, Pure: true},

	// L1: memory, and what makes a lossy path reliable.
	{Package: "internal/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/arq", Pure: true},

	// L2: carriers, and the seam that they end in.
	{Package: "internal/fabric", May: "internal/mem"},
	{Package: "internal/fabric/bond", May: "internal/fabric internal/mem"},
	{Package: "internal/fabric/fault", May: "internal/fabric internal/mem"},
	{Package: "internal/fabric/mesh", May: "internal/fabric internal/mem"},
	{Package: "internal/fabric/near", May: "internal/fabric internal/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/fabric/split", May: "internal/fabric internal/mem"},
	{Package: "bpf", Modules: "github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "xdp", May: "bpf internal/fabric internal/mem", Modules: "github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "xdp/asavie", May: "bpf xdp internal/fabric internal/mem", Modules: "github.com/asavie/xdp github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/inet", May: "internal/fabric internal/mem", Pure: true},
	{Package: "internal/inet/route", May: "internal/inet", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/fabric/capture", May: "internal/fabric internal/inet internal/mem"},
	{Package: "internal/ksock", May: "internal/fabric internal/mem", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/ktcp", May: "internal/fabric internal/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/netstack", May: "internal/fabric internal/inet internal/mem", Modules: "gvisor.dev/gvisor golang.org/x/sys"},
	{Package: "internal/shm", May: "internal/fabric internal/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/sim", May: "internal/fabric internal/mem"},

	// L3: protocols. Nothing here knows what carries it.
	{Package: "iwarp", May: "internal/mem", Pure: true},
	{Package: "iwarp/ddp", May: "iwarp internal/arq internal/mem", Pure: true},
	{Package: "iwarp/record", Pure: true},
	{Package: "iwarp/rdmap", May: "iwarp iwarp/ddp iwarp/record internal/mem", Pure: true},
	{Package: "iwarp/mpa", May: "iwarp iwarp/ddp", Pure: true},
	{Package: "iwarp/dgram", May: "iwarp internal/arq internal/mem", Pure: true},

	// L4: the engine, and the joint between carriers and protocols.
	{Package: "internal/progress", Modules: "golang.org/x/sys"},
	{Package: "internal/llp", May: "internal/arq iwarp iwarp/ddp iwarp/record iwarp/rdmap iwarp/dgram internal/fabric internal/mem internal/progress"},

	// L5: verbs, and the composition root that knows every carrier.
	{Package: "verbs", May: "internal/arq iwarp iwarp/ddp iwarp/record iwarp/rdmap iwarp/dgram iwarp/mpa internal/fabric internal/llp internal/mem internal/progress"},
	{Package: "verbs/device", May: "verbs bpf xdp iwarp/dgram xdp/asavie internal/arq internal/fabric internal/fabric/bond internal/fabric/capture internal/fabric/fault internal/fabric/near internal/fabric/split internal/inet internal/inet/route internal/ksock internal/ktcp internal/netstack internal/shm internal/llp internal/mem internal/progress", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/boot", May: "verbs/device", Modules: "golang.org/x/sys"},
	{Package: "internal/boot/pmi", May: "internal/boot", Modules: "golang.org/x/sys"},

	// L6: MPI.
	{Package: "mpi/internal/match", Pure: true},
	{Package: "mpi/internal/agree", Pure: true},
	{Package: "mpi/internal/dtype", May: "internal/mem", Pure: true},
	{Package: "mpi/internal/reliable", May: "internal/arq internal/mem internal/progress verbs"},
	{Package: "mpi/internal/p2p", May: "mpi/internal/agree mpi/internal/match mpi/internal/dtype mpi/internal/reliable verbs internal/mem internal/shm internal/progress"},
	{Package: "mpi/internal/coll", May: "mpi/internal/p2p mpi/internal/dtype internal/mem"},
	{Package: "mpi", May: "mpi/internal/coll mpi/internal/p2p mpi/internal/match mpi/internal/dtype internal/boot internal/boot/pmi verbs verbs/device internal/mem internal/progress"},

	// L7: programs, and what only they and the tests need.
	{Package: "internal/cli"},
	{Package: "internal/getopt", Pure: true},
	{Package: "internal/rping", May: "verbs internal/progress"},
	{Package: "internal/testbed", May: "bpf", Modules: "github.com/vishvananda/netlink github.com/vishvananda/netns golang.org/x/sys"},
	{Package: "internal/launch", May: "bpf xdp verbs/device internal/boot internal/boot/pmi internal/inet/route internal/testbed", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/check", May: "verbs iwarp/dgram internal/sim internal/fabric internal/fabric/fault internal/fabric/split internal/inet internal/mem internal/progress"},
	{Package: "internal/vectors"},
	{Package: "internal/crowd", May: "verbs internal/fabric internal/fabric/mesh internal/inet internal/ktcp internal/sim internal/mem internal/progress"},
	{Package: "internal/conform", May: "...", Modules: "golang.org/x/sys"},
	{Package: "bench/plot"},
	{Package: "bench", May: "...", Modules: "golang.org/x/sys"},
	{Package: "bench/osu", May: "..."},
	{Package: "examples/cg/mtx"},
	{Package: "examples/internal/job", May: "mpi"},
	{Package: "examples/*", May: "mpi examples/cg/mtx examples/internal/job"},
	{Package: "cmd/*", May: "...", Modules: "github.com/vishvananda/netlink github.com/vishvananda/netns golang.org/x/sys"},
	{Package: "internal/gotest"},
	{Package: "internal/tidy"},
}

// UnsafePackages may hold unsafe code, in files named *_unsafe.go only.
var UnsafePackages = []string{"internal/mem", "xdp", "internal/shm", "internal/ksock", "internal/ktcp"}

// ClockPackages may read the clock of the machine, and why.
var ClockPackages = map[string]string{
	"examples/cg":     "it tells how long solving took, as any program of a user would",
	"internal/launch": "it waits for processes to die",
	"internal/mono":   "it is the clock",
}

// ExitPackages are libraries that may end the process, and why.
var ExitPackages = map[string]string{
	"internal/testbed": "its janitor is the program executed again, which must not run the program's main",
}

// TestOnly are internal packages, and names of others, that serve tests: programs need not
// use them.
var TestOnly = []string{
	"internal/conform", "internal/fabric/mesh", "internal/sim", "internal/vectors", "internal/tidy",
	"internal/testbed.SetUp", "internal/testbed.ChecksumOff", // what happens to a host
	"internal/testbed.ForgeTooBig", "internal/testbed.ForgeNeighbour", // and what it is told
	"internal/arq.Found",                                    // whether a question about a path was answered
	"mpi/internal/dtype.Replace", "mpi/internal/dtype.NoOp", // for accumulates, which mpi has not yet
}
