package mpa

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/iwarp"
)

// Initiator is the active end of a start-up: Start, then Reply until it has an
// answer.
type Initiator struct {
	c Config // with its defaults
}

// Start builds the Request: what to send first. At most MaxPrivateSent bytes of
// private data, 4 fewer in revision 2. An error is one of the configuration.
func (i *Initiator) Start(c Config, private []byte) (request []byte, err error) {
	c.Revision = cmp.Or(c.Revision, 2)
	if c.RTR&RTRRead != 0 && c.ORD == 0 {
		c.ORD = 1 // the first message is a Read
	}
	switch {
	case c.Revision > 2:
		return nil, fmt.Errorf("mpa: revision %d: there are 1 and 2", c.Revision)
	case c.Revision == 1 && c.RTR != 0:
		return nil, fmt.Errorf("mpa: peer-to-peer mode (RTR) takes revision 2")
	case c.RTR&^rtrAll != 0:
		return nil, fmt.Errorf("mpa: RTR %#x: there are Send, Write and Read", uint8(c.RTR))
	}
	if err := checkDepths(c); err != nil {
		return nil, err
	}
	enhanced := c.Revision == 2
	if err := checkPrivate(private, enhanced); err != nil {
		return nil, err
	}
	i.c = c
	f := Frame{Revision: c.Revision, Markers: c.Markers, CRC: c.CRC, Enhanced: enhanced, Private: private}
	f.IRD, f.ORD, f.PeerToPeer, f.RTR = c.IRD, c.ORD, c.RTR != 0, c.RTR
	return f.Append(nil), nil
}

func checkDepths(c Config) error {
	if c.IRD > MaxDepth || c.ORD > MaxDepth {
		return fmt.Errorf("mpa: IRD %d, ORD %d: at most %d", c.IRD, c.ORD, MaxDepth)
	}
	return nil
}

// Reply looks at what has arrived since, all of it. n is the length of the
// Reply; what is behind it are FPDUs. 0 without an error: more has to come.
// An error is a *RejectedError or a *ProtocolError; a then says whether what is
// sent behind it, a Terminate, has CRCs and markers. b is not kept.
func (i *Initiator) Reply(b []byte) (n int, a Agreed, err error) {
	var f Frame
	n, err = f.Parse(b, true)
	if perr := (*ProtocolError)(nil); errors.As(err, &perr) {
		perr.Terminate = true // as siw: the peer may be in full operation
	}
	a = Agreed{CRC: f.CRC || i.c.CRC, SendMarkers: f.Markers}
	if n == 0 || err != nil {
		return 0, a, err
	}
	private := slices.Clone(f.Private)
	enhanced := i.c.Revision == 2
	switch {
	case f.Reject: // before the rest: an end that rejects may have an older revision only
		return 0, a, &RejectedError{Private: private}
	case f.Revision != i.c.Revision:
		return 0, a, invalid("the peer answers with revision %d to revision %d: set the revision to that", f.Revision, i.c.Revision)
	case f.Enhanced != enhanced:
		return 0, a, invalid("the peer answers an enhanced Request (S) without IRD and ORD: set the revision to 1")
	}
	a = Agreed{
		Revision: f.Revision, CRC: f.CRC || i.c.CRC, SendMarkers: f.Markers, RecvMarkers: i.c.Markers,
		IRD: i.c.IRD, ORD: i.c.ORD, Private: private,
	}
	if enhanced {
		err = i.enhanced(&f, &a)
	}
	if err != nil {
		return 0, a, err
	}
	return n, a, nil
}

// enhanced agrees on what RFC 6581 adds (its sections 9.1 and 9.2). The peer
// is in full operation already: what does not suit is answered by a Terminate.
func (i *Initiator) enhanced(f *Frame, a *Agreed) error {
	a.ORD = min(i.c.ORD, f.IRD)
	if f.ORD != DepthUnlimited {
		if f.ORD > i.c.IRD {
			return &ProtocolError{
				Cause: iwarp.LLPResources, Terminate: true,
				What: fmt.Sprintf("the peer wants %d Reads outstanding at us, our IRD is %d: raise it", f.ORD, i.c.IRD),
			}
		}
		a.IRD = f.ORD
	}
	if i.c.RTR == 0 {
		return nil
	}
	both := f.RTR & i.c.RTR
	if a.ORD == 0 {
		both &^= RTRRead
	}
	if a.RTR = preferred(both); a.RTR == 0 {
		return &ProtocolError{
			Cause: iwarp.LLPNoRTR, Terminate: true,
			What: fmt.Sprintf("in peer-to-peer mode we begin with %v, the peer waits for %v", i.c.RTR, f.RTR),
		}
	}
	return nil
}

// preferred picks one of a set. A Write comes first, for it takes nothing from
// the receiver; a Send would take a posted receive.
func preferred(r RTR) RTR {
	for _, kind := range [...]RTR{RTRWrite, RTRRead, RTRSend} {
		if r&kind != 0 {
			return kind
		}
	}
	return 0
}

// Responder is the passive end of a start-up: Request until it has arrived,
// then Accept or Reject.
type Responder struct {
	// Peer is what the initiator wants: its private data, its IRD and ORD,
	// whether it asks for CRCs and for markers (SendMarkers: ours), its kinds
	// of first message. For the end that decides. Valid once Request has returned
	// n > 0. Revision 1 has no IRD and ORD: 0.
	Peer Agreed
	req  Frame // without private data
}

// Request looks at what has arrived, all of it; n as in Initiator.Reply.
// With an error, which is a *ProtocolError, reply is what to send before the
// connection is closed, if anything. b is not kept.
func (r *Responder) Request(b []byte) (n int, reply []byte, err error) {
	var f Frame
	n, err = f.Parse(b, false)
	switch {
	case err != nil:
		return 0, refuse(&f), err
	case n == 0:
		return 0, nil, nil
	case f.Revision != 1 && f.Revision != 2:
		// Revision 0 is the RDMA Consortium's, with other versions of DDP and
		// RDMAP. RFC 5044, appendix C: an RNIC that does not speak it closes.
		return 0, nil, invalid("the peer speaks MPA of revision %d, not 1 or 2", f.Revision)
	case len(b) > n:
		return 0, nil, invalid("the peer sends before it has our Reply")
	}
	r.Peer = Agreed{
		Revision: f.Revision, CRC: f.CRC, SendMarkers: f.Markers, IRD: f.IRD, ORD: f.ORD,
		RTR: offered(&f), Private: slices.Clone(f.Private),
	}
	f.Private = nil
	r.req = f
	return n, nil, nil
}

// refuse answers a Request that has flag S and no IRD and ORD. The answer has
// no S: a siw that finds S without 4 bytes of private data crashes.
func refuse(f *Frame) []byte {
	if !f.Enhanced {
		return nil
	}
	reply := Frame{Reply: true, Revision: f.Revision, CRC: f.CRC, Reject: true}
	return reply.Append(nil)
}

// offered returns the kinds of first message that an initiator can send, 0 in
// client-server mode.
func offered(f *Frame) RTR {
	if !f.PeerToPeer {
		return 0
	}
	return f.RTR
}

// Accept builds the Reply that accepts. The ORD is at most the peer's IRD; the
// IRD is that of c, and the peer limits its ORD to it. An error is one of the
// configuration: Accept can be called again.
func (r *Responder) Accept(c Config, private []byte) (reply []byte, a Agreed, err error) {
	if err := checkDepths(c); err != nil {
		return nil, a, err
	}
	if err := checkPrivate(private, r.req.Enhanced); err != nil {
		return nil, a, err
	}
	a = Agreed{
		Revision: r.req.Revision, CRC: r.req.CRC || c.CRC, SendMarkers: r.req.Markers, RecvMarkers: c.Markers,
		IRD: c.IRD, ORD: c.ORD, Private: r.Peer.Private,
	}
	f := Frame{Reply: true, Revision: a.Revision, Markers: c.Markers, CRC: a.CRC, Enhanced: r.req.Enhanced, Private: private}
	if f.Enhanced {
		a.ORD = min(c.ORD, r.req.IRD)
		if r.req.PeerToPeer {
			a.RTR = r.first(c.RTR)
		}
		if a.RTR == RTRRead {
			a.IRD = max(a.IRD, 1)
		}
		f.IRD, f.ORD, f.PeerToPeer, f.RTR = a.IRD, a.ORD, r.req.PeerToPeer, a.RTR
	}
	return f.Append(nil), a, nil
}

// first picks the kind of message that the initiator is to begin with. When it
// can send none of those that we take, it gets one of ours to hear, and
// answers with a Terminate (RFC 6581, section 9.2).
func (r *Responder) first(take RTR) RTR {
	if take &= rtrAll; take == 0 {
		take = rtrAll
	}
	if both := preferred(take & r.req.RTR); both != 0 {
		return both
	}
	return preferred(take)
}

// Reject builds the Reply that rejects. What the initiator asked for goes back
// as it would have been granted, as siw does.
func (r *Responder) Reject(private []byte) (reply []byte, err error) {
	if err := checkPrivate(private, r.req.Enhanced); err != nil {
		return nil, err
	}
	f := Frame{Reply: true, Revision: r.req.Revision, CRC: r.req.CRC, Reject: true, Enhanced: r.req.Enhanced, Private: private}
	f.IRD, f.ORD, f.PeerToPeer = r.req.ORD, r.req.IRD, r.req.PeerToPeer
	if f.PeerToPeer {
		f.RTR = r.first(rtrAll)
	}
	return f.Append(nil), nil
}
