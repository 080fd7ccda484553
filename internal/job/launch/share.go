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
	"github.com/xwarp/xwarp/internal/base/config"
	"github.com/xwarp/xwarp/internal/base/trace"
	"github.com/xwarp/xwarp/verbs/device"
	"github.com/xwarp/xwarp/xdp"
)

// Queues says how the ranks of a host that talk over AF_XDP share its NIC.
type Queues string

// Ways to share.
const (
	// QueuesAuto is QueuesShared where there is one NIC for several ranks, or
	// Config.User is set, or there are ghosts; with "xdp:asavie", whose queues cannot
	// be shared, it is QueuesPerRank in a testbed.
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
	gone   map[int]bool // queueSlots whose ranks have ended
	lost   trace.Losses // up to the first of these: what comes later for them is no loss
	xdp    []queueSlots // by device
	notes  []*note      // of what is to be undone in network cards
}

// queueSlots are what ranks get places at: an xdp.Queue or xdp.QueueSet.
type queueSlots interface {
	Slot(number int) xdp.Slot
	Stray() uint64
	Vacate(queueSlot int) error
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
	set, err := config.Read(s.lookup)
	if err != nil {
		return nil, "", err
	}
	err = device.NewRetryBudget(set.NetWait, config.EnvNetWait).Await(func() (err error) {
		q, notice, err = s.tryQueue(&set)
		return err
	})
	return q, notice, err
}

// tryQueue is openQueue, and fails at once where the network is down.
func (s *startOrder) tryQueue(set *config.Settings) (q *queue, notice string, err error) {
	each, err := s.queueConfigs(set)
	if err != nil {
		return nil, "", err
	}
	if s.Steered != nil {
		q, err := s.openQueueSet(each, set.Transport)
		if !errors.Is(err, xdp.ErrNoSteering) {
			return q, "", err
		}
		notice = fmt.Sprintf("the ranks of host %d share one queue: %v", s.Host, err)
	}
	late := !xdp.MapsBound()
	for i := range each {
		c := &each[i]
		c.Steer.TCPBase, c.Steer.TCPPorts = bpf.DefaultTCPBase, bpf.DefaultTCPPorts/len(s.Ranks)
		c.Late = late
	}
	shared, err := xdp.OpenQueues(each)
	if err != nil {
		return nil, "", err
	}
	q = &queue{}
	for _, one := range shared {
		q.xdp = append(q.xdp, one)
	}
	if late {
		go q.bind(shared)
	}
	go q.widen(shared)
	return q, notice, nil
}

// queueConfigs describes what the ranks could share, by device.
func (s *startOrder) queueConfigs(set *config.Settings) (each []xdp.QueueConfig, err error) {
	c := xdp.QueueConfig{Slots: len(s.Ranks), Steer: bpf.Config{PortBase: device.BasePort}}
	c.Mode, c.BusyPoll, c.Part = device.ModeOf(s.Fabric), set.BusyPoll, set.Arena
	for _, c.Device = range device.Devices(s.Device) {
		if c.Steer.Addr, err = device.Address(c.Device, set.IPv6); err != nil {
			return nil, err
		}
		each = append(each, c)
	}
	return each, nil
}

// bindPause is the time from one look whether all queueSlots are there to the next.
const bindPause = 5 * time.Millisecond

// bind binds the sockets of the queueSlots when all ranks have opened theirs or are
// gone: of one device after the other, as ranks open them. When it fails the ranks get
// the reason.
func (q *queue) bind(shared []*xdp.Queue) {
	for _, s := range shared {
		for done := false; !done; time.Sleep(bindPause) {
			q.mu.Lock()
			if done = q.xdp == nil; !done {
				done, _ = s.Bind(func(queueSlot int) bool { return q.gone[queueSlot] })
			}
			q.mu.Unlock()
		}
	}
}

// widenPause is the time from one look whether there is enough to receive into to the next. Ranks are not
// to notice it.
const widenPause = 50 * time.Millisecond

// widen calls xdp.Queue.Widen as long as that may do something.
func (q *queue) widen(shared []*xdp.Queue) {
	for more := true; more; {
		time.Sleep(widenPause)
		q.mu.Lock()
		if more = false; q.xdp != nil {
			for _, s := range shared {
				more = s.Widen() || more
			}
		}
		q.mu.Unlock()
	}
}

// steeredOrder is what an agent needs to know to give ranks queues of their own.
type steeredOrder struct {
	Slots int `json:"slots"` // most ranks on one host
	Hops  int `json:"hops"`  // xdp.QueueSetConfig.Hops
}

// check refuses what no controller orders.
func (o *steeredOrder) check(ranks int) error {
	if o != nil && o.Slots < ranks {
		return fmt.Errorf("%d ranks of up to %d on a host", ranks, o.Slots)
	}
	return nil
}

// openQueueSet opens queues for ranks that could as well share those of each.
func (s *startOrder) openQueueSet(each []xdp.QueueConfig, transport string) (*queue, error) {
	_, _ = CleanDevices() // what is in the way is told when it is
	q := &queue{}
	keep := func(f xdp.Flows) error {
		n, err := noteChanges(notesDir, changes{Flows: &f})
		if err == nil {
			q.notes = append(q.notes, n)
		}
		return err
	}
	var own []xdp.QueueSetConfig
	for _, c := range each {
		lc := xdp.QueueSetConfig{
			Device: c.Device, Slots: c.Slots, Steer: c.Steer, PeerSlots: s.Steered.Slots, Hops: s.Steered.Hops, Mode: c.Mode, Part: c.Part, BusyPoll: c.BusyPoll,
			NeedTCP: transport == "rc", Keep: keep,
		}
		lc.Steer.TCPBase, lc.Steer.TCPPorts = xdp.TCPBlock(lc.PeerSlots)
		own = append(own, lc)
	}
	lines, err := xdp.OpenQueueSets(own)
	if err != nil {
		for _, n := range q.notes {
			n.leave()
		}
		return nil, err
	}
	for _, one := range lines {
		q.xdp = append(q.xdp, one)
	}
	return q, nil
}

// lookup returns a variable of the ranks' environment.
func (s *startOrder) lookup(name string) (string, bool) { return lookupIn(s.Env, name) }

// settings returns what can be read of an environment: errors are reported where the rest is used.
func settings(lookup func(string) (string, bool)) config.Settings {
	s, _ := config.Read(lookup)
	return s
}

// ipv6 reports whether the ranks use IPv6 addresses: as the environment has it, and else
// where a host is named by one.
func (c *Config) ipv6() bool {
	if _, said := c.lookup(config.EnvIPv6); said {
		return settings(c.lookup).IPv6
	}
	return slices.ContainsFunc(c.Hosts, func(h Host) bool {
		addr, err := netip.ParseAddr(h.Name[strings.LastIndexByte(h.Name, '@')+1:])
		return err == nil && addr.Is6() && !addr.Is4In6() && !addr.IsLoopback()
	})
}

// env is what the ranks' environment gets.
func (p *plan) env(c Config) []string {
	if !p.ipv6 {
		return c.Env
	}
	return append(slices.Clone(c.Env), config.EnvIPv6+"=1")
}

// pass returns what a rank needs to take a queueSlot: files to inherit from number
// fd on, which the caller closes, and a variable of its environment that tells
// about them.
func (q *queue) pass(queueSlot, fd int) (files []*os.File, env string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var lines []string
	for _, on := range q.xdp {
		s := on.Slot(queueSlot)
		lines = append(lines, s.At(fd+len(files)).Text())
		for _, from := range s.FDs() {
			own, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				for _, f := range files {
					f.Close()
				}
				return nil, "", fmt.Errorf("descriptors of queueSlot %d: %w", queueSlot, err)
			}
			files = append(files, os.NewFile(uintptr(own), "queueSlot"))
		}
	}
	q.living.Add(1)
	return files, config.EnvSlot + "=" + strings.Join(lines, "\n"), nil
}

// vacate gives back to the others what a rank had that has ended, if there are
// any. A child of it may have the queueSlot still, and then keeps it.
func (q *queue) vacate(queueSlot int) error {
	q.living.Add(-1)
	q.losses()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone == nil {
		q.gone = map[int]bool{}
	}
	q.gone[queueSlot] = true
	if q.living.Load() == 0 || q.xdp == nil { // ranks end together, and this takes its time
		return nil
	}
	var errs []error
	for _, on := range q.xdp {
		if err := on.Vacate(queueSlot); !errors.Is(err, xdp.ErrSlotTaken) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// losses returns what was lost on the way to the ranks that these cannot see, which have
// no rights to ask for it.
func (q *queue) losses() trace.Losses {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.gone) == 0 && q.xdp != nil {
		q.lost = trace.Losses{}
		for _, on := range q.xdp {
			q.lost.NoSocket += on.Stray()
		}
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
	var err error // the end of the process does what is left, and the janitors
	for _, on := range slices.Backward(q.xdp) {
		err = errors.Join(err, on.Close())
	}
	q.xdp = nil
	for _, n := range q.notes {
		if err == nil {
			n.drop()
		} else {
			n.leave()
		}
	}
}
