package conform

import (
	"bytes"
	"io"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/fault"
	"github.com/xwarp/xwarp/internal/carrier/secure"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/verbs"
)

// rig is a network of hosts with a queue pair on each, all known to each other.
type rig struct {
	t      *testing.T
	config *VerbsConfig
	what   *verbsCase
	typ    verbs.QPType
	net    Net
	hosts  []*host
	idle   int              // turns in a row in which nothing happened
	wrid   uint64           // of the last request
	dest   map[uint64]*host // RC: to whom a request is, by its number
	opened uint32           // contexts, in all
	job    uint64           // number of the job, which has a key and a secret of its own
	memory []*region
}

// host is one end: a context with a queue pair.
type host struct {
	r     *rig
	i     int
	addr  netip.AddrPort
	wire  *cuttable
	ctx   *verbs.Context
	pd    *verbs.PD
	scq   *verbs.CQ
	rcq   *verbs.CQ
	qp    *verbs.QP   // none on RC
	srq   *verbs.SRQ  // of cases that have one
	ahs   []*verbs.AH // of the others, by number
	still bool        // its engine does not step
	fd    func() int  // of the carrier
	rc    rcHost      // on RC
}

func newRig(t *testing.T, c *VerbsConfig, v *verbsCase, typ verbs.QPType) *rig {
	n := max(v.hosts, 2)
	r := &rig{t: t, config: c, what: v, typ: typ, net: c.Net(t, n), dest: map[uint64]*host{}}
	if r.net.Clock == nil {
		r.net.Clock = mono.Real{}
	}
	t.Cleanup(r.close)
	for i := range n {
		h := &host{r: r, i: i, ahs: make([]*verbs.AH, n), rc: newRCHost(n)}
		r.hosts = append(r.hosts, h)
		h.open()
	}
	return r
}

// meetAll makes all hosts known to each other.
func (r *rig) meetAll() {
	r.t.Helper()
	for i, h := range r.hosts {
		for _, peer := range r.hosts {
			switch {
			case peer == h:
			case r.typ != verbs.RC:
				h.meet(peer)
			case i < peer.i && !r.what.apart:
				r.join(h, peer)
			}
		}
	}
}

// must ends the test on an error.
func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// open opens a context, a queue pair and what belongs to it.
func (h *host) open() {
	r := h.r
	r.t.Helper()
	r.opened++
	c := verbs.Config{
		Key: 0x5eed + r.job, Epoch: r.opened * 0x10001, Dgram: r.config.Dgram, ZeroBased: r.net.Virtual,
	}
	if r.what.alien && h.i == max(r.what.hosts, 2)-1 {
		c.Key++
	}
	if r.what.impatient {
		c.Dgram.PeerLost = mono.Second
	}
	if r.typ == verbs.RC {
		h.openStreams(&c)
	} else {
		h.openDatagrams(&c)
	}
	var err error
	h.ctx, err = verbs.New(c)
	r.must(err)
	h.pd, err = h.ctx.AllocPD()
	r.must(err)
	h.scq, err = h.ctx.CreateCQ(verbs.CQInit{})
	r.must(err)
	h.rcq, err = h.ctx.CreateCQ(verbs.CQInit{})
	r.must(err)
	if r.typ == verbs.RC {
		h.listenRC()
		return
	}
	h.qp, err = h.pd.CreateQP(h.init())
	r.must(err)
}

// openDatagrams opens the carrier of RD and UD.
func (h *host) openDatagrams(c *verbs.Config) {
	r := h.r
	r.t.Helper()
	d, under, err := r.net.Open(h.i)
	r.must(err)
	h.addr, h.fd = d.Local(), d.FD
	if f := r.config.Faults; f != (fault.Config{}) {
		f.Seed += uint64(h.i)
		d, err = fault.NewDatagram(d, f)
		r.must(err)
	}
	if r.config.Secure {
		secret := make([]byte, secure.SecretLen)
		secret[0] = byte(c.Key) // of another job, if the key is
		d, err = secure.New(d, secure.Config{Secret: secret, Instance: secure.Instance{byte(r.opened >> 8), byte(r.opened), 1}, KeyBits: 5})
		r.must(err)
		c.NoCRC = true
	}
	h.wire = &cuttable{Datagram: d}
	c.Datagram = h.wire
	h.engine(c, d, under)
}

// engine gives a context what moves it. under is closed after it.
func (h *host) engine(c *verbs.Config, b progress.Bell, under []io.Closer) {
	r := h.r
	var parker progress.Parker = noPark{}
	if !r.net.Virtual {
		p, err := progress.NewPoller(r.net.Clock, progress.PollerConfig{NoSpin: true})
		r.must(err)
		p.WatchBell(b)
		parker, under = p, append([]io.Closer{p}, under...)
	}
	c.Engine, c.Closers = progress.New(r.net.Clock, parker), under
}

// init says how the queue pairs of a host are made.
func (h *host) init() verbs.QPInit {
	init := verbs.QPInit{Type: h.r.typ, SendCQ: h.scq, RecvCQ: h.rcq}
	if h.r.what.qp != nil {
		h.r.what.qp(h, &init)
	}
	return init
}

// renew gives a host new queue pairs, on the queues that it has now.
func (h *host) renew() {
	r := h.r
	r.t.Helper()
	if r.typ == verbs.RC {
		for _, peer := range r.hosts {
			if peer != h {
				r.part(h, peer)
				r.join(h, peer)
			}
		}
		return
	}
	h.qp.Destroy()
	var err error
	h.qp, err = h.pd.CreateQP(h.init())
	r.must(err)
	for _, peer := range r.hosts {
		if peer != h {
			h.meet(peer)
		}
	}
}

// to returns the queue pair that talks to a peer.
func (h *host) to(peer *host) *verbs.QP {
	if h.r.typ == verbs.RC {
		return h.rc.qps[peer.i]
	}
	return h.qp
}

// qps returns all queue pairs of a host.
func (h *host) qps() []*verbs.QP {
	if h.r.typ != verbs.RC {
		return []*verbs.QP{h.qp}
	}
	var all []*verbs.QP
	for _, q := range h.rc.qps {
		if q != nil {
			all = append(all, q)
		}
	}
	return all
}

// destroy ends all queue pairs of a host.
func (h *host) destroy() {
	for _, q := range h.qps() {
		q.Destroy()
	}
}

// meet makes a handle of a peer, anew when there was one.
func (h *host) meet(peer *host) {
	h.r.t.Helper()
	ah, err := h.pd.CreateAH(peer.addr)
	h.r.must(err)
	h.ahs[peer.i] = ah
}

// close closes a context.
func (h *host) close() {
	if h.ctx != nil {
		h.r.must(h.ctx.Close())
		h.ctx = nil
	}
}

func (r *rig) close() {
	for _, h := range r.hosts {
		if h.ctx != nil {
			if err := h.ctx.Close(); err != nil {
				r.t.Error(err)
			}
		}
	}
	for _, g := range r.memory {
		if g.arena != nil {
			g.arena.Free(g.addr)
		}
	}
}

// on runs fn on a host.
func (r *rig) on(h *host, fn func() error) error {
	if r.net.On == nil {
		return fn()
	}
	return r.net.On(h.i, fn)
}

// turn lets everybody work once, and time pass.
func (r *rig) turn() {
	work := 0
	for _, h := range r.hosts {
		if h.ctx != nil && !h.still {
			work += h.ctx.Engine().Step()
		}
	}
	if r.idle++; work > 0 {
		r.idle = 0
	}
	if r.net.Step != nil {
		r.net.Step(r.idle)
	}
}

// until waits until something is so.
func (r *rig) until(so func() bool) {
	for !so() {
		r.turn()
	}
}

// rest lets d pass.
func (r *rig) rest(d mono.Duration) {
	end := r.net.Clock.Now().Add(d)
	r.until(func() bool { return r.net.Clock.Now() >= end })
}

// settle ends a case: nobody may have completions that were not expected, and
// no canary may have changed.
func (r *rig) settle() {
	r.t.Helper()
	r.rest(mono.Millisecond)
	var wcs [4]verbs.WC
	for _, h := range r.hosts {
		if h.ctx == nil {
			continue
		}
		for _, wc := range wcs[:h.scq.Poll(wcs[:])] {
			r.t.Errorf("host %d: nobody has waited for the send completion %+v", h.i, wc)
		}
		for _, wc := range wcs[:h.rcq.Poll(wcs[:])] {
			r.t.Errorf("host %d: nobody has waited for the receive completion %+v", h.i, wc)
		}
	}
	r.canaries()
}

// canaries checks what lies around the regions.
func (r *rig) canaries() {
	r.t.Helper()
	for _, g := range r.memory {
		if fence := bytes.Repeat([]byte{canary}, fenceLen); !bytes.Equal(g.all[:fenceLen], fence) || !bytes.Equal(g.all[len(g.all)-fenceLen:], fence) {
			r.t.Errorf("host %d: memory around a region of %d bytes has changed", g.h.i, g.Len())
		}
	}
}

// region is a registered region with canaries around it.
type region struct {
	*verbs.MR
	h     *host
	all   []byte // with the canaries
	b     []byte // what is registered
	arena *mem.Arena
	addr  mem.Addr // of all in the arena
}

const (
	canary   = 0xca
	fenceLen = 256
)

// region registers n bytes, every other time inside the arena if it has room.
func (h *host) region(n int, access verbs.Access) *region {
	return h.regionOf(h.pd, n, access)
}

func (h *host) regionOf(pd *verbs.PD, n int, access verbs.Access) *region {
	r := h.r
	r.t.Helper()
	size := fenceLen + n + fenceLen
	g := &region{h: h}
	if len(r.memory)%2 == 0 && h.ctx.Arena() != nil {
		if at, err := h.ctx.Arena().Alloc(size, 64); err == nil {
			g.arena, g.addr = h.ctx.Arena(), at
			g.all = g.arena.At(at, size)
		}
	}
	if g.all == nil {
		g.all = make([]byte, size)
	}
	for i := range g.all {
		g.all[i] = canary
	}
	g.b = g.all[fenceLen : fenceLen+n : fenceLen+n]
	clear(g.b)
	var err error
	g.MR, err = pd.RegMR(g.b, access)
	r.must(err)
	r.memory = append(r.memory, g)
	return g
}

// fill makes the region hold bytes that depend on their place and on seed.
func (g *region) fill(seed int) *region {
	for i := range g.b {
		g.b[i] = byte(i*7 + i>>8 + seed*31)
	}
	return g
}

// is checks the whole region: it holds b at offset off, and zeros elsewhere.
func (g *region) is(off int, b []byte) {
	g.h.r.t.Helper()
	want := make([]byte, len(g.b))
	copy(want[off:], b)
	g.equals(want)
}

// becomes waits until the region holds want, which a Write brings: on RC that is
// complete when it was sent.
func (g *region) becomes(want []byte) {
	g.h.r.t.Helper()
	if r := g.h.r; r.typ == verbs.RC {
		r.until(func() bool { return bytes.Equal(g.b, want) })
	}
	g.equals(want)
}

// gets is becomes for b at offset off, and zeros elsewhere.
func (g *region) gets(off int, b []byte) {
	g.h.r.t.Helper()
	want := make([]byte, len(g.b))
	copy(want[off:], b)
	g.becomes(want)
}

// equals checks the whole region.
func (g *region) equals(want []byte) {
	g.h.r.t.Helper()
	for i := range want {
		if g.b[i] != want[i] {
			g.h.r.t.Fatalf("host %d: byte %d of %d is %#x, want %#x", g.h.i, i, len(want), g.b[i], want[i])
		}
	}
}

// wr returns a request to a peer, which may be nil.
func (h *host) wr(op verbs.Opcode, to *host, sgl ...verbs.SGE) verbs.SendWR {
	h.r.wrid++
	wr := verbs.SendWR{WRID: h.r.wrid, Opcode: op, Flags: verbs.Signaled, NumSGE: uint8(len(sgl))}
	copy(wr.SGL[:], sgl)
	switch {
	case h.r.typ == verbs.RC:
		h.r.dest[wr.WRID] = to
	case to != nil:
		wr.AH = h.ahs[to.i]
		if h.r.typ == verbs.UD {
			wr.RemoteQPN = to.qp.Num()
		}
	}
	return wr
}

// by returns the queue pair that a request goes to.
func (h *host) by(wr *verbs.SendWR) *verbs.QP {
	if h.r.typ != verbs.RC {
		return h.qp
	}
	if peer := h.r.dest[wr.WRID]; peer != nil {
		return h.rc.qps[peer.i]
	}
	return h.anyRC()
}

// try posts a request that may not be possible.
func (h *host) try(wr *verbs.SendWR) error { return h.by(wr).PostSend(wr) }

// at aims a request at offset off of a peer's region.
func at(wr verbs.SendWR, g *region, off int) verbs.SendWR {
	wr.RKey, wr.RemoteAddr = g.RKey(), g.Addr()+uint64(off)
	return wr
}

func (h *host) post(wr verbs.SendWR) {
	h.r.t.Helper()
	if err := h.try(&wr); err != nil {
		h.r.t.Fatalf("host %d: posting %v: %v", h.i, wr.Opcode, err)
	}
}

// recv posts a receive for what a peer sends, or on datagrams anybody, and
// returns its number.
func (h *host) recv(from *host, sgl ...verbs.SGE) uint64 {
	h.r.t.Helper()
	h.r.wrid++
	wr := verbs.RecvWR{WRID: h.r.wrid, NumSGE: uint8(len(sgl))}
	copy(wr.SGL[:], sgl)
	h.r.must(h.to(from).PostRecv(&wr))
	return wr.WRID
}

// next waits for a completion.
func (r *rig) next(q *verbs.CQ) verbs.WC {
	var wc [1]verbs.WC
	r.until(func() bool { return q.Poll(wc[:]) == 1 })
	return wc[0]
}

// sent waits for the completion of a request and checks how it ended.
func (h *host) sent(wr *verbs.SendWR, status verbs.Status) {
	h.r.t.Helper()
	wc := h.r.next(h.scq)
	if wc.WRID != wr.WRID || wc.Status != status || wc.Opcode != wr.Opcode || wc.QPNum != h.by(wr).Num() {
		h.r.t.Fatalf("host %d: completion %+v, want %v of %v, number %d", h.i, wc, status, wr.Opcode, wr.WRID)
	}
}

// do posts a request and waits for its success.
func (h *host) do(wr verbs.SendWR) {
	h.r.t.Helper()
	h.post(wr)
	h.sent(&wr, verbs.Success)
}

// anyRecv stands for any receive.
const anyRecv = ^uint64(0)

// received waits for the completion of receive id and checks that it tells of
// from.
func (h *host) received(id uint64, op verbs.Opcode, from *host) verbs.WC {
	r := h.r
	r.t.Helper()
	wc := r.next(h.rcq)
	switch {
	case wc.WRID != id && id != anyRecv || wc.Status != verbs.Success || wc.Opcode != op || wc.QPNum != h.to(from).Num():
		r.t.Fatalf("host %d: completion %+v, want %v of receive %d", h.i, wc, op, id)
	case r.typ == verbs.RC: // the queue pair tells
		if wc.Src != nil || wc.SrcQP != 0 {
			r.t.Fatalf("host %d: completion %+v names a source", h.i, wc)
		}
	case wc.SrcAddr != fabric.RemoteOf(from.addr):
		r.t.Fatalf("host %d: it is from %v, want %v", h.i, wc.SrcAddr.AddrPort(), from.addr)
	case r.typ == verbs.UD && wc.SrcQP != from.qp.Num():
		r.t.Fatalf("host %d: it is from queue pair %d, want %d", h.i, wc.SrcQP, from.qp.Num())
	case r.typ == verbs.RD && (wc.Src == nil || wc.Src.Remote() != from.addr):
		r.t.Fatalf("host %d: its handle is %v", h.i, wc.Src)
	}
	return wc
}

// exchange sends a message each way, to see that two hosts still can.
func (r *rig) exchange(a, b *host) {
	r.t.Helper()
	for _, pair := range [][2]*host{{a, b}, {b, a}} {
		from, to := pair[0], pair[1]
		src, dst := from.region(1000, 0).fill(int(r.wrid)), to.region(1000, verbs.LocalWrite)
		id := to.recv(from, dst.SGE(0, 1000))
		wr := from.wr(verbs.OpSend, to, src.SGE(0, 1000))
		from.post(wr)
		to.received(id, verbs.OpRecv, from)
		from.sent(&wr, verbs.Success)
		dst.is(0, src.b)
		r.must(src.Dereg())
		r.must(dst.Dereg())
	}
}

// noPark is for engines that are stepped by hand.
type noPark struct{}

func (noPark) Park(mono.Time, mono.Duration) bool { return false }

// cuttable is a carrier that can be cut off.
type cuttable struct {
	fabric.Datagram
	cut bool // what is sent is lost, and what arrives is not seen
}

func (g *cuttable) Send(b *fabric.Batch) {
	if !g.cut {
		g.Datagram.Send(b)
		return
	}
	for _, d := range b.Descs {
		g.Unframe(d.Addr)
	}
}

func (g *cuttable) Recv(b *fabric.Batch) int {
	n := g.Datagram.Recv(b)
	if g.cut {
		g.Release(b)
		n = 0
	}
	return n
}

// Join implements fabric.Multicaster if the carrier does.
func (g *cuttable) Join(group netip.Addr) error {
	if m, ok := g.Datagram.(fabric.Multicaster); ok {
		return m.Join(group)
	}
	return fabric.ErrNoMulticast
}

// Leave implements fabric.Multicaster.
func (g *cuttable) Leave(group netip.Addr) error { return g.Datagram.(fabric.Multicaster).Leave(group) }
