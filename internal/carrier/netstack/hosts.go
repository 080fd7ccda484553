package netstack

import (
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/xwarp/xwarp/internal/carrier/inet"
)

// hosts knows the next hop to every host that we talk to. A host that calls us
// is asked for by a goroutine, and what we have for it waits meanwhile.
type hosts struct {
	resolver   inet.Resolver
	mail       *mail
	generation uint64
	byAddr     map[netip.Addr]*host
	lastAddr   netip.Addr // most packets go where the one before went
	last       *host
	asking     int // goroutines
	done       sync.WaitGroup
}

// host is one destination.
type host struct {
	hop     inet.Hop
	known   bool // hop can be used now
	asked   bool // a goroutine asks for it
	waiting []*stack.PacketBuffer
}

// Limits on questions for absent hosts that strangers can cause.
const (
	hostsMax   = 1 << 16
	askingMax  = 32
	waitingMax = 8 // packets that wait for one host
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
		at = &host{}
		h.byAddr[addr] = at
	}
	at.hop, at.known = hop, true
	return hop, nil
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
		at = &host{asked: true}
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
		h.last = nil
	} else if f.err == nil {
		at.hop, at.known = f.hop, true
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
			at.hop, at.known = hop, true
		} else if !at.asked {
			at.known = false
		}
	}
}
