package conform

import (
	"io"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

// Net is a network of hosts, with one endpoint on each.
type Net struct {
	// Open opens the endpoint of host i, at the same address each time. under
	// is closed after it, in order.
	Open func(i int) (d fabric.Datagram, under []io.Closer, err error)
	// Streams opens the carrier of RC of host i, likewise. at is where it is
	// reached; default the address that the carrier tells.
	Streams func(i int) (s fabric.Streams, at netip.Addr, under []io.Closer, err error)
	// Clock is the time on all hosts; default mono.Real.
	Clock mono.Clock
	// Step lets time pass. idle is how many times in a row nothing has
	// happened; default does nothing.
	Step func(idle int)
	// Virtual says that time passes in Step only, as in the simulator: regions
	// are zero-based and nobody waits in poll(2).
	Virtual bool
	// Multicast says that groups may be joined, which is done inside On.
	Multicast bool
	// On runs fn on host i; default just calls it.
	On func(i int, fn func() error) error
	// Run runs a whole case; default just calls it.
	Run func(run func())
}

// VerbsConfig says what verbs shall run on.
type VerbsConfig struct {
	// Net makes a network for one case, and ends it with the test.
	Net func(t *testing.T, hosts int) Net
	// Faults are done to everything that is sent. What reliable datagrams
	// promise they promise in spite of them.
	Faults fault.Config
	// Secure encrypts the datagrams, above the faults.
	Secure bool
	Dgram  dgram.Config
	// Types are the queue pairs that the network has; default RD and UD.
	Types []verbs.QPType
	// Connect says how RC connects.
	Connect verbs.ConnParam
}

// transports is a set of queue pair types.
type transports uint8

const (
	onRD   transports = 1 << verbs.RD
	onUD   transports = 1 << verbs.UD
	onRC   transports = 1 << verbs.RC
	onBoth            = onRD | onUD
	onRel             = onRD | onRC // reliable
	onAll             = onBoth | onRC
)

// verbsCase is one thing that verbs promise.
type verbsCase struct {
	name  string
	on    transports
	hosts int // default 2
	// alien says that the last host belongs to another job.
	alien bool
	// qp changes how the queue pairs are made.
	qp func(h *host, init *verbs.QPInit)
	// impatient lets peers be given up after a second, so that it can be
	// waited for.
	impatient bool
	// apart says that on RC nobody is connected in advance.
	apart bool
	// faulty says that faults may be injected on UD as well.
	faulty bool
	run    func(r *rig)
}

// Verbs holds verbs over a carrier to what ibv_post_send(3) and its neighbours
// promise, on queue pairs of all types that it carries. What is waited for and never
// happens is found by the time limit of go test.
//
// Around every region there are canaries, and the region itself is compared as
// a whole: nothing changes that an operation does not name.
func Verbs(t *testing.T, c VerbsConfig) {
	types := c.Types
	if types == nil {
		types = []verbs.QPType{verbs.RD, verbs.UD}
	}
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			for _, group := range [][]verbsCase{
				sendCases, oneSidedCases, atomicCases, recordCases, memoryCases, refusalCases, queueCases, peerCases,
				rcConnectCases, rcEndCases, rcRefusalCases, rcDepthCases, rcWaitCases,
			} {
				for i := range group {
					v := &group[i]
					if v.on>>typ&1 == 0 || typ == verbs.UD && c.Faults != (fault.Config{}) && !v.faulty {
						continue
					}
					t.Run(v.name, func(t *testing.T) { runCase(t, &c, v, typ) })
				}
			}
		})
	}
}

func runCase(t *testing.T, c *VerbsConfig, v *verbsCase, typ verbs.QPType) {
	r := newRig(t, c, v, typ)
	run := func() {
		r.meetAll()
		v.run(r)
		r.settle()
	}
	if r.net.Run != nil {
		r.net.Run(run)
		return
	}
	run()
}
