package llp

import (
	"net/netip"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/base/serial"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/arq"
	"github.com/xwarp/xwarp/iwarp/dgram"
)

// multipath is what an endpoint on several networks has beside one on a single network.
// An association has a path on each network that both ends are on, and uses one: the
// first that is alive. Datagrams of long messages are spread over all that are alive, by
// what each takes (arq.Sender.Spread). Whether a path is alive a Hello on it finds out,
// which is answered the way that it came; that one which carries data is dead is noticed
// sooner, by a time-out. What is under way there is sent again on the one in use: all
// paths carry the same datagrams under the same sequence numbers.
//
// The Hellos of a peer tell where it can be reached. Wherever it comes from, an association
// is known by the peer's address on the first network.
type multipath struct {
	ep   *Endpoint
	dg   fabric.Multipath // nil: there is one network
	list []byte           // where we can be reached, as a Hello tells it
	of   []paths          // by Peer.Index

	// Peers by their addresses on other networks than the first, and the one that was
	// found last.
	byAddr   map[fabric.Remote]*Peer
	lastAddr fabric.Remote
	last     *Peer

	from  fabric.Remote                   // the sender of the present datagram: not always Peer.Remote
	told  [fabric.MaxPaths]netip.AddrPort // what the present Hello tells
	nTold int
}

// paths are those of an association. It is not part of the peer, for most have none.
type paths struct {
	use   int8 // that is sent on, but for long messages
	heard int8 // that data came on last, so acknowledgements take it
	on    [fabric.MaxPaths]onPath
}

const _ = uint(arq.MaxNetworks - fabric.MaxPaths) // a sender has as many

// onPath is what is known of the path on one network.
type onPath struct {
	remote fabric.Remote // the peer there; zero: it has not told
	to     fabric.Path
	ready  bool      // to is known
	alive  bool      // a Hello was answered, and nothing has shown since that it is dead
	asks   uint8     // Hellos since anything was heard on it
	leaves uint8     // how often it was left, of late
	askAt  mono.Time // when the next Hello is due
	heard  mono.Time // when anything was heard on it
	since  mono.Time // when it was last found alive, or made the one in use
}

// Times of Hellos on paths.
const (
	askFirst  = 20 * mono.Millisecond  // until one that was not answered is sent again
	askMost   = mono.Second            // the same for a path that is dead
	askTries  = 3                      // unanswered ones in a row that make a path dead
	leftFirst = 100 * mono.Millisecond // until a path that was left a second time is asked; doubled each time up to leftMost
	leftMost  = 10 * mono.Second
	routeWait = 10 * mono.Second // until the kernel is asked again for the way on a path, which may take it seconds
)

// init prepares an endpoint on dg, which may be on several networks.
func (m *multipath) init(ep *Endpoint, dg fabric.Datagram) {
	m.ep = ep
	multi, ok := dg.(fabric.Multipath)
	if !ok || len(multi.Locals()) < 2 {
		return
	}
	at := multi.Locals()
	m.dg, m.byAddr = multi, map[fabric.Remote]*Peer{}
	m.list = make([]byte, dgram.PathsLen(len(at)))
	dgram.PutPaths(m.list, at)
}

// helloLeast returns the length in bytes of a Hello without padding, and of an answer: with
// where we can be reached, if there are several networks.
func (m *multipath) helloLeast() int { return shortHello + len(m.list) }

// HasPaths reports whether the endpoint is on several networks.
func (e *Endpoint) HasPaths() bool { return e.multi.dg != nil }

// forget makes p a peer that is known on its first path only, if it is of this
// network at all.
func (m *multipath) forget(p *Peer) {
	for int(p.Index) >= len(m.of) {
		m.of = append(m.of, paths{})
	}
	m.drop(p)
	ps := &m.of[p.Index]
	*ps = paths{}
	ps.on[0] = onPath{remote: p.Remote, to: p.path, ready: true, alive: true}
}

// drop forgets where p can be reached.
func (m *multipath) drop(p *Peer) {
	m.lastAddr, m.last = fabric.Remote{}, nil
	for i := range m.of[p.Index].on[1:] {
		o := &m.of[p.Index].on[1+i]
		if m.byAddr[o.remote] == p {
			delete(m.byAddr, o.remote)
		}
		*o = onPath{}
	}
}

// via returns on which network the present datagram came.
func (m *multipath) via() int {
	if m.dg == nil {
		return 0
	}
	return m.dg.Via()
}

// whose returns the address on the first network of the sender of a datagram that came on
// another, as far as that is known.
func (m *multipath) whose(from fabric.Remote) fabric.Remote {
	m.from, m.nTold = from, 0
	if m.dg.Via() == 0 {
		return from
	}
	if from != m.lastAddr {
		m.lastAddr, m.last = from, m.byAddr[from]
	}
	if m.last == nil {
		return from
	}
	return m.last.Remote
}

// cameOn notes that a datagram of p was heard, of data or not.
func (m *multipath) cameOn(p *Peer, data bool) {
	via := int8(m.dg.Via())
	ps := &m.of[p.Index]
	ps.on[via].heard, ps.on[via].asks = m.ep.now, 0
	if data {
		ps.heard = via
	}
}

// readPaths reads what a Hello tells, behind its body, about where its sender can be
// reached. It must have come from there.
func (m *multipath) readPaths(h *dgram.Header) {
	if m.dg == nil || h.Flags&dgram.FlagPaths == 0 || m.ep.reader.Len() < dgram.HelloLen+1 {
		return
	}
	m.ep.reader.Skip(dgram.HelloLen)
	n := int(m.ep.reader.Peek(1)[0])
	m.ep.reader.Skip(1)
	if n > fabric.MaxPaths || m.ep.reader.Len() < n*dgram.PathLen {
		return
	}
	for i := range n {
		m.told[i] = dgram.ParsePath(m.ep.reader.Peek(dgram.PathLen))
		m.ep.reader.Skip(dgram.PathLen)
		if !m.told[i].Addr().IsValid() || m.told[i].Port() == 0 {
			return
		}
	}
	if via := m.dg.Via(); via < n && fabric.RemoteOf(m.told[via]) == m.from {
		m.nTold = n
	}
}

// named returns whose present Hello it is, by the address on the first network that it
// tells, if it came on another and from an address that is not known there.
func (m *multipath) named(p *Peer, from fabric.Remote) (*Peer, fabric.Remote) {
	if p != nil || m.nTold == 0 {
		return p, from
	}
	from = fabric.RemoteOf(m.told[0])
	return m.ep.shake.peerAt(from), from
}

// unnamed reports whether the present datagram came on another network than the first,
// and does not name its sender: that may be a peer that will name itself soon.
func (m *multipath) unnamed() bool {
	return m.dg != nil && m.dg.Via() != 0 && m.nTold == 0 && m.last == nil
}

// learn notes where p can be reached, as its present Hello tells, which knows the
// numbers of both sides.
func (m *multipath) learn(p *Peer) {
	if m.dg == nil || m.nTold == 0 || fabric.RemoteOf(m.told[0]) != p.Remote || m.told[0].Addr() == m.dg.Local().Addr() {
		return // or it is of this host, where there is one way
	}
	ps := &m.of[p.Index]
	for i := 1; i < min(m.nTold, len(m.dg.Locals())); i++ {
		at := fabric.RemoteOf(m.told[i])
		o := &ps.on[i]
		if o.remote == at || m.byAddr[at] != nil {
			continue
		}
		delete(m.byAddr, o.remote)
		*o = onPath{remote: at, askAt: m.ep.now, heard: m.ep.now}
		m.byAddr[at] = p
		m.lastAddr = fabric.Remote{}
		m.ep.Wake(&p.Assoc, m.ep.now)
		ps.spread(p)
	}
}

// back returns the path for an answer to p, the way that the present datagram came.
func (m *multipath) back(p *Peer) fabric.Path {
	if to, ok := m.pathHere(p); ok {
		return to
	}
	o := &m.of[p.Index].on[m.dg.Via()]
	if o.remote != m.from {
		return p.path
	}
	to, ok := m.ep.dg.Back(m.from, m.ep.shake.station())
	if !ok {
		return p.path
	}
	o.to, o.ready = to, true
	return to
}

// pathHere returns the path to p on the network that the present datagram came on, if
// it is known.
func (m *multipath) pathHere(p *Peer) (to fabric.Path, ok bool) {
	if m.dg == nil {
		return p.path, true
	}
	o := &m.of[p.Index].on[m.dg.Via()]
	return o.to, o.ready
}

// pathBack returns the path to the sender of the present datagram, which has the address from,
// and false where there is none.
func (m *multipath) pathBack(from fabric.Remote) (fabric.Path, bool) {
	if m.dg != nil {
		from = m.from
	}
	return m.ep.dg.Back(from, m.ep.shake.station())
}

// ackPath returns the path that an acknowledgement to p takes: the one that data came
// on last, for the one that we send on may be dead, and only data finds that out soon.
func (m *multipath) ackPath(p *Peer) fabric.Path {
	if m.dg != nil {
		ps := &m.of[p.Index]
		if o := &ps.on[ps.heard]; o.ready {
			return o.to
		}
	}
	return p.path
}

// pathOf returns the path that a datagram to p takes, whose ULPDUs from lsn on were pushed,
// and makes the one in use that of the next.
func (m *multipath) pathOf(p *Peer, lsn serial.U32) fabric.Path {
	if m.dg == nil {
		return p.path
	}
	ps := &m.of[p.Index]
	i := p.Snd.Via(lsn)
	p.Snd.Gather()
	if i == int(ps.use) {
		return p.path
	}
	return ps.on[i].to
}

// spread tells the sender of p which paths it has.
func (ps *paths) spread(p *Peer) {
	alive := uint8(0)
	for i := range ps.on {
		if ps.on[i].alive && ps.on[i].ready {
			alive |= 1 << i
		}
	}
	p.Snd.SetNetworks(int(ps.use), alive)
}

// tend leaves paths that nothing arrives on, sends the Hellos that are due
// on all paths, and takes the first that is alive. It returns when it is to be called
// again.
func (m *multipath) tend(p *Peer) (next mono.Time) {
	ps := &m.of[p.Index]
	silent := p.Snd.TimedOut()
	if !p.Open() || m.lone(ps) {
		return mono.Never
	}
	for i := range ps.on {
		if silent>>i&1 != 0 && i != int(ps.use) {
			ps.on[i].leave(m.ep.now)
		}
	}
	if silent>>ps.use&1 != 0 {
		m.leavePath(p, ps)
	}
	if !p.measured { // the path in use is first, and its Hellos go on it
		return mono.Never
	}
	next = mono.Never
	for i := range ps.on {
		o := &ps.on[i]
		if o.remote == (fabric.Remote{}) {
			continue
		}
		if m.ep.now >= o.askAt {
			m.askOn(p, ps, i)
		}
		next = min(next, o.askAt)
	}
	for i := range ps.on {
		if o := &ps.on[i]; o.alive && o.ready {
			if i < int(ps.use) || !ps.on[ps.use].alive {
				m.usePath(p, ps, i)
			}
			break
		}
	}
	ps.spread(p)
	return next
}

// doubtOthers has all paths of p but the one in use asked anew: whether they carry as
// much as that was found to.
func (m *multipath) doubtOthers(p *Peer) {
	if m.dg == nil {
		return
	}
	ps := &m.of[p.Index]
	for i := range ps.on {
		if o := &ps.on[i]; i != int(ps.use) && o.alive {
			o.alive, o.askAt = false, m.ep.now
		}
	}
	ps.spread(p)
}

// lone reports whether there is no path but the first.
func (m *multipath) lone(ps *paths) bool {
	for i := range ps.on[1:] {
		if ps.on[1+i].remote != (fabric.Remote{}) {
			return false
		}
	}
	return true
}

// askOn sends a Hello on a path of p where one is due, unless it was heard on lately.
func (m *multipath) askOn(p *Peer, ps *paths, i int) {
	o := &ps.on[i]
	quiet := o.heard.Add(m.ep.Config().KeepAlive)
	if o.alive && o.asks == 0 && m.ep.now < quiet {
		o.askAt = quiet
		return
	}
	if !o.ready {
		to, err := m.dg.ResolveOn(i, o.remote.AddrPort())
		if err != nil {
			o.askAt = m.ep.now.Add(routeWait)
			return
		}
		o.to, o.ready = to, true
	}
	size := m.helloLeast()
	if !o.alive && p.measured { // it has to carry what the one that was measured does
		size = max(size, int(p.most))
	}
	if !m.ep.shake.hello(dgram.TypeHello, o.to, p.local, p.remote, size, size) {
		o.askAt = m.ep.now.Add(100 * mono.Microsecond) // no room
		return
	}
	o.askAt = m.ep.now.Add(min(askFirst<<min(o.asks, 10), askMost))
	o.asks = min(o.asks+1, 250)
	if o.asks > askTries {
		o.alive = false
		if i == int(ps.use) {
			m.leavePath(p, ps)
		}
	}
}

// pathAnswered notes that a Hello of size bytes was answered the way that it went, and
// reports whether that is the path in use.
func (m *multipath) pathAnswered(p *Peer, size int) (inUse bool) {
	if m.dg == nil {
		return true
	}
	via := m.dg.Via()
	ps := &m.of[p.Index]
	o := &ps.on[via]
	if !o.alive && size >= int(p.most) {
		o.alive, o.since = true, m.ep.now
	}
	m.ep.Wake(&p.Assoc, m.ep.now)
	return via == int(ps.use)
}

// leave takes the path for dead. The first time it is asked at once: it may only have lost
// a little too much.
func (o *onPath) leave(now mono.Time) {
	o.alive = false
	if now.Sub(o.since) > leftMost {
		o.leaves = 0
	}
	o.askAt = now
	if o.leaves > 0 {
		o.askAt = now.Add(min(leftFirst<<min(o.leaves-1, 10), leftMost))
	}
	o.leaves = min(o.leaves+1, 250)
}

// leavePath makes another path of p the one in use: the first that is alive, or else the
// next one in turn.
func (m *multipath) leavePath(p *Peer, ps *paths) {
	ps.on[ps.use].leave(m.ep.now)
	next := -1
	for k := range fabric.MaxPaths - 1 {
		i := (int(ps.use) + 1 + k) % fabric.MaxPaths
		o := &ps.on[i]
		if !o.ready {
			continue
		}
		if next < 0 || o.alive && (!ps.on[next].alive || i < next) {
			next = i
		}
	}
	if next >= 0 {
		m.ep.Stats.PathsLeft++
		m.usePath(p, ps, next)
	}
}

func (m *multipath) usePath(p *Peer, ps *paths, i int) {
	ps.use, p.path = int8(i), ps.on[i].to
	ps.on[i].since = m.ep.now
	ps.spread(p)
}
