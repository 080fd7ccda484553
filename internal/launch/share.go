package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xwarp/xwarp/bpf"
	"github.com/xwarp/xwarp/internal/boot"
	"github.com/xwarp/xwarp/internal/trace"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// Queues says how the ranks of a host that talk over AF_XDP share its NIC.
type Queues string

// Ways to share.
const (
	// QueuesAuto is QueuesShared where there is one NIC for several ranks, or
	// Config.User is set; in a testbed it is QueuesPerRank.
	QueuesAuto Queues = ""
	// QueuesShared puts all ranks of a host on one queue of its NIC, which the
	// agent opens for them: they need no privileges.
	QueuesShared Queues = "shared"
	// QueuesSteered gives each rank queues of its own on the one NIC of its host,
	// which the agent opens too. The NIC steers flows to queues (n-tuple filters);
	// where it cannot the ranks of that host share a queue. In a testbed the
	// devices get as many queues as it takes, for there the sender steers.
	QueuesSteered Queues = "steered"
	// QueuesPerRank gives each rank a NIC of its own, in a testbed. A host that
	// has only one NIC can have one rank then.
	QueuesPerRank Queues = "per-rank"
)

// queue is what the agent has for the ranks of its host to share, or queues that
// it opened for each.
type queue struct {
	living atomic.Int32 // ranks
	mu     sync.Mutex
	gone   map[int]bool // seats whose ranks have ended
	lost   trace.Losses // up to the first of these: what comes later for them is nobody's loss
	xdp    seats
	note   *note // of what is to be undone in the network card, or nil
}

// seats are what ranks get places at: an xdp.Queue or xdp.Lines.
type seats interface {
	Seat(number int) xdp.Seat
	Stray() uint64
	Vacate(seat int) error
	Close() error
}

// openQueue opens the queue that the ranks share, or those that each has for
// itself. It returns nil when they open them themselves. notice is what people
// should know about it, or "". The calling thread is in the network namespace of
// the device.
func (s *startOrder) openQueue() (q *queue, notice string, err error) {
	if !s.Shared && s.Steered == nil {
		return nil, "", nil
	}
	wait, err := boot.NetWait(s.lookup)
	if err != nil {
		return nil, "", err
	}
	err = device.NewPatience(wait, boot.EnvNetWait).Await(func() (err error) {
		q, notice, err = s.tryQueue()
		return err
	})
	return q, notice, err
}

// tryQueue is openQueue, and fails at once where the network is down.
func (s *startOrder) tryQueue() (q *queue, notice string, err error) {
	c := xdp.QueueConfig{Device: s.Device, Seats: len(s.Ranks), Steer: bpf.Config{PortBase: device.BasePort}}
	if c.Steer.Addr, err = device.Address(s.Device, ipv6In(s.lookup)); err != nil {
		return nil, "", err
	}
	switch s.Fabric {
	case "xdp:generic":
		c.Mode = bpf.Generic
	case "xdp:driver":
		c.Mode = bpf.Driver
	}
	if c.Part, err = arenaSize(s.lookup); err != nil {
		return nil, "", err
	}
	if s.Steered != nil {
		q, err := s.openLines(c)
		if !errors.Is(err, xdp.ErrNoSteering) {
			return q, "", err
		}
		notice = fmt.Sprintf("the ranks of host %d share one queue: %v", s.Host, err)
	}
	c.Steer.TCPBase, c.Steer.TCPPorts = bpf.DefaultTCPBase, bpf.DefaultTCPPorts/len(s.Ranks)
	c.Late = !xdp.MapsBound()
	shared, err := xdp.OpenQueue(c)
	if err != nil {
		return nil, "", err
	}
	q = &queue{xdp: shared}
	if c.Late {
		go q.bind(shared)
	}
	return q, notice, nil
}

// bindPause is the time from one look whether all seats are there to the next.
const bindPause = 5 * time.Millisecond

// bind binds the sockets of the seats when all ranks have opened theirs or are
// gone. When it fails the ranks get the reason.
func (q *queue) bind(shared *xdp.Queue) {
	for done := false; !done; time.Sleep(bindPause) {
		q.mu.Lock()
		if done = q.xdp == nil; !done {
			done, _ = shared.Bind(func(seat int) bool { return q.gone[seat] })
		}
		q.mu.Unlock()
	}
}

// steeredOrder is what an agent needs to know to give ranks queues of their own.
type steeredOrder struct {
	Slots int `json:"slots"` // most ranks on one host
	Hops  int `json:"hops"`  // xdp.LinesConfig.Hops
}

// check refuses what no controller orders.
func (o *steeredOrder) check(ranks int) error {
	if o != nil && o.Slots < ranks {
		return fmt.Errorf("%d ranks of up to %d on a host", ranks, o.Slots)
	}
	return nil
}

// envTransport is mpi.EnvTransport.
const envTransport = "XWARP_TRANSPORT"

// openLines opens queues for ranks that could as well share the one of c.
func (s *startOrder) openLines(c xdp.QueueConfig) (*queue, error) {
	_, _ = CleanFlows() // what is in the way is told when it is
	q := &queue{}
	lc := xdp.LinesConfig{
		Device: c.Device, Seats: c.Seats, Steer: c.Steer, Slots: s.Steered.Slots, Hops: s.Steered.Hops, Mode: c.Mode, Part: c.Part,
		Keep: func(f xdp.Flows) (err error) {
			q.note, err = noteFlows(notesDir, f)
			return err
		},
	}
	lc.Steer.TCPBase, lc.Steer.TCPPorts = xdp.TCPBlock(lc.Slots)
	transport, _ := s.lookup(envTransport)
	lc.NeedTCP = transport == "rc" || transport == "hybrid"
	lines, err := xdp.OpenLines(lc)
	if err != nil {
		if q.note != nil {
			q.note.leave()
		}
		return nil, err
	}
	q.xdp = lines
	return q, nil
}

// lookup returns a variable of the ranks' environment.
func (s *startOrder) lookup(name string) (string, bool) { return lookupIn(s.Env, name) }

// arenaSize returns what each rank has of the arena in bytes; 0 when it is not
// said.
func arenaSize(lookup func(string) (string, bool)) (int, error) {
	text, ok := lookup(boot.EnvArena)
	if !ok {
		return 0, nil
	}
	n, err := boot.ParseSize(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", boot.EnvArena, err)
	}
	return n, nil
}

// ipv6 reports whether the ranks use IPv6 addresses: as the environment has it, and else
// where a host is named by one.
func (c *Config) ipv6() bool {
	if _, said := c.lookup(boot.EnvIPv6); said {
		return ipv6In(c.lookup)
	}
	return slices.ContainsFunc(c.Hosts, func(h Host) bool {
		addr, err := netip.ParseAddr(h.Name[strings.LastIndexByte(h.Name, '@')+1:])
		return err == nil && addr.Is6() && !addr.Is4In6() && !addr.IsLoopback()
	})
}

// env is what the ranks' environment gets.
func (p *plan) env(c Config) []string {
	if _, said := c.lookup(boot.EnvIPv6); said || !p.ipv6 {
		return c.Env
	}
	return append(slices.Clone(c.Env), boot.EnvIPv6+"=1")
}

// ipv6In reports whether the environment asks for IPv6.
func ipv6In(lookup func(string) (string, bool)) bool {
	text, _ := lookup(boot.EnvIPv6)
	return text == "1"
}

// pass returns what a rank needs to take a seat: files to inherit from number
// fd on, which the caller closes, and a variable of its environment that tells
// about them.
func (q *queue) pass(seat, fd int) (files []*os.File, env string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.xdp.Seat(seat)
	for _, from := range s.FDs() {
		own, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, "", fmt.Errorf("descriptors of seat %d: %w", seat, err)
		}
		files = append(files, os.NewFile(uintptr(own), "seat"))
	}
	q.living.Add(1)
	return files, boot.EnvSeat + "=" + s.At(fd).Text(), nil
}

// vacate gives back to the others what a rank had that has ended, if there are
// any. A child of it may have the seat still, and then keeps it.
func (q *queue) vacate(seat int) error {
	q.living.Add(-1)
	q.losses()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone == nil {
		q.gone = map[int]bool{}
	}
	q.gone[seat] = true
	if q.living.Load() == 0 || q.xdp == nil { // ranks end together, and this takes its time
		return nil
	}
	if err := q.xdp.Vacate(seat); !errors.Is(err, xdp.ErrSeatTaken) {
		return err
	}
	return nil
}

// losses returns what was lost on the way to the ranks that these cannot see, who have
// no rights to ask for it.
func (q *queue) losses() trace.Losses {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.gone) == 0 && q.xdp != nil {
		q.lost = trace.Losses{NoSocket: q.xdp.Stray()}
	}
	return q.lost
}

// tellLosses lets people know what may be why ranks do not hear of others.
func (a *agent) tellLosses() {
	if a.queue == nil {
		return
	}
	if text := a.queue.losses().String(); text != "" {
		a.notice(fmt.Sprintf("on host %d (%s) %s", a.start.Host, a.start.Device, text))
	}
}

// close closes the queue once all ranks are gone.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.xdp.Close() // the end of the process does what is left, and the janitor
	q.xdp = nil
	switch {
	case q.note == nil:
	case err == nil:
		q.note.drop()
	default:
		q.note.leave()
	}
}
