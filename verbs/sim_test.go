package verbs_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

const simPort = 18700

// simFabric is a world with one address table for all of its nodes.
type simFabric struct {
	world  *sim.World
	nodes  []*sim.Node
	second []*sim.Node // NICs of theirs, or none: see withSecond
	hops   inet.Fixed
}

func newSimFabric(c sim.Config, n int) *simFabric {
	f := &simFabric{world: sim.New(c), hops: inet.Fixed{}}
	f.nodes = f.world.Nodes(n)
	mtu := c.MTU
	if mtu == 0 {
		mtu = 9000
	}
	for _, node := range f.nodes {
		f.hops[node.Addr()] = inet.Hop{MAC: node.MAC(), Source: node.Addr(), MTU: mtu}
	}
	return f
}

func (f *simFabric) addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(f.nodes[i].Addr(), simPort)
}

// open opens a context for a task on node i.
func (f *simFabric) open(t *sim.Task, i int, key uint64, d dgram.Config) (*verbs.Context, error) {
	if len(f.second) > 0 {
		return f.openBoth(t, i, key, d)
	}
	port, err := f.nodes[i].Open(nil)
	if err != nil {
		return nil, err
	}
	ep, err := inet.New(inet.Config{Port: port, Resolver: f.hops, Local: f.addr(i), MAC: f.nodes[i].MAC()})
	if err != nil {
		return nil, err
	}
	return verbs.New(verbs.Config{
		ZeroBased: true,
		Datagram:  ep, Engine: progress.New(t, t), Key: key, Epoch: uint32(0xffffff00 + i), Dgram: d,
	})
}

// player is one rank of a random exchange.
type player struct {
	f     *simFabric
	id    int
	peers int
	count int // messages to send
	max   int // bytes

	ctx    *verbs.Context
	pd     *verbs.PD
	scq    *verbs.CQ
	rcq    *verbs.CQ
	qp     *verbs.QP
	ahs    []*verbs.AH
	slots  []*verbs.MR // receive buffers
	next   []uint32    // number of the next message expected of each peer
	sent   []uint32
	got    int
	acked  int
	posted int

	out  *verbs.MR // arena memory to send large messages from, in slots of max bytes
	free []int     // slots of it
}

const (
	rxSlots = 48
	txSlots = 6
)

func (p *player) setup(t *sim.Task) error {
	var err error
	if p.ctx, err = p.f.open(t, p.id, 7, dgram.Config{}); err != nil {
		return err
	}
	if p.pd, err = p.ctx.AllocPD(); err != nil {
		return err
	}
	p.scq, _ = p.ctx.CreateCQ(verbs.CQInit{Depth: 256})
	p.rcq, _ = p.ctx.CreateCQ(verbs.CQInit{Depth: 256})
	p.qp, err = p.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: p.scq, RecvCQ: p.rcq, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: rxSlots}})
	if err != nil {
		return err
	}
	p.next, p.sent = make([]uint32, p.peers), make([]uint32, p.peers)
	for i := range p.peers {
		ah, err := p.pd.CreateAH(p.f.addr(i))
		if err != nil {
			return err
		}
		ah.UserData = uint64(i)
		p.ahs = append(p.ahs, ah)
	}
	at, err := p.ctx.Arena().Alloc(txSlots*p.max, 4096)
	if err != nil {
		return err
	}
	if p.out, err = p.pd.RegMR(p.ctx.Arena().At(at, txSlots*p.max), 0); err != nil {
		return err
	}
	for i := range txSlots {
		p.free = append(p.free, i)
	}
	for i := range rxSlots {
		mr, err := p.pd.RegMR(make([]byte, p.max), verbs.LocalWrite)
		if err != nil {
			return err
		}
		p.slots = append(p.slots, mr)
		if err := p.repost(i); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) repost(i int) error {
	return p.qp.PostRecv(&verbs.RecvWR{WRID: uint64(i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{p.slots[i].SGE(0, p.max)}})
}

// fillMessage makes a message that tells what it is: number, then bytes that
// follow from sender, receiver and number.
func fillMessage(b []byte, from, to int, seq uint32) {
	rng := rand.NewPCG(uint64(from)<<32|uint64(to), uint64(seq))
	for i := range b {
		if i%8 == 0 {
			var w [8]byte
			binary.LittleEndian.PutUint64(w[:], rng.Uint64())
			copy(b[i:], w[:])
		}
	}
	if len(b) >= 4 {
		binary.LittleEndian.PutUint32(b, seq)
	}
}

func (p *player) play(t *sim.Task) error {
	rng := t.Rand()
	expect := p.count * (p.peers - 1)
	for p.got < expect || p.acked < expect {
		full := p.posted == expect
		if !full {
			err := p.post(rng)
			if full = err == verbs.ErrQueueFull; err != nil && !full {
				return err
			}
		}
		before := p.got + p.acked
		if err := p.reap(); err != nil {
			return err
		}
		if p.ctx.Engine().Step() == 0 && full && p.got+p.acked == before {
			p.ctx.Engine().Park()
		}
	}
	// Stay to acknowledge what the others may send again.
	for end := t.Now().Add(3e9); t.Now() < end; {
		if p.ctx.Engine().Step() == 0 {
			t.Sleep(1e6)
		}
	}
	return p.ctx.Close()
}

func (p *player) post(rng *rand.Rand) error {
	to := rng.IntN(p.peers)
	if to == p.id || int(p.sent[to]) == p.count {
		return nil
	}
	n := rng.IntN(200)
	if rng.IntN(4) == 0 {
		n = rng.IntN(p.max)
	}
	msg, slot := make([]byte, n), -1
	if len(p.free) > 0 && n > verbs.MaxInline {
		slot = p.free[len(p.free)-1]
		msg = p.out.Bytes()[slot*p.max:][:n]
	}
	fillMessage(msg, p.id, to, p.sent[to])
	wr := verbs.SendWR{WRID: uint64(slot), Opcode: verbs.OpSend, Flags: verbs.Signaled, AH: p.ahs[to]}
	if n <= verbs.MaxInline && rng.IntN(2) == 0 {
		wr.Flags |= verbs.Inline
		wr.InlineData = msg
	} else if slot >= 0 {
		wr.NumSGE, wr.SGL[0] = 1, p.out.SGE(slot*p.max, n)
	} else {
		mr, err := p.pd.RegMR(msg, 0)
		if err != nil {
			return err
		}
		cut := rng.IntN(n + 1)
		wr.NumSGE, wr.SGL[0], wr.SGL[1] = 2, mr.SGE(0, cut), mr.SGE(cut, n-cut)
		defer func() { _ = mr.Dereg() }() // the request holds the memory itself
	}
	if err := p.qp.PostSend(&wr); err != nil {
		return err
	}
	if slot >= 0 {
		p.free = p.free[:len(p.free)-1]
	}
	p.sent[to]++
	p.posted++
	return nil
}

func (p *player) reap() error {
	var wcs [16]verbs.WC
	for _, wc := range wcs[:p.scq.Poll(wcs[:])] {
		if wc.Status != verbs.Success {
			return fmt.Errorf("send completion %+v", wc)
		}
		if slot := int(wc.WRID); slot >= 0 { // used again at once: nobody may read it any more
			clear(p.out.Bytes()[slot*p.max:][:p.max])
			p.free = append(p.free, slot)
		}
		p.acked++
	}
	for _, wc := range wcs[:p.rcq.Poll(wcs[:])] {
		from := int(wc.Src.UserData)
		if wc.Status != verbs.Success {
			return fmt.Errorf("receive completion %+v", wc)
		}
		want := make([]byte, wc.ByteLen)
		fillMessage(want, from, p.id, p.next[from])
		if got := p.slots[wc.WRID].Bytes()[:wc.ByteLen]; string(got) != string(want) {
			return fmt.Errorf("message %d from %d is not what was sent (%d bytes)", p.next[from], from, wc.ByteLen)
		}
		p.next[from]++
		p.got++
		if err := p.repost(int(wc.WRID)); err != nil {
			return err
		}
	}
	return nil
}

func TestRD_randomMessages(t *testing.T) {
	seeds := uint64(10)
	if verbs.Slow {
		seeds = 3
	}
	for _, c := range []struct {
		name   string
		faults sim.Faults
	}{
		{"quiet", sim.Faults{}},
		{"loss", sim.Faults{Loss: 0.05}},
		{"all", sim.Faults{Loss: 0.05, Dup: 0.05, Reorder: 0.1, Corrupt: 0.02}},
		{"storm", sim.Faults{Loss: 0.2, Dup: 0.2, Reorder: 0.2, Corrupt: 0.1}},
	} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				t.Parallel()
				const peers = 3
				f := newSimFabric(sim.Config{Seed: seed, Up: sim.LinkConfig{Faults: c.faults}}, peers)
				for i := range peers {
					p := &player{f: f, id: i, peers: peers, count: 300, max: 40000}
					f.world.Go(f.nodes[i], fmt.Sprint("rank ", i), func(t *sim.Task) error {
						if err := p.setup(t); err != nil {
							return err
						}
						return p.play(t)
					})
				}
				if err := f.world.Run(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
