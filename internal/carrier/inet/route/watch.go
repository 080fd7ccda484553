package route

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What may be wrong with a device. A [Trouble] wraps one of them, or ErrLinkDown.
var (
	ErrGone      = errors.New("the device is gone")
	ErrNoCarrier = errors.New("the link has no carrier")
	ErrDetached  = errors.New("its XDP program is not attached any more")
	ErrShrunk    = errors.New("the MTU is too small")
	ErrNoAddress = errors.New("the address is gone")
	ErrQueues    = errors.New("it has more receive queues than have sockets")
	ErrSuspended = errors.New("the host was suspended")
)

// Trouble says what is wrong with a device that is in use.
type Trouble struct {
	Link   string
	Reason error
	Remedy string

	lasting bool // for longer than WatchConfig.Limit
}

func (e *Trouble) Error() string { return fmt.Sprintf("%s: %v: %s", e.Link, e.Reason, e.Remedy) }

// Unwrap returns the reason.
func (e *Trouble) Unwrap() error { return e.Reason }

// Final reports whether it cannot pass: what was opened on the device is of no use any
// more, whatever becomes of it.
func (e *Trouble) Final() bool { return e.Reason == ErrGone || e.Reason == ErrDetached }

// Lasting reports whether it has been so for longer than WatchConfig.Limit.
func (e *Trouble) Lasting() bool { return e.lasting }

// Partial reports whether some things pass in spite of it.
func (e *Trouble) Partial() bool {
	return e.Reason == ErrShrunk || e.Reason == ErrQueues || e.Reason == ErrSuspended
}

// QueueCounter counts the receive queues of a device.
type QueueCounter interface {
	Count() int // 0: it is not known
	Close()
}

// WatchConfig describes a watch. Link must be given.
type WatchConfig struct {
	Link string
	Addr netip.Addr // that must stay on the device; default: none has to
	MTU  int        // that it must not fall below, in bytes; default: what it has now
	XDP  bool       // the program that it has, or gets, must stay attached
	// Queues counts the receive queues, which must not become more: what comes in on new
	// ones does not reach us. The watch closes it. Default: they are not counted.
	Queues QueueCounter
	// Delay is for how long something must be wrong until it is told, if it is not
	// final; default 2 seconds.
	Delay time.Duration
	// Limit is for how long something may be wrong until it is told again and again, as
	// Trouble.Lasting; default: for ever.
	Limit time.Duration
}

// lookEvery is the time from one look at a device to the next while the kernel tells
// of no change: it does not tell when a program is detached.
const lookEvery = 5 * time.Second

// Watch knows what a device was like when it was opened, and says what is wrong with
// it since. Its methods may be called by any goroutine.
type Watch struct {
	config  WatchConfig
	index   int
	program uint32        // XDP, by the kernel's number; 0: none has to stay
	queues  int           // that it had; 0: they do not matter
	slept   time.Duration // for how long the host had been suspended
	events  *nl.NetlinkSocket
	closed  chan struct{} // by Close
	ended   chan struct{} // by the goroutine of Start
	started bool

	mu     sync.Mutex
	kernel *netlink.Handle // nil after Close
}

// OpenWatch begins to watch a device, in the network namespace of the calling
// thread, where it stays. The caller closes it.
func OpenWatch(c WatchConfig) (*Watch, error) {
	c.Delay = cmp.Or(c.Delay, 2*time.Second)
	w := &Watch{config: c, closed: make(chan struct{}), ended: make(chan struct{})}
	if err := w.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("route: watch of device %q: %w", c.Link, err), w.Close())
	}
	return w, nil
}

// Start makes a goroutine of the watch call changed with what has been wrong for a
// while, again when that has become final, and with nil when it is over. It is called
// once at most, before anything else is. changed must not call Close.
func (w *Watch) Start(changed func(*Trouble)) {
	w.started = true
	go w.tell(changed)
}

func (w *Watch) open() (err error) {
	if w.kernel, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	// First the subscription, then the state: nothing falls between them.
	w.events, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return err
	}
	link, err := w.kernel.LinkByName(w.config.Link)
	if err != nil {
		return err
	}
	a := link.Attrs()
	w.index = a.Index
	w.config.MTU = cmp.Or(w.config.MTU, a.MTU)
	if c := w.config.Queues; c != nil {
		w.queues = c.Count()
	}
	w.slept = suspended()
	w.adopt(a)
	return nil
}

// suspended returns for how long this host has been suspended since it was started.
func suspended() time.Duration {
	var all, awake unix.Timespec // these clocks are there, and nothing else can go wrong
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &all)
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
	return time.Duration(all.Nano() - awake.Nano())
}

// adopt takes the first program that it sees for the one that has to stay.
func (w *Watch) adopt(a *netlink.LinkAttrs) {
	if w.config.XDP && w.program == 0 && a.Xdp != nil {
		w.program = a.Xdp.ProgId
	}
}

// Close ends the watch. Trouble returns nil from then on.
func (w *Watch) Close() error {
	close(w.closed)
	if w.events != nil {
		w.events.Close()
	}
	if w.started {
		<-w.ended
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kernel != nil {
		w.kernel.Close()
		w.kernel = nil
	}
	if w.config.Queues != nil {
		w.config.Queues.Close()
		w.config.Queues = nil
	}
	return nil
}

// Trouble asks the kernel, and returns what is wrong with the device now, the gravest
// first, as a *[Trouble], or nil.
func (w *Watch) Trouble() error {
	if t := w.Now(); t != nil {
		return t
	}
	return nil // not t: an interface with a nil in it is not nil
}

// Now is Trouble, with its type.
func (w *Watch) Now() *Trouble {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kernel == nil {
		return nil
	}
	c := &w.config
	link, err := w.kernel.LinkByIndex(w.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV) {
		return w.trouble(ErrGone, "it was deleted, or moved to another network namespace; start again when it is back")
	}
	if err != nil {
		return nil
	}
	a := link.Attrs()
	w.adopt(a)
	switch {
	case w.program != 0 && (a.Xdp == nil || a.Xdp.ProgId != w.program):
		return w.trouble(ErrDetached, "somebody has detached it, and nothing is received without; start again")
	case a.RawFlags&unix.IFF_UP == 0:
		return w.trouble(ErrLinkDown, fmt.Sprintf("bring it up: ip link set %s up", c.Link))
	case a.RawFlags&unix.IFF_LOWER_UP == 0:
		return w.trouble(ErrNoCarrier, "check its cable, and what is at the other end of that")
	case a.MTU < c.MTU:
		return w.trouble(ErrShrunk, fmt.Sprintf("it is %d, and was %d when the device was opened: ip link set %s mtu %d", a.MTU, c.MTU, c.Link, c.MTU))
	case c.Addr.IsValid() && !w.has(link):
		return w.trouble(ErrNoAddress, fmt.Sprintf("%s was taken away; give it back (ip addr add), with the length of its prefix", c.Addr))
	}
	if n := w.added(); n > 0 {
		return w.trouble(ErrQueues, fmt.Sprintf("there are %d more than when it was opened, and what comes in on them is lost: take them back (ethtool -L), or start again", n))
	}
	if slept := suspended() - w.slept; c.XDP && slept > suspendedLeast {
		return w.trouble(ErrSuspended, fmt.Sprintf("for %v; some drivers forget the XDP program then (virtio_net): if nothing gets through, start again", slept.Round(time.Second)))
	}
	return nil
}

// suspendedLeast is more than the two clocks differ by because they are read one after
// the other.
const suspendedLeast = time.Second

// added returns how many receive queues the device has more than it had.
func (w *Watch) added() int {
	if w.queues == 0 {
		return 0
	}
	return w.config.Queues.Count() - w.queues
}

func (w *Watch) trouble(reason error, remedy string) *Trouble {
	return &Trouble{Link: w.config.Link, Reason: reason, Remedy: remedy}
}

// has reports whether the device has its address.
func (w *Watch) has(link netlink.Link) bool {
	addrs, err := w.kernel.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return true // unknown
	}
	for _, a := range addrs {
		if addr, ok := netip.AddrFromSlice(a.IP); ok && addr.Unmap() == w.config.Addr {
			return true
		}
	}
	return false
}

// tell is the goroutine of Start.
func (w *Watch) tell(changed func(*Trouble)) {
	defer close(w.ended)
	events := make(chan struct{}, 1)
	go w.hear(events)
	var told error // the reason that changed has heard of
	var lasted time.Duration
	for {
		t := w.Now()
		if t != nil && t.Reason != told && !t.Final() {
			if !w.rest(w.config.Delay, nil) {
				return
			}
			if again := w.Now(); reasonOf(again) != t.Reason {
				continue
			}
			lasted = w.config.Delay
		}
		wait := lookEvery
		if t != nil && w.config.Limit > 0 {
			if t.lasting = lasted >= w.config.Limit; !t.lasting {
				wait = min(wait, w.config.Limit-lasted)
			}
		}
		if reason := reasonOf(t); reason != told || t != nil && t.lasting {
			told = reason
			changed(t)
		}
		lasted += wait // more than it was if the device has changed meanwhile
		if !w.rest(wait, events) {
			return
		}
	}
}

// rest waits for a while, or until the device has changed. It returns false when the
// watch is closed.
func (w *Watch) rest(d time.Duration, events <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-events:
	case <-w.closed:
		return false
	}
	return true
}

// hear puts a token into events when the kernel announces something about the device,
// until the watch is closed.
func (w *Watch) hear(events chan<- struct{}) {
	for {
		msgs, _, err := w.events.Receive()
		if err != nil && !errors.Is(err, unix.ENOBUFS) { // else announcements were lost
			return
		}
		ours := err != nil
		for _, m := range msgs { // struct ifinfomsg and ifaddrmsg have the index at the same place
			ours = ours || len(m.Data) >= 8 && binary.NativeEndian.Uint32(m.Data[4:]) == uint32(w.index)
		}
		if ours {
			select {
			case events <- struct{}{}:
			default:
			}
		}
	}
}

func reasonOf(t *Trouble) error {
	if t == nil {
		return nil
	}
	return t.Reason
}
