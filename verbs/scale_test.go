package verbs_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"testing"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/internal/test/conform"
	"github.com/xwarp/xwarp/internal/test/mesh"
	"github.com/xwarp/xwarp/verbs"
)

// manyPeers is a server and many peers, every one a context of its own, on a mesh.
type manyPeers struct {
	t      testing.TB
	net    *mesh.Net
	clock  *handClock
	server *member
	peers  []*member
	done   int // peers that have all completions
}

// member is one context with all that it takes to talk.
type member struct {
	carrier *mesh.End
	ctx     *verbs.Context
	pd      *verbs.PD
	scq     *verbs.CQ
	rcq     *verbs.CQ
	qp      *verbs.QP
	mr      *verbs.MR
	ah      *verbs.AH // of the server
	wakeAt  mono.Time // when it must step, whatever arrives
	sent    int       // requests complete
	got     int       // messages received
}

const (
	serverSlots = 4096 // receives of the server
	slotLen     = 64
)

func newManyPeers(t testing.TB, n int) *manyPeers {
	t.Helper()
	net, err := mesh.New(mesh.Config{MaxPayload: 1472, Frames: 1 << 14, Depth: 4096})
	must(t, err)
	c := &manyPeers{t: t, net: net, clock: &handClock{now: 1e9}}
	c.server = c.open(0, 4096, serverSlots, 1<<17)
	for i := range serverSlots {
		must(t, c.server.qp.PostRecv(c.server.receive(i)))
	}
	for i := range n {
		p := c.open(1+i, 4, 4, 4*slotLen)
		p.ah, err = p.pd.CreateAH(peerAddr(0))
		must(t, err)
		must(t, p.qp.PostRecv(p.receive(0)))
		c.peers = append(c.peers, p)
	}
	return c
}

func peerAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}), simPort)
}

func (c *manyPeers) open(i, sends, recvs, memory int) *member {
	c.t.Helper()
	m := &member{carrier: c.net.Open(peerAddr(i), 0)}
	var err error
	m.ctx, err = verbs.New(verbs.Config{
		ZeroBased: true,
		Datagram:  m.carrier, Engine: progress.New(c.clock, noPark{}), Key: 3, Epoch: uint32(i + 1),
	})
	must(c.t, err)
	m.pd, err = m.ctx.AllocPD()
	must(c.t, err)
	m.scq, err = m.ctx.CreateCQ(verbs.CQInit{Depth: sends})
	must(c.t, err)
	m.rcq, err = m.ctx.CreateCQ(verbs.CQInit{Depth: recvs})
	must(c.t, err)
	m.qp, err = m.pd.CreateQP(verbs.QPInit{
		Type: verbs.RD, SendCQ: m.scq, RecvCQ: m.rcq, Cap: verbs.QPCap{MaxSendWR: sends, MaxRecvWR: recvs},
	})
	must(c.t, err)
	m.mr, err = m.pd.RegMR(make([]byte, memory), verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	must(c.t, err)
	return m
}

// receive describes a receive into a slot of the member's memory.
func (m *member) receive(slot int) *verbs.RecvWR {
	off := slot * slotLen % len(m.mr.Bytes())
	return &verbs.RecvWR{WRID: uint64(slot), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{m.mr.SGE(off, slotLen)}}
}

// step moves the server until it has nothing to do, and every peer once.
func (c *manyPeers) step(d mono.Duration) {
	c.clock.now = c.clock.now.Add(d)
	for c.server.ctx.Engine().Step() > 0 {
		c.reply()
	}
	for _, p := range c.peers {
		if p.carrier.Waiting() > 0 || p.wakeAt <= c.clock.now {
			p.ctx.Engine().Step()
			p.wakeAt = p.ctx.Deadline()
			p.reap(c)
		}
	}
}

// reply answers each Send that the server has received with one of its own.
func (c *manyPeers) reply() {
	var wcs [64]verbs.WC
	for _, wc := range wcs[:c.server.rcq.Poll(wcs[:])] {
		if wc.Status != verbs.Success {
			c.t.Fatalf("%+v", wc)
		}
		c.server.got++
		must(c.t, c.server.qp.PostRecv(c.server.receive(int(wc.WRID))))
		must(c.t, c.server.qp.PostSend(&verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: []byte("answer"), AH: wc.Src}))
	}
	for _, wc := range wcs[:c.server.scq.Poll(wcs[:])] {
		if wc.Status != verbs.Success {
			c.t.Fatalf("%+v", wc)
		}
		c.server.sent++
	}
}

// talk posts a Send, a Write and a Read to the server.
func (m *member) talk(t testing.TB, key uint32) {
	t.Helper()
	sge := [verbs.MaxSGE]verbs.SGE{m.mr.SGE(slotLen, slotLen)}
	for _, wr := range []verbs.SendWR{
		{Opcode: verbs.OpSend, Flags: verbs.Inline | verbs.Signaled, InlineData: []byte("question"), AH: m.ah},
		{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signaled, NumSGE: 1, SGL: sge, RKey: key, RemoteAddr: 1 << 16, AH: m.ah},
		{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, NumSGE: 1, SGL: sge, RKey: key, RemoteAddr: 1 << 16, AH: m.ah},
	} {
		must(t, m.qp.PostSend(&wr))
	}
	m.wakeAt = 0
}

// reap takes the completions of a peer, and counts it when it has all.
func (m *member) reap(c *manyPeers) {
	var wcs [4]verbs.WC
	for _, cq := range []*verbs.CQ{m.scq, m.rcq} {
		n := cq.Poll(wcs[:])
		for _, wc := range wcs[:n] {
			if wc.Status != verbs.Success {
				c.t.Fatalf("%+v", wc)
			}
			if wc.Opcode == verbs.OpRecv {
				m.got++
				must(c.t, m.qp.PostRecv(m.receive(0)))
			} else {
				m.sent++
			}
		}
		if n > 0 && m.sent == 3 && m.got == 1 {
			c.done++
		}
	}
}

// exchange lets each peer talk once; wave begin in each step.
func (c *manyPeers) exchange(wave int) {
	c.t.Helper()
	c.done = 0
	for _, p := range c.peers {
		p.sent, p.got = 0, 0
	}
	for round := 0; c.done < len(c.peers); round++ {
		for _, p := range c.peers[min(round*wave, len(c.peers)):min((round+1)*wave, len(c.peers))] {
			p.talk(c.t, c.server.mr.RKey())
		}
		c.step(20 * mono.Microsecond)
	}
}

// settle lets everybody go idle: long enough for every timer, and for three
// rounds of keep-alive.
func (c *manyPeers) settle() {
	for range 100 {
		c.step(mono.Millisecond)
	}
	for range 60 {
		c.step(250 * mono.Millisecond)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// forgetPeers lets go of the peers without a word to the server.
func (c *manyPeers) forgetPeers() {
	for _, p := range c.peers {
		_ = p.carrier.Close()
	}
	c.peers = nil
}

// hubCost returns how many bytes go away with a server that n peers have talked to,
// many at a time, and that are idle now.
func hubCost(t *testing.T, n int) int64 {
	c := newManyPeers(t, n)
	c.exchange(100)
	c.settle()
	if st, _ := c.server.ctx.Stats(); st.PeersLost != 0 || c.server.got != n || c.server.sent != n {
		t.Fatalf("the server got %d and sent %d messages, want %d: %+v", c.server.got, c.server.sent, n, st)
	}
	c.forgetPeers()
	with := heap()
	runtime.KeepAlive(c.server)
	c.server = nil
	without := heap()
	runtime.KeepAlive(c)
	return with - without
}

// TestScale_idlePeer holds what a server keeps for an idle peer below 1 KiB, with
// what a UDP endpoint keeps for its address.
func TestScale_idlePeer(t *testing.T) {
	const n = 10_000
	perPeer := (hubCost(t, n) - hubCost(t, 1)) / (n - 1)
	perAddr := addressCost(t, n)
	if sum := reflect.TypeFor[verbs.AH]().Size() + reflect.TypeFor[llp.Peer]().Size(); sum > 640 {
		t.Errorf("the structures of a peer have %d bytes", sum) // the rest of the KiB is for tables
	}
	t.Logf("%d idle peers: %d bytes each, and %d in the UDP endpoint", n, perPeer, perAddr)
	if sum := perPeer + perAddr; sum >= 1024 || perPeer < 300 {
		t.Errorf("an idle peer takes %d bytes, want less than 1024", sum)
	}
}

// addressCost returns how many bytes a UDP endpoint keeps for each of n addresses.
func addressCost(t *testing.T, n int) int64 {
	pipe, _, err := conform.NewPipe(conform.PipeConfig{MTU: 1500})
	must(t, err)
	hops := inet.Fixed{}
	for i := range n {
		hops[peerAddr(i).Addr()] = inet.Hop{MAC: inet.MAC{2, 0, 0, 0, 0, 1}, Source: peerAddr(0).Addr(), MTU: 1500}
	}
	ep, err := inet.New(inet.Config{Port: pipe, Resolver: hops, Local: peerAddr(0), MAC: inet.MAC{2, 0, 0, 0, 0, 2}})
	must(t, err)
	before := heap()
	for i := range n {
		if _, err := ep.Resolve(peerAddr(i)); err != nil {
			t.Fatal(err)
		}
	}
	after := heap()
	runtime.KeepAlive(ep)
	runtime.KeepAlive(hops)
	return (after - before) / int64(n)
}

// BenchmarkPoll_idlePeers shows that a step costs the same however many idle
// peers there are.
func BenchmarkPoll_idlePeers(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newManyPeers(b, n)
			c.exchange(200)
			c.settle()
			b.ReportAllocs()
			for b.Loop() {
				c.clock.now += 100
				c.server.ctx.Engine().Step()
			}
		})
	}
}
