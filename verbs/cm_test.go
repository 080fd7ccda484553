package verbs

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/iwarp/mpa"
)

// Arguments that make no sense are refused at once, and change nothing.
func TestCMID_refuses(t *testing.T) {
	addr := netip.MustParseAddrPort
	r := newCMRig(t)
	other := newCMRig(t)
	rd := &QP{ctx: r.ctx, typ: UD}
	for name, c := range map[string]struct {
		state IDState
		do    func(id *CMID) error
	}{
		"bind to nothing":          {IDIdle, func(id *CMID) error { return id.BindAddr(netip.AddrPort{}) }},
		"bind to a group":          {IDIdle, func(id *CMID) error { return id.BindAddr(addr("224.0.0.1:7")) }},
		"bind without IPv6":        {IDIdle, func(id *CMID) error { return id.BindAddr(addr("[::1]:7")) }},
		"resolve nothing":          {IDIdle, func(id *CMID) error { return id.ResolveAddr(netip.AddrPort{}, 0) }},
		"resolve anybody":          {IDIdle, func(id *CMID) error { return id.ResolveAddr(addr("0.0.0.0:7"), 0) }},
		"resolve no port":          {IDIdle, func(id *CMID) error { return id.ResolveAddr(addr("10.0.0.2:0"), 0) }},
		"resolve before time":      {IDIdle, func(id *CMID) error { return id.ResolveAddr(somePeer, -1) }},
		"resolve another family":   {IDBound, func(id *CMID) error { return id.ResolveAddr(addr("[::1]:7"), 0) }},
		"route before time":        {IDAddrResolved, func(id *CMID) error { return id.ResolveRoute(-1) }},
		"a second queue pair":      {IDRouteResolved, func(id *CMID) error { return id.CreateQP(r.pd, QPInit{SendCQ: r.cq, RecvCQ: r.cq}) }},
		"queue pair of type RD":    {IDIdle, func(id *CMID) error { return id.CreateQP(r.pd, QPInit{Type: RD, SendCQ: r.cq, RecvCQ: r.cq}) }},
		"queue pair without CQ":    {IDIdle, func(id *CMID) error { return id.CreateQP(r.pd, QPInit{}) }},
		"foreign domain":           {IDIdle, func(id *CMID) error { return id.CreateQP(other.pd, QPInit{SendCQ: r.cq, RecvCQ: r.cq}) }},
		"no domain":                {IDIdle, func(id *CMID) error { return id.CreateQP(nil, QPInit{SendCQ: r.cq, RecvCQ: r.cq}) }},
		"connect no queue pair":    {IDRouteResolved, func(id *CMID) error { id.QP = nil; return id.Connect(ConnParam{}) }},
		"connect UD":               {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{QP: rd}) }},
		"connect foreign":          {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{QP: other.newQP()}) }},
		"connect twice":            {IDRouteResolved, func(id *CMID) error { c, _ := r.established(true); return id.Connect(ConnParam{QP: c.QP}) }},
		"too many Reads":           {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{InitiatorDepth: maxReads + 1}) }},
		"too many Reads of theirs": {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{ResponderResources: -2}) }},
		"private data":             {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{PrivateData: make([]byte, 253)}) }},
		"private data 1":           {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{PrivateData: make([]byte, 257), Revision: 1}) }},
		"revision 3":               {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{Revision: 3}) }},
		"RTR in revision 1":        {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{Revision: 1, RTR: mpa.RTRRead}) }},
		"timeout":                  {IDRouteResolved, func(id *CMID) error { return id.Connect(ConnParam{Timeout: -1}) }},
		"accept no queue pair":     {IDAsked, func(id *CMID) error { return id.Accept(ConnParam{}) }},
		"accept private data":      {IDAsked, func(id *CMID) error { return id.Accept(ConnParam{QP: r.newQP(), PrivateData: make([]byte, 253)}) }},
		"accept too many Reads":    {IDAsked, func(id *CMID) error { return id.Accept(ConnParam{QP: r.newQP(), ResponderResources: 17}) }},
		"reject private data":      {IDAsked, func(id *CMID) error { return id.Reject(make([]byte, 253)) }},
	} {
		t.Run(name, func(t *testing.T) {
			id, _ := r.inState(c.state)
			if err := c.do(id); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v; want ErrInvalid", err)
			}
			r.expect(id, c.state)
			ok(t, id.Destroy())
		})
	}
}

// What is not wrong but cannot be had here is an event, as with rdma_cm.
func TestResolveAddr_noIPv6(t *testing.T) {
	r := newCMRig(t)
	id := r.newID()
	v6 := netip.MustParseAddrPort("[fd00::1]:7")
	ok(t, id.ResolveAddr(v6, 0))
	if e := r.event(id, CMAddrError); e.Err == nil {
		t.Error("no reason is given")
	}
	r.expect(id, IDIdle)
	r.carrier.ipv6 = true
	ok(t, id.ResolveAddr(v6, 0))
	r.event(id, CMAddrResolved)
	if id.PeerAddr() != v6 {
		t.Errorf("peer %v", id.PeerAddr())
	}
}

// The longest private data of each revision go through, both ways.
func TestPrivateData_longest(t *testing.T) {
	for revision, n := range map[uint8]int{1: 256, 2: 252} {
		r := newCMRig(t)
		private := make([]byte, n)
		for i := range private {
			private[i] = byte(i)
		}
		id, s := r.requesting(ConnParam{PrivateData: private, Revision: revision})
		_, carrier := r.listener(0)
		peer := carrier.connect()
		peer.feed(s.sent)
		e := r.event(nil, CMConnectRequest)
		if string(e.Param.PrivateData) != string(private) || e.Param.Revision != revision {
			t.Errorf("revision %d: %+v", revision, e)
		}
		if revision == 1 && (e.Param.InitiatorDepth != 0 || e.Param.ResponderResources != 0) {
			t.Errorf("revision 1 has no word for %+v", e.Param)
		}
		ok(t, e.ID.Accept(ConnParam{PrivateData: private, QP: r.newQP()}))
		r.event(e.ID, CMEstablished)
		s.feed(peer.sent)
		if e := r.event(id, CMEstablished); string(e.Param.PrivateData) != string(private) {
			t.Errorf("revision %d: %+v", revision, e)
		}
	}
}

// What both ends say of Reads, and what comes of it; see ConnParam.
func TestConnParam_depths(t *testing.T) {
	for _, c := range []struct{ ird, ord, peerIRD, peerORD, wantIRD, wantORD int }{
		{0, 0, 0, 0, 16, 16},
		{-1, -1, 0, 0, -1, -1},
		{0, 0, -1, -1, -1, -1},
		{4, 2, 16, 1, 1, 2},
		{4, 9, 3, 4, 4, 3},
	} {
		r := newCMRig(t)
		id, s := r.requesting(ConnParam{ResponderResources: c.ird, InitiatorDepth: c.ord})
		_, carrier := r.listener(0)
		peer := carrier.connect()
		peer.feed(s.sent)
		e := r.event(nil, CMConnectRequest)
		ok(t, e.ID.Accept(ConnParam{QP: r.newQP(), ResponderResources: c.peerIRD, InitiatorDepth: c.peerORD}))
		r.event(e.ID, CMEstablished)
		s.feed(peer.sent)
		if p := r.event(id, CMEstablished).Param; p.ResponderResources != c.wantIRD || p.InitiatorDepth != c.wantORD {
			t.Errorf("%+v: agreed on %d and %d", c, p.ResponderResources, p.InitiatorDepth)
		}
	}
}
