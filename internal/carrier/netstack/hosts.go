package netstack

import (
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// hosts knows the next hop to every host that we talk to. A host that calls us
// is asked for by a goroutine, and what we have for it waits meanwhile.
//
// The kernel may be wrong about a neighbour: another one has lied about its Ethernet
// address, or a host with several cards has answered for one on another. So the address that a
// host's own frames come from is remembered. When nothing has come from the one in use for a
// while, though something was sent there, the other one is tried, and so on in turns, and the
// kernel asks the neighbour again.
type hosts struct {
	resolver   inet.Resolver
	mail       *mail
	generation uint64
	byAddr     map[netip.Addr]*host
	lastAddr   netip.Addr // most packets go where the one before went
	last       *host
	heardAddr  netip.Addr // most frames come from where the one before came from
	heardHost  *host
	asking     int // goroutines
	done       sync.WaitGroup
}

// host is one destination.
type host struct {
	hop     inet.Hop
	mac     inet.MAC // to send to: that of hop, or the station
	station inet.MAC // that its last frame came from; zero: none
	own     bool     // mac is the station
	known   bool     // hop can be used now
	asked   bool     // a goroutine asks for it
	waiting []*stack.PacketBuffer

	since   mono.Time     // when it was first waited for that something comes from mac; 0: it has
	timeout mono.Duration // how long it is waited for
}

// Limits on questions for absent hosts that strangers can cause.
const (
	hostsMax   = 1 << 16
	askingMax  = 32
	waitingMax = 8 // packets that wait for one host
)

// How long nothing may come from a host until its Ethernet address is doubted. That
// doubles each time.
const (
	timeoutFirst = 200 * mono.Millisecond
	timeoutMost  = 10 * mono.Second
)

func (h *hosts) init(r inet.Resolver, m *mail) {
	h.resolver, h.mail = r, m
	h.generation = r.Generation()
	h.byAddr = map[netip.Addr]*host{}
}

// resolve finds the next hop to a host that we call.
func (h *hosts) resolve(addr netip.Addr) (inet.Hop, error) {
	hop, err := h.resolver.Resolve(addr)
	if err != nil {
		return hop, err
	}
	at := h.byAddr[addr]
	if at == nil {
		at = &host{timeout: timeoutFirst}
		h.byAddr[addr] = at
	}
	at.learn(hop)
	return hop, nil
}

// learn takes in the next hop that the kernel has.
func (at *host) learn(hop inet.Hop) {
	at.hop, at.known = hop, true
	at.choose()
}

// choose sets the Ethernet address to send to. Behind a router it is always the router's.
func (at *host) choose() {
	at.own = at.own && at.station != at.hop.MAC && !at.hop.Via.IsValid()
	if at.mac = at.hop.MAC; at.own {
		at.mac = at.station
	}
}

// heard notes that a frame of a host has come from a station.
func (h *hosts) heard(addr netip.Addr, station inet.MAC, now mono.Time) {
	at := h.heardHost
	if at == nil || addr != h.heardAddr {
		if at = h.byAddr[addr]; at == nil {
			return
		}
		h.heardAddr, h.heardHost = addr, at
	}
	if station != at.station && !station.Group() {
		at.station = station
		at.choose()
	}
	if station != at.mac && !at.hop.Via.IsValid() {
		at.waits(now)
		return
	}
	at.since, at.timeout = 0, timeoutFirst
}

// waits notes that something is to come from the address that is sent to.
func (at *host) waits(now mono.Time) {
	if at.since == 0 {
		at.since = now
	}
}

// sends notes that a packet goes to a host now, which may have to answer it.
func (h *hosts) sends(addr netip.Addr, at *host, answer bool, now mono.Time) {
	if answer {
		at.waits(now)
	}
	if at.since == 0 || now.Sub(at.since) < at.timeout {
		return
	}
	at.since, at.timeout = now, min(2*at.timeout, timeoutMost)
	at.own = !at.own && at.station != inet.MAC{}
	at.choose()
	h.resolver.Doubt(addr)
}

// get returns the host that a packet goes to, or nil when too many are known.
func (h *hosts) get(addr netip.Addr) *host {
	if h.last != nil && addr == h.lastAddr {
		return h.last
	}
	at := h.byAddr[addr]
	if at == nil {
		if len(h.byAddr) >= hostsMax || h.asking >= askingMax {
			return nil
		}
		at = &host{asked: true, timeout: timeoutFirst}
		h.byAddr[addr] = at
		h.ask(addr)
	}
	h.lastAddr, h.last = addr, at
	return at
}

// ask asks the kernel without making the engine wait.
func (h *hosts) ask(addr netip.Addr) {
	h.asking++
	h.done.Go(func() {
		hop, err := h.resolver.Resolve(addr)
		h.mail.answer(found{addr, hop, err})
	})
}

// answered notes what was found out, and returns the packets that waited for it.
func (h *hosts) answered(f found) []*stack.PacketBuffer {
	h.asking--
	at := h.byAddr[f.addr]
	waiting := at.waiting
	at.waiting, at.asked = nil, false
	if f.err != nil && !at.known {
		delete(h.byAddr, f.addr)
		h.last, h.heardHost = nil, nil
	} else if f.err == nil {
		at.learn(f.hop)
	}
	return waiting
}

// follow reads the next hops again when some have changed.
func (h *hosts) follow() {
	g := h.resolver.Generation()
	if g == h.generation {
		return
	}
	h.generation = g
	for addr, at := range h.byAddr {
		if hop, ok := h.resolver.Current(addr); ok {
			at.learn(hop)
		} else if !at.asked && !at.own { // its own address may do while the kernel asks
			at.known = false
		}
	}
}
