package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// N-tuple filters make a network card put the packets of a flow into a queue of
// our choice (ethtool --config-ntuple). They belong to the card and not to a
// process: a process that inserts one must remove it.

// Filter sends the packets to some ports of an address to a queue.
type Filter struct {
	Protocol uint8      `json:"protocol"` // unix.IPPROTO_UDP or IPPROTO_TCP
	Addr     netip.Addr `json:"addr"`     // destination, IPv4 or IPv6
	Port     uint16     `json:"port"`     // destination
	Mask     uint16     `json:"mask"`     // bits of the port that count
	Queue    int        `json:"queue"`
}

// sameFlow reports whether both match the same packets.
func (f Filter) sameFlow(g Filter) bool {
	g.Queue = f.Queue
	return f == g
}

// String describes f as ethtool's command line does.
func (f Filter) String() string {
	protocol := map[uint8]string{unix.IPPROTO_UDP: "udp", unix.IPPROTO_TCP: "tcp"}[f.Protocol]
	if f.Addr.Is4() {
		protocol += "4"
	} else {
		protocol += "6"
	}
	return fmt.Sprintf("flow-type %s dst-ip %v dst-port %d m %#x action %d", protocol, f.Addr, f.Port, ^f.Mask, f.Queue)
}

// Where things are in a struct ethtool_rxnfc of linux/ethtool.h, which contains a
// struct ethtool_rx_flow_spec, on machines of 64 bits.
const (
	nfcCommand  = 0
	nfcData     = 8
	nfcSpec     = 16 // flow_type
	nfcMatch    = nfcSpec + 4
	nfcMask     = nfcSpec + 76
	nfcRing     = nfcSpec + 152
	nfcLocation = nfcSpec + 160
	nfcCount    = 184
	nfcLocs     = 188
	nfcLen      = 192

	specLen = 52 // of what is matched, and of its mask

	// In a struct ethtool_tcpip4_spec.
	specDstAddr = 4
	specDstPort = 10

	// In a struct ethtool_tcpip6_spec.
	specDstAddr6 = 16
	specDstPort6 = 34
)

// Values of linux/ethtool.h.
const (
	flowTCPv4   = 1
	flowUDPv4   = 2
	flowTCPv6   = 5
	flowUDPv6   = 6
	locSpecial  = 1 << 31 // in the size of the table: the driver picks locations
	locAny      = 1<<32 - 1
	flagNTuple  = 1 << 27
	filtersMost = 1 << 20 // more is nonsense
)

var hostOrder = binary.NativeEndian

// nfcRequest returns a struct ethtool_rxnfc with room for locs locations.
func nfcRequest(command uint32, locs int) []byte {
	b := make([]byte, max(nfcLen, nfcLocs+4*locs))
	hostOrder.PutUint32(b[nfcCommand:], command)
	hostOrder.PutUint32(b[nfcCount:], uint32(locs))
	return b
}

// encode returns the request to insert f at a location.
func (f Filter) encode(location uint32) []byte {
	b := nfcRequest(unix.ETHTOOL_SRXCLSRLINS, 0)
	flow, addrAt, portAt := uint32(flowUDPv4), specDstAddr, specDstPort
	switch tcp, v6 := f.Protocol == unix.IPPROTO_TCP, f.Addr.Is6(); {
	case tcp && v6:
		flow, addrAt, portAt = flowTCPv6, specDstAddr6, specDstPort6
	case v6:
		flow, addrAt, portAt = flowUDPv6, specDstAddr6, specDstPort6
	case tcp:
		flow = flowTCPv4
	}
	hostOrder.PutUint32(b[nfcSpec:], flow)
	for i, octet := range f.Addr.AsSlice() {
		b[nfcMatch+addrAt+i], b[nfcMask+addrAt+i] = octet, 0xff
	}
	binary.BigEndian.PutUint16(b[nfcMatch+portAt:], f.Port)
	binary.BigEndian.PutUint16(b[nfcMask+portAt:], f.Mask)
	hostOrder.PutUint64(b[nfcRing:], uint64(f.Queue))
	hostOrder.PutUint32(b[nfcLocation:], location)
	return b
}

// decodeFilter returns the filter in an answer of the card. ok is false when it is
// of a kind that we never insert.
func decodeFilter(b []byte) (f Filter, ok bool) {
	portAt := specDstPort
	flow := hostOrder.Uint32(b[nfcSpec:])
	switch flow {
	case flowTCPv4, flowUDPv4:
		f.Addr = netip.AddrFrom4([4]byte(b[nfcMatch+specDstAddr:]))
	case flowTCPv6, flowUDPv6:
		f.Addr, portAt = netip.AddrFrom16([16]byte(b[nfcMatch+specDstAddr6:])), specDstPort6
	default:
		return f, false
	}
	if f.Protocol = unix.IPPROTO_UDP; flow == flowTCPv4 || flow == flowTCPv6 {
		f.Protocol = unix.IPPROTO_TCP
	}
	f.Port = binary.BigEndian.Uint16(b[nfcMatch+portAt:])
	f.Mask = binary.BigEndian.Uint16(b[nfcMask+portAt:])
	ring := hostOrder.Uint64(b[nfcRing:])
	f.Queue = int(uint32(ring))
	location := hostOrder.Uint32(b[nfcLocation:])
	// Nothing else may be matched: what we would have encoded is the same.
	same := f.encode(location)
	return f, ring>>32 == 0 && slices.Equal(same[nfcMatch:][:specLen], b[nfcMatch:][:specLen]) &&
		slices.Equal(same[nfcMask:][:specLen], b[nfcMask:][:specLen])
}

// ethtool asks something of a network card: request is a structure of
// linux/ethtool.h, which the answer overwrites.
type ethtool func(request []byte) error

// table is what is in a card.
type table struct {
	size    uint32 // locations, where we pick them
	anyFree bool   // the driver picks them
	used    map[uint32]Filter
	foreign map[uint32]bool // filters of other kinds
}

// list reads the table of filters.
func (e ethtool) list() (*table, error) {
	b := nfcRequest(unix.ETHTOOL_GRXCLSRLCNT, 0)
	if err := e(b); err != nil {
		return nil, err
	}
	n, size := hostOrder.Uint32(b[nfcCount:]), uint32(hostOrder.Uint64(b[nfcData:]))
	if n > filtersMost {
		return nil, fmt.Errorf("the card tells of %d filters", n)
	}
	t := &table{size: size &^ locSpecial, anyFree: size&locSpecial != 0, used: map[uint32]Filter{}, foreign: map[uint32]bool{}}
	b = nfcRequest(unix.ETHTOOL_GRXCLSRLALL, int(n))
	if err := e(b); err != nil {
		return nil, err
	}
	if t.size == 0 {
		t.size = uint32(hostOrder.Uint64(b[nfcData:])) &^ locSpecial
	}
	for i := range min(n, hostOrder.Uint32(b[nfcCount:])) {
		location := hostOrder.Uint32(b[nfcLocs+4*i:])
		rule := nfcRequest(unix.ETHTOOL_GRXCLSRULE, 0)
		hostOrder.PutUint32(rule[nfcLocation:], location)
		if err := e(rule); err != nil {
			return nil, err
		}
		if f, ok := decodeFilter(rule); ok {
			t.used[location] = f
		} else {
			t.foreign[location] = true
		}
	}
	return t, nil
}

// free returns where to insert a filter. The last places are those that come last
// where several filters match, as ethtool chooses them.
func (t *table) free() (location uint32, ok bool) {
	if t.anyFree {
		return locAny, true
	}
	for at := t.size; at > 0; at-- {
		if _, used := t.used[at-1]; !used && !t.foreign[at-1] {
			return at - 1, true
		}
	}
	return 0, false
}

// conflict finds a filter in the table that is for the packets of one of filters.
func (t *table) conflict(filters []Filter) error {
	for at, g := range t.used {
		if slices.ContainsFunc(filters, g.sameFlow) {
			return fmt.Errorf("filter %d is for the same packets (ethtool -N DEVICE delete %d, or xinfo --clean if xrun was killed): %w", at, at, unix.EEXIST)
		}
	}
	return nil
}

// insert adds a filter.
func (e ethtool) insert(t *table, f Filter) error {
	at, ok := t.free()
	if !ok {
		return fmt.Errorf("all %d places for filters are taken: %w", t.size, unix.ENOSPC)
	}
	b := f.encode(at)
	if err := e(b); err != nil {
		return fmt.Errorf("%v: %w", f, err)
	}
	t.used[hostOrder.Uint32(b[nfcLocation:])] = f
	return nil
}

// insertAll adds filters until one is refused.
func (e ethtool) insertAll(t *table, filters []Filter) error {
	for _, f := range filters {
		if err := e.insert(t, f); err != nil {
			return err
		}
	}
	return nil
}

// remove takes those of filters out that are there. It returns how many, and how
// many others there are.
func (e ethtool) remove(filters []Filter) (n, others int, err error) {
	t, err := e.list()
	if err != nil {
		return 0, 0, err
	}
	others = len(t.foreign)
	var errs []error
	for at, f := range t.used {
		if !slices.Contains(filters, f) {
			others++
			continue
		}
		b := nfcRequest(unix.ETHTOOL_SRXCLSRLDEL, 0)
		hostOrder.PutUint32(b[nfcLocation:], at)
		switch err := e(b); {
		case err == nil:
			n++
		case !errors.Is(err, unix.ENOENT): // another process was faster
			errs = append(errs, fmt.Errorf("%v: %w", f, err))
		}
	}
	return n, others, errors.Join(errs...)
}

// flags returns what of a card is switched on, as far as it was known when there
// were few such switches (ETHTOOL_GFLAGS).
func (e ethtool) flags() (uint32, error) {
	b := make([]byte, 8) // struct ethtool_value
	hostOrder.PutUint32(b, unix.ETHTOOL_GFLAGS)
	err := e(b)
	return hostOrder.Uint32(b[4:]), err
}

// filtering reports whether filters are in effect (ethtool -K DEVICE ntuple on).
func (e ethtool) filtering() (bool, error) {
	flags, err := e.flags()
	return flags&flagNTuple != 0, err
}

// setFiltering changes that.
func (e ethtool) setFiltering(on bool) error {
	b := make([]byte, 8)
	hostOrder.PutUint32(b, unix.ETHTOOL_GFLAGS)
	if err := e(b); err != nil {
		return err
	}
	flags := hostOrder.Uint32(b[4:]) &^ flagNTuple
	if on {
		flags |= flagNTuple
	}
	hostOrder.PutUint32(b, unix.ETHTOOL_SFLAGS)
	hostOrder.PutUint32(b[4:], flags)
	return e(b)
}
