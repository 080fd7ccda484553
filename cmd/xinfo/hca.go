package main

import (
	"strconv"

	"github.com/xwarp/xwarp/verbs"
	"github.com/xwarp/xwarp/xdp"
)

// hca is everything about one device, called as ibv_devinfo calls it where
// that knows of it, and as AF_XDP's probe does otherwise.
type hca struct {
	xdp.Report
	Usable       bool           `json:"usable"`
	Transport    string         `json:"transport"`
	FWVer        string         `json:"fw_ver"`
	NodeGUID     string         `json:"node_guid"`
	SysImageGUID string         `json:"sys_image_guid"`
	VendorID     uint64         `json:"vendor_id"`
	VendorPartID uint64         `json:"vendor_part_id"`
	HWVer        uint64         `json:"hw_ver"`
	PhysPortCnt  int            `json:"phys_port_cnt"`
	Attr         map[string]any `json:"attr,omitempty"` // see attributes; absent without an address
	Ports        []port         `json:"ports"`

	attr verbs.DeviceAttr
}

// port is a port of a device; ours have one.
type port struct {
	Port      int       `json:"port"`
	State     string    `json:"state"`
	MaxMTU    int       `json:"max_mtu"`    // bytes
	ActiveMTU int       `json:"active_mtu"` // bytes
	LinkLayer string    `json:"link_layer"`
	GIDs      []string  `json:"gids"` // IP addresses, each with the length of its network part
	Carriers  []carrier `json:"carriers"`
}

// States of a port (ibv_query_port(3)).
var portStates = map[string]int{"PORT_DOWN": 1, "PORT_ACTIVE": 4}

// machine is where the answers come from: the kernel, or a test.
type machine struct {
	devices func() ([]string, error)
	probe   func(string) (xdp.Report, error)
	try     func(string) (xdp.Report, error)
	nic     func(string) (nic, error)
	query   func(string, nic) (verbs.DeviceAttr, bool, error)
}

// hca finds out about a device: everything, or all but its attributes. It sends
// nothing.
func (m machine) hca(name string, everything bool) (hca, error) {
	r, err := m.probe(name)
	if err != nil {
		return hca{}, err
	}
	n, err := m.nic(name)
	if err != nil {
		return hca{}, err
	}
	h := hca{
		Report: r, Usable: r.Usable(), Transport: "iWARP", FWVer: version(),
		NodeGUID: guid(n.mac), SysImageGUID: guid(n.mac),
		VendorID: n.vendor.id, VendorPartID: n.vendor.part, HWVer: n.vendor.revision,
		PhysPortCnt: 1,
	}
	p := port{Port: 1, State: "PORT_DOWN", MaxMTU: n.maxMTU, ActiveMTU: n.mtu, LinkLayer: "Ethernet", GIDs: []string{}, Carriers: carriersOf(r, n)}
	if n.active {
		p.State = "PORT_ACTIVE"
	}
	for _, a := range n.addrs {
		p.GIDs = append(p.GIDs, a.String())
	}
	h.Ports = []port{p}
	if !everything {
		return h, nil
	}
	var ok bool
	if h.attr, ok, err = m.query(name, n); err != nil || !ok {
		return h, err
	}
	h.Attr = map[string]any{}
	for _, a := range attributes(h.attr) {
		h.Attr[a.name] = a.value
	}
	return h, nil
}

// attribute is one that ibv_devinfo prints with -v.
type attribute struct {
	name  string
	value any
	text  string
}

// attributes returns all that a device says of itself, with the names of
// ibv_query_device(3) for what that has too.
func attributes(a verbs.DeviceAttr) []attribute {
	atomics, text := "ATOMIC_HCA", "ATOMIC_HCA (1)"
	if a.AtomicAtomic {
		atomics, text = "ATOMIC_GLOB", "ATOMIC_GLOB (2)"
	}
	number := func(name string, n int) attribute { return attribute{name, n, strconv.Itoa(n)} }
	return []attribute{
		{"max_msg_sz", a.MaxMsg, "0x" + strconv.FormatInt(int64(a.MaxMsg), 16)},
		number("max_ud_msg_sz", a.MaxSeg),
		number("max_datagram", a.MTU),
		number("max_qp", a.MaxQP),
		number("max_qp_wr", a.MaxQPWR),
		number("max_sge", a.MaxSGE),
		number("max_inline_data", a.MaxInline),
		number("max_cqe", a.MaxCQE),
		number("max_mr", a.MaxMR),
		number("max_qp_rd_atom", a.MaxQPRdAtom),
		{"atomic_cap", atomics, text},
		number("max_mw", a.MaxMW),
		number("max_mcast_grp", a.MaxMcastGrp),
		number("max_srq_wr", a.MaxSRQWR),
	}
}
