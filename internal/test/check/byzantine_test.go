package check

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/sim"
	"github.com/xwarp/xwarp/iwarp/dgram"
	"github.com/xwarp/xwarp/verbs"
)

// byzantine is a network of three: a victim that is attacked, a peer that works
// with it all the while, and an attacker that sends what it likes.
type byzantine struct {
	t      *testing.T
	world  *sim.World
	nodes  []*sim.Node
	hops   inet.Fixed
	victim *post
	peer   *post
	wire   [][]byte // what the peer has sent so far
	shadow []byte   // what the peer has put into the victim's memory
	over   bool     // the attack
	done   bool     // the peer has worked on after it
}

const attackKey = 0x5ec7e7

// post is one of the two honest ends.
type post struct {
	ctx      *verbs.Context
	pd       *verbs.PD
	scq, rcq *verbs.CQ
	qp, ud   *verbs.QP
	open     *chunk // peers may do all
	readable *chunk // peers may read
	secret   *chunk // peers may do nothing
	sink     *chunk
}

// tap is a carrier that keeps a copy of what it sends.
type tap struct {
	fabric.Datagram
	s *byzantine
}

func (p tap) Send(b *fabric.Batch) {
	for _, pkt := range b.Pkts {
		var bytes []byte
		for _, d := range b.Descs[pkt.First : pkt.First+pkt.Bufs] {
			bytes = append(bytes, p.Arena().At(d.Addr, int(d.Len))...)
		}
		p.s.wire = append(p.s.wire, bytes)
	}
	p.Datagram.Send(b)
}

func newByzantine(t *testing.T) *byzantine {
	s := &byzantine{t: t, world: sim.New(sim.Config{Seed: 5, MTU: 1500, ArenaSize: 4 << 20, Frames: 256}), hops: inet.Fixed{}}
	s.nodes = s.world.Nodes(3)
	for _, n := range s.nodes {
		s.hops[n.Addr()] = inet.Hop{MAC: n.MAC(), Source: n.Addr(), MTU: 1500}
	}
	return s
}

func (s *byzantine) addr(i int) netip.AddrPort { return netip.AddrPortFrom(s.nodes[i].Addr(), port) }

// endpoint opens a UDP endpoint on node i that says that it is at an address.
func (s *byzantine) endpoint(i int, as netip.AddrPort, steer func([]byte) bool) (fabric.Datagram, error) {
	p, err := s.nodes[i].Open(steer)
	if err != nil {
		return nil, err
	}
	return inet.New(inet.Config{Port: p, Resolver: s.hops, Local: as, MAC: s.nodes[i].MAC()})
}

func (s *byzantine) open(task *sim.Task, i int) (*post, error) {
	dg, err := s.endpoint(i, s.addr(i), nil)
	if err != nil {
		return nil, err
	}
	if i == 1 {
		dg = tap{dg, s}
	}
	p := &post{}
	p.ctx, err = verbs.New(verbs.Config{
		Datagram: dg, Engine: progress.New(task, task), Key: attackKey, Epoch: task.Rand().Uint32() | 1, ZeroBased: true,
	})
	if err != nil {
		return nil, err
	}
	p.pd, _ = p.ctx.AllocPD()
	p.scq, _ = p.ctx.CreateCQ(verbs.CQInit{})
	p.rcq, _ = p.ctx.CreateCQ(verbs.CQInit{})
	if p.qp, err = p.pd.CreateQP(verbs.QPInit{Type: verbs.RD, SendCQ: p.scq, RecvCQ: p.rcq}); err != nil {
		return nil, err
	}
	if p.ud, err = p.pd.CreateQP(verbs.QPInit{Type: verbs.UD, SendCQ: p.scq, RecvCQ: p.rcq}); err != nil {
		return nil, err
	}
	all := verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	for _, x := range []struct {
		to     **chunk
		access verbs.Access
	}{{&p.open, all}, {&p.readable, verbs.RemoteRead}, {&p.secret, verbs.LocalWrite}, {&p.sink, verbs.LocalWrite}} {
		if *x.to, err = newChunk(task.Rand(), p.pd, p.ctx, regionLen, x.access); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// defend is the victim's program: it receives what the peer sends, in order.
func (s *byzantine) defend(task *sim.Task) (err error) {
	if s.victim, err = s.open(task, 0); err != nil {
		return err
	}
	f := s.victim
	s.shadow = bytes.Clone(f.open.bytes())
	for i := range 200 {
		if err := f.qp.PostRecv(recvAt(f.sink, i)); err != nil {
			return err
		}
	}
	for next, end := uint64(0), task.Now()+5e8; !s.done; {
		var wcs [8]verbs.WC
		for _, wc := range wcs[:f.rcq.Poll(wcs[:])] {
			if wc.SrcAddr.AddrPort() != s.addr(1) {
				continue // of the attacker, which may send too when it is of the job
			}
			if got := binary.LittleEndian.Uint64(f.sink.bytes()[16*wc.WRID:]); wc.Status != verbs.Success || got != next {
				return fmt.Errorf("received %+v with %d, want %d", wc, got, next)
			}
			next++
			if err := f.qp.PostRecv(recvAt(f.sink, int(wc.WRID))); err != nil {
				return err
			}
		}
		if task.Now() > end {
			return fmt.Errorf("the peer has not finished")
		}
		if f.ctx.Engine().Step() == 0 {
			task.Sleep(1000)
		}
	}
	return s.inspect()
}

func recvAt(c *chunk, i int) *verbs.RecvWR {
	return &verbs.RecvWR{WRID: uint64(i), NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{c.mr.SGE(16*i, 16)}}
}

// inspect looks at all memory of the victim.
func (s *byzantine) inspect() error {
	f := s.victim
	if !bytes.Equal(f.open.bytes(), s.shadow) {
		return fmt.Errorf("memory that the peer writes holds something else")
	}
	for name, c := range map[string]*chunk{"open": f.open, "readable": f.readable, "secret": f.secret} {
		if !c.intact() || name != "open" && !bytes.Equal(c.bytes(), bytes.Repeat([]byte{canary}, regionLen)) {
			return fmt.Errorf("memory %q or the canaries around it were changed", name)
		}
	}
	return nil
}

// work is the peer's program: rounds of Write, Send and Read until the
// attack is over, and ten more.
func (s *byzantine) work(task *sim.Task) (err error) {
	task.Sleep(1000)
	if s.peer, err = s.open(task, 1); err != nil {
		return err
	}
	f := s.peer
	ah, err := f.pd.CreateAH(s.addr(0))
	if err != nil {
		return err
	}
	for i, left := uint64(0), 10; left > 0; i++ {
		if s.over {
			left--
		}
		if err := s.round(task, ah, i); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		task.Sleep(20_000)
	}
	s.done = true
	return nil
}

func (s *byzantine) round(task *sim.Task, ah *verbs.AH, i uint64) error {
	f, at, n := s.peer, int(i*97%2000), 300+int(i*31%1700)
	Fill(f.open.bytes()[:n], i<<20|7, 0)
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], i)
	key := s.victim.open.mr.RKey()
	for _, wr := range []verbs.SendWR{
		{Opcode: verbs.OpRDMAWrite, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{f.open.mr.SGE(0, n)}, RKey: key, RemoteAddr: uint64(at)},
		{Opcode: verbs.OpSend, Flags: verbs.Inline, InlineData: number[:]},
		{Opcode: verbs.OpRDMARead, Flags: verbs.Signaled, NumSGE: 1, SGL: [verbs.MaxSGE]verbs.SGE{f.sink.mr.SGE(0, n)}, RKey: key, RemoteAddr: uint64(at)},
	} {
		wr.AH = ah
		if err := f.qp.PostSend(&wr); err != nil {
			return err
		}
	}
	var wc [1]verbs.WC
	for f.scq.Poll(wc[:]) == 0 {
		if f.ctx.Engine().Step() == 0 {
			f.ctx.Engine().Park()
		}
		task.Now()
	}
	copy(s.shadow[at:], f.open.bytes()[:n])
	if wc[0].Status != verbs.Success || !bytes.Equal(f.sink.bytes()[:n], f.open.bytes()[:n]) {
		return fmt.Errorf("%+v, or what was read is not what was written", wc[0])
	}
	return nil
}

// attacker is the attacker: a UDP endpoint of its own and one that pretends to be
// the peer's.
type attacker struct {
	*byzantine
	task      *sim.Task
	own, fake fabric.Datagram
	rx        *fabric.Batch
	src, dst  uint32 // numbers of its association, once it has one
	lsn       uint32
}

// run plays an attack to its end.
func (s *byzantine) run(attack func(*attacker)) {
	s.world.Go(s.nodes[0], "victim", s.defend)
	s.world.Go(s.nodes[1], "peer", s.work)
	s.world.Go(s.nodes[2], "attacker", func(task *sim.Task) error {
		defer func() { s.over = true }()
		r := &attacker{byzantine: s, task: task, rx: fabric.NewBatch(16, 4)}
		var err error
		if r.fake, err = s.endpoint(2, s.addr(1), func([]byte) bool { return false }); err != nil {
			return err
		}
		if r.own, err = s.endpoint(2, s.addr(2), nil); err != nil {
			return err
		}
		task.Sleep(1_000_000) // the others are at work
		attack(r)
		task.Sleep(1_000_000)
		return nil
	})
	if err := s.world.Run(); err != nil {
		s.t.Fatal(err)
	}
}

// send sends a datagram to the victim, from the attacker's own address or as if
// from the peer's.
func (r *attacker) send(from fabric.Datagram, payload []byte) {
	path, err := from.Resolve(r.addr(0))
	if err != nil {
		r.t.Fatal(err)
	}
	addr, ok := from.Frame()
	if !ok || len(payload) > 1472 {
		r.t.Fatalf("no frame for %d bytes", len(payload))
	}
	addr += inet.Headroom
	copy(from.Arena().At(addr, len(payload)), payload)
	b := fabric.NewBatch(1, 1)
	b.Descs = append(b.Descs, fabric.Desc{Addr: addr, Len: uint32(len(payload))})
	b.Pkts = append(b.Pkts, fabric.Packet{Bufs: 1, Len: int32(len(payload)), To: path})
	from.Send(b)
	from.Flush()
	r.task.Sleep(3000)
	from.Flush()
}

// datagram makes an LLP datagram of the job.
func datagram(h dgram.Header, body ...byte) []byte {
	if h.Key == 0 {
		h.Key = attackKey
	}
	h.Flags |= dgram.FlagCRC
	b := make([]byte, dgram.HeaderLen, dgram.HeaderLen+len(body))
	h.Put(b)
	b = append(b, body...)
	dgram.Seal(b, dgram.CRC(0, b[dgram.CRCLen:]))
	return b
}

func hello(t dgram.Type, src, dst uint32, size int) []byte {
	body := make([]byte, size-dgram.HeaderLen)
	h := dgram.Hello{MaxPayload: 1472, Length: uint16(size)}
	h.Put(body)
	return datagram(dgram.Header{Type: t, SrcEpoch: src, DstEpoch: dst}, body...)
}

// join makes the attacker a member of the job: it knows the key, and has an
// association with the victim.
func (r *attacker) join() {
	r.src = 0x0badcafe + r.lsn
	r.send(r.own, hello(dgram.TypeHello, r.src, 0, 1232))
	for range 1000 {
		r.task.Sleep(1000)
		n := r.own.Recv(r.rx)
		for i := range n {
			var h dgram.Header
			d := r.rx.Descs[r.rx.Pkts[i].First]
			if h.Parse(r.own.Arena().At(d.Addr, int(d.Len))) && h.Type == dgram.TypeHelloAck && h.DstEpoch == r.src {
				r.dst = h.SrcEpoch
			}
		}
		r.own.Release(r.rx)
		r.own.Flush()
		if r.dst != 0 {
			r.lsn = r.src
			return
		}
	}
	r.t.Fatal("the victim does not answer a Hello")
}

// say sends ULPDUs on the attacker's association, which is made anew first.
func (r *attacker) say(ulpdus ...[]byte) {
	r.dst = 0
	r.join()
	r.more(ulpdus...)
}

// more sends more of them on the same association.
func (r *attacker) more(ulpdus ...[]byte) {
	var body []byte
	for _, u := range ulpdus {
		body = binary.BigEndian.AppendUint16(body, uint16(len(u)))
		body = append(body, u...)
	}
	r.send(r.own, datagram(dgram.Header{
		Type: dgram.TypeData, Count: uint8(len(ulpdus)), SrcEpoch: r.src, DstEpoch: r.dst, LSN: serialOf(r.lsn), Ack: serialOf(r.dst), Window: 64, Credit: 63,
	}, body...))
	r.lsn += uint32(len(ulpdus))
}
