package lint

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
// two seams (internal/carrier/fabric and iwarp.LLP) are what keeps the rest apart.
var Layers = []Row{
	// L0: leaves.
	{Package: "internal/base/mono", Leaf: true},
	{Package: "internal/base/serial", Leaf: true, Pure: true},
	{Package: "internal/base/assert", Leaf: true},
	{Package: "internal/base/crc32c", Leaf: true, Pure: true, Modules: "golang.org/x/sys"},
	{Package: "internal/base/event", Leaf: true, Modules: "golang.org/x/sys"},
	{Package: "internal/base/genl", Leaf: true, Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/base/config", Leaf: true},
	{Package: "internal/base/trace", Leaf: true},
	{Package: "internal/base/wheel", Leaf: true, Pure: true},
	{Package: "internal/base/addrtable", Leaf: true, Pure: true},
	{Package: "internal/test/testenv", Leaf: true, Modules: "golang.org/x/sys"},

	// L1: memory, and what makes a lossy path reliable.
	{Package: "internal/base/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/proto/arq", Pure: true},

	// L2: carriers, and the seam that they end in.
	{Package: "internal/carrier/fabric", May: "internal/base/mem"},
	{Package: "internal/carrier/bond", May: "internal/carrier/fabric internal/base/mem"},
	{Package: "internal/carrier/fault", May: "internal/carrier/fabric internal/base/mem"},
	{Package: "internal/carrier/secure", May: "internal/carrier/fabric internal/base/mem"},
	{Package: "internal/test/mesh", May: "internal/carrier/fabric internal/base/mem"},
	{Package: "internal/carrier/near", May: "internal/carrier/fabric internal/base/mem"},
	{Package: "internal/carrier/split", May: "internal/carrier/fabric internal/base/mem"},
	{Package: "bpf", Modules: "github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "xdp", May: "bpf internal/carrier/fabric internal/base/mem", Modules: "github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "xdp/asavie", May: "bpf xdp internal/carrier/fabric internal/base/mem", Modules: "github.com/asavie/xdp github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/carrier/gso", May: "internal/carrier/fabric", Modules: "golang.org/x/sys"},
	{Package: "internal/carrier/inet", May: "internal/carrier/fabric internal/carrier/gso internal/base/mem", Pure: true, Modules: "golang.org/x/sys"},
	{Package: "internal/carrier/inet/route", May: "internal/carrier/inet", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/carrier/capture", May: "internal/carrier/fabric internal/carrier/inet internal/base/mem"},
	{Package: "internal/carrier/kudp", May: "internal/carrier/fabric internal/base/mem", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/carrier/ktcp", May: "internal/carrier/fabric internal/base/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/carrier/netstack", May: "internal/carrier/fabric internal/carrier/gso internal/carrier/inet internal/base/mem", Modules: "gvisor.dev/gvisor golang.org/x/sys"},
	{Package: "internal/carrier/shm", May: "internal/carrier/fabric internal/base/mem", Modules: "golang.org/x/sys"},
	{Package: "internal/test/sim", May: "internal/carrier/fabric internal/base/mem"},

	// L3: protocols. Nothing here knows what carries it.
	{Package: "iwarp", May: "internal/base/mem", Pure: true},
	{Package: "iwarp/ddp", May: "iwarp internal/proto/arq internal/base/mem", Pure: true},
	{Package: "iwarp/record", Pure: true},
	{Package: "iwarp/rdmap", May: "iwarp iwarp/ddp iwarp/record internal/base/mem", Pure: true},
	{Package: "iwarp/mpa", May: "iwarp iwarp/ddp", Pure: true},
	{Package: "iwarp/dgram", May: "iwarp internal/proto/arq internal/base/mem", Pure: true},

	// L4: the engine, and the joint between carriers and protocols.
	{Package: "internal/progress", Modules: "golang.org/x/sys"},
	{Package: "internal/proto/llp", May: "internal/proto/arq iwarp iwarp/ddp iwarp/record iwarp/rdmap iwarp/dgram internal/carrier/fabric internal/base/mem internal/progress"},

	// L5: verbs, and the composition root that knows every carrier.
	{Package: "verbs", May: "internal/proto/arq iwarp iwarp/ddp iwarp/record iwarp/rdmap iwarp/dgram iwarp/mpa internal/carrier/fabric internal/proto/llp internal/base/mem internal/progress"},
	{Package: "verbs/device", May: "verbs bpf xdp iwarp/dgram xdp/asavie internal/proto/arq internal/carrier/fabric internal/carrier/bond internal/carrier/capture internal/carrier/fault internal/carrier/near internal/carrier/secure internal/carrier/split internal/carrier/inet internal/carrier/inet/route internal/carrier/kudp internal/carrier/ktcp internal/carrier/netstack internal/carrier/shm internal/proto/llp internal/base/mem internal/progress", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/job/boot", May: "verbs/device", Modules: "golang.org/x/sys"},
	{Package: "internal/job/boot/pmi", May: "internal/job/boot", Modules: "golang.org/x/sys"},

	// L6: MPI.
	{Package: "mpi/internal/match", Pure: true},
	{Package: "mpi/internal/agree", Pure: true},
	{Package: "mpi/internal/dtype", May: "internal/base/mem", Pure: true, Modules: "golang.org/x/sys"},
	{Package: "mpi/internal/reliable", May: "internal/proto/arq internal/proto/llp internal/base/mem internal/progress verbs"},
	{Package: "mpi/internal/p2p", May: "mpi/internal/agree mpi/internal/match mpi/internal/dtype mpi/internal/reliable verbs internal/base/mem internal/carrier/shm internal/progress"},
	{Package: "mpi/internal/coll", May: "mpi/internal/p2p mpi/internal/dtype internal/base/mem"},
	{Package: "mpi/internal/adapt", Pure: true},
	{Package: "mpi/internal/rma", May: "mpi/internal/adapt mpi/internal/p2p mpi/internal/dtype internal/base/mem"},
	{Package: "mpi", May: "mpi/internal/adapt mpi/internal/rma mpi/internal/coll mpi/internal/p2p mpi/internal/match mpi/internal/dtype internal/job/boot internal/job/boot/pmi verbs verbs/device internal/base/mem internal/progress"},

	// L7: programs, and what only they and the tests need.
	{Package: "cmd/internal/cli"},
	{Package: "cmd/internal/getopt", Pure: true},
	{Package: "cmd/xping/rping", May: "verbs internal/progress"},
	{Package: "internal/job/proc", Modules: "golang.org/x/sys"},
	{Package: "internal/job/testbed", May: "bpf internal/job/proc internal/progress", Modules: "github.com/vishvananda/netlink github.com/vishvananda/netns golang.org/x/sys"},
	{Package: "internal/test/hosttest", May: "internal/job/testbed", Modules: "github.com/cilium/ebpf github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/job/launch", May: "internal/base/mem bpf xdp verbs/device internal/job/boot internal/job/boot/pmi internal/carrier/inet/route internal/job/proc internal/job/testbed internal/progress", Modules: "github.com/vishvananda/netlink golang.org/x/sys"},
	{Package: "internal/test/check", May: "verbs iwarp/dgram internal/test/sim internal/carrier/fabric internal/carrier/fault internal/carrier/secure internal/carrier/split internal/carrier/inet internal/base/mem internal/progress"},
	{Package: "internal/test/vectors"},
	{Package: "bench/footprint", May: "verbs internal/carrier/fabric internal/test/mesh internal/carrier/inet internal/carrier/ktcp internal/test/sim internal/base/mem internal/progress"},
	{Package: "internal/test/conform", May: "...", Modules: "golang.org/x/sys"},
	{Package: "bench/plot"},
	{Package: "bench", May: "...", Modules: "golang.org/x/sys"},
	{Package: "bench/peers", May: "..."},
	{Package: "examples/cg/mtx"},
	{Package: "examples/internal/job", May: "mpi"},
	{Package: "examples/*", May: "mpi examples/cg/mtx examples/internal/job"},
	{Package: "cmd/*", May: "...", Modules: "github.com/vishvananda/netlink github.com/vishvananda/netns golang.org/x/sys"},
	{Package: "abi/capi", May: "mpi internal/base/config"},
	{Package: "abi/gen"},
	{Package: "abi", May: "internal/test/hosttest"},
	{Package: "internal/test/gotest"},
	{Package: "internal/test/lint"},
}

// UnsafePackages may hold unsafe code, in files named *_unsafe.go only.
var UnsafePackages = []string{"internal/base/event", "internal/base/mem", "xdp", "internal/carrier/shm", "internal/carrier/kudp", "internal/carrier/ktcp", "internal/carrier/gso", "internal/carrier/netstack", "abi/capi"}

// ClockPackages may read the clock of the machine, and why.
var ClockPackages = map[string]string{
	"examples/blocksparse": "it tells how long ranks wait for each other",
	"examples/hashtable":   "it tells how long an insertion takes",
	"examples/cg":          "it tells how long solving took, as any program of a user would",
	"internal/job/launch":  "it waits for processes to die",
	"internal/base/mono":   "it is the clock",
}

// ExitPackages are libraries that may end the process, and why.
var ExitPackages = map[string]string{
	"internal/job/testbed": "its janitor is the program executed again, which must not run the program's main",
}

// TestOnly are internal packages, and names of others, that serve tests: programs need not
// use them.
var TestOnly = []string{
	"internal/test/conform", "internal/test/mesh", "internal/test/sim", "internal/test/testenv", "internal/test/vectors", "internal/test/lint",
	"internal/test/hosttest",
	"internal/job/testbed.SetUp", "internal/job/testbed.ChecksumOff", // what happens to a host
	"internal/proto/arq.Found", // whether a question about a path was answered
}
