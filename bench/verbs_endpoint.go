package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/verbs"
)

// endpoint is what all tests of verbs have in common: a context with one queue
// pair (over rc one for each peer), one memory region whose first half is sent
// from and whose second half is written to, and the way to the other end.
type endpoint struct {
	*End
	ctx   *verbs.Context
	pd    *verbs.PD
	qp    *verbs.QP
	qps   []*verbs.QP // all of them: over rc as many as there are peers
	sends *verbs.CQ
	recvs *verbs.CQ
	mr    *verbs.MR
	cm    *connector // over rc
	half  int        // bytes
	peer  card
	wr    verbs.SendWR
	rwr   verbs.RecvWR // all receives go into the second half
	wc    [32]verbs.WC

	posted    uint64 // send requests so far, which is the WRID of the last one
	completed uint64 // WRID of the last one that is known to be done
}

// card is what an end tells the other about itself.
type card struct {
	Addr   netip.AddrPort `json:"addr"`
	QPN    uint32         `json:"qpn"`
	RKey   uint32         `json:"rkey"`
	Source uint64         `json:"source"` // addresses of the halves of its region
	Target uint64         `json:"target"`
	MaxSeg int            `json:"max_seg"` // bytes of the largest message in one datagram
}

// openVerbs opens a test of verbs.
func openVerbs(e *End, c Case) (Bench, error) {
	if e.Spec.Peers > 1 && !e.Spec.rc() {
		return openPeers(e)
	}
	p, err := openEndpoint(e, c)
	if err != nil {
		return nil, err
	}
	b, err := p.open(c)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return b, nil
}

// open finds the other end, and returns the test that runs over p. Over connections
// receives are posted before there is one that could miss them.
func (p *endpoint) open(c Case) (b Bench, err error) {
	rc := p.Spec.rc()
	if rc {
		if p.cm, err = openConnector(p); err == nil {
			err = p.introduce()
		}
	} else {
		err = p.meet()
	}
	if err != nil {
		return nil, err
	}
	if b, err = p.test(c); err != nil || !rc {
		return b, err
	}
	return b, p.cm.connect()
}

// test returns the test that runs over p.
func (p *endpoint) test(c Case) (Bench, error) {
	switch rc := p.Spec.rc(); {
	case p.Spec.countsArrivals():
		return newLossyTest(p, c)
	case c.Family == Send && rc && !c.Kind.Latency() && c.Kind != Duplex:
		return newCreditTest(p)
	case c.Family == Send:
		return newSendTest(p)
	case c.Family == Write && rc:
		return &confirmedWrites{writeTest{endpoint: p}}, nil
	case c.Family == Write:
		return &writeTest{endpoint: p}, nil
	case c.Family == Read:
		return &readTest{endpoint: p}, nil
	}
	return newAtomicTest(p)
}

// access is what the region of a test must grant: over connections, in streams of Sends
// the server writes to the client, and the client reads what it has written.
var access = map[Family]verbs.Access{
	Send:   verbs.LocalWrite | verbs.RemoteWrite,
	Write:  verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead,
	Read:   verbs.LocalWrite | verbs.RemoteRead,
	Atomic: verbs.LocalWrite | verbs.RemoteAtomic,
	Record: verbs.LocalWrite | verbs.RemoteWrite,
}

// openEndpoint opens the device and makes everything that is local.
func openEndpoint(e *End, c Case) (*endpoint, error) {
	ctx, err := openContext(e)
	if err != nil {
		return nil, err
	}
	return newEndpoint(e, c, ctx)
}

// newEndpoint makes an endpoint on a context, which it takes over.
func newEndpoint(e *End, c Case, ctx *verbs.Context) (*endpoint, error) {
	p := &endpoint{End: e, ctx: ctx}
	if err := p.make(e.depths(c), access[c.Family]); err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	return p, nil
}

// depths are the sizes of a queue pair.
type depths struct{ send, recv int }

// datagramReceives is more than the messages of UD that may arrive in one step
// of the engine: small ones share datagrams, 300 of 8 bytes at MTU 9000, and
// none waits for a receive. With several peers fewer share one.
const (
	datagramReceives = 32 << 10
	peerReceives     = 4 << 10
)

// depths returns how many requests may be posted. A ping-pong has one message
// under way; longer queues would only push each other out of the cache.
func (e *End) depths(c Case) depths {
	switch {
	case c.Kind.Latency():
		return depths{2 * signalEvery, 2 * signalEvery}
	case e.Spec.rc():
		return depths{max(e.Spec.Window, 2*signalEvery), e.Spec.Window}
	case e.Spec.countsArrivals():
		return depths{MaxWindow * e.Spec.Peers, max(datagramReceives/e.Spec.Peers, peerReceives)}
	}
	return depths{MaxWindow * e.Spec.Peers, MaxWindow}
}

func (p *endpoint) make(depth depths, granted verbs.Access) (err error) {
	if p.pd, err = p.ctx.AllocPD(); err != nil {
		return err
	}
	pairs := 1
	if p.Spec.rc() {
		pairs = p.Spec.Peers
	}
	if p.sends, err = p.ctx.CreateCQ(verbs.CQInit{Depth: pairs * depth.send}); err != nil {
		return err
	}
	if p.recvs, err = p.ctx.CreateCQ(verbs.CQInit{Depth: pairs * depth.recv}); err != nil {
		return err
	}
	for range pairs {
		qp, err := p.pd.CreateQP(verbs.QPInit{
			Type: qpTypes[p.Spec.Transport], SendCQ: p.sends, RecvCQ: p.recvs,
			Cap:    verbs.QPCap{MaxSendWR: depth.send, MaxRecvWR: depth.recv},
			Record: verbs.RecordConfig{Deadline: recordDeadline},
			// Both ends send at once, and no credits say when: TCP holds them back.
			RecvWait: p.Spec.rc() && p.Spec.duplex(),
		})
		if err != nil {
			return err
		}
		p.qps = append(p.qps, qp)
	}
	p.qp = p.qps[0]
	p.half = (max(slices.Max(p.Spec.Sizes), atomicSize) + mem.FrameSize - 1) &^ (mem.FrameSize - 1)
	arena := p.ctx.Arena()
	addr, err := arena.Alloc(2*p.half, mem.FrameSize)
	if err != nil {
		return err
	}
	if p.mr, err = p.pd.RegMR(arena.At(addr, 2*p.half), granted); err != nil {
		return err
	}
	p.rwr.NumSGE, p.rwr.SGL[0] = 1, p.mr.SGE(p.half, p.half)
	return nil
}

// qpTypes are the types of queue pairs by Spec.Transport.
var qpTypes = map[string]verbs.QPType{"rd": verbs.RD, "ud": verbs.UD, "rc": verbs.RC}

// introduce exchanges cards with the other end.
func (p *endpoint) introduce() (err error) {
	if err := p.show(0); err != nil {
		return err
	}
	if err := p.Pair.Fence(); err != nil {
		return err
	}
	p.peer, err = p.card(0)
	return err
}

// meet finds the way to the other end.
func (p *endpoint) meet() error {
	if err := p.introduce(); err != nil {
		return err
	}
	ah, err := p.pd.CreateAH(p.peer.Addr)
	if err != nil {
		return err
	}
	p.wr = verbs.SendWR{AH: ah, RemoteQPN: p.peer.QPN}
	return nil
}

// show tells the other end about the i-th endpoint of this one, with the next
// fence.
func (p *endpoint) show(i int) error {
	text, err := json.Marshal(card{
		Addr: p.ctx.Addr(), QPN: p.qp.Num(), RKey: p.mr.RKey(),
		Source: p.mr.Addr(), Target: p.mr.Addr() + uint64(p.half),
		MaxSeg: p.ctx.Attr().MaxSeg,
	})
	if err != nil {
		return err
	}
	return p.Pair.Put(fmt.Sprintf("endpoint %d", i), string(text))
}

// card returns what the other end showed.
func (p *endpoint) card(i int) (c card, err error) {
	text, err := p.Pair.peerValue(fmt.Sprintf("endpoint %d", i))
	if err != nil {
		return card{}, err
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return card{}, fmt.Errorf("the other end introduced itself as %q: %w", text, err)
	}
	return c, nil
}

// limit makes sure that every message fits one datagram, which is all that UD
// can send.
func (p *endpoint) limit() error {
	most := min(p.ctx.Attr().MaxSeg, p.peer.MaxSeg)
	tooLarge := func(n int) bool { return n > most }
	i := slices.IndexFunc(p.Spec.Sizes, tooLarge)
	if i < 0 {
		return nil
	}
	why := fmt.Sprintf("a Send over ud is one datagram, which holds %d bytes at MTU %d", most, p.Spec.MTU)
	if !p.Spec.Clip {
		return usagef("%s cannot send size %d: %s; use a larger MTU, --transport rd, or write_record tests, whose messages may be longer", p.Spec.Test, p.Spec.Sizes[i], why)
	}
	p.Spec.Sizes = slices.DeleteFunc(slices.Clone(p.Spec.Sizes), tooLarge)
	p.notes = append(p.notes, "larger sizes are left out: "+why)
	if len(p.Spec.Sizes) == 0 {
		return fmt.Errorf("%w: %s: %s: name some with --size", ErrNoSize, p.Spec.Test, why)
	}
	return nil
}

func (p *endpoint) Carrier() string {
	a := p.ctx.Attr()
	if p.Spec.rc() {
		return "verbs on " + a.StreamCarrier
	}
	return "verbs on " + a.Carrier
}

// Progress acknowledges what came last.
func (p *endpoint) Progress() { p.ctx.Engine().Step() }

func (p *endpoint) Close() error { return errors.Join(p.cm.close(), p.ctx.Close()) }
