package footprint

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/carrier/inet"
	"github.com/xwarp/xwarp/internal/progress"
	"github.com/xwarp/xwarp/internal/test/mesh"
	"github.com/xwarp/xwarp/verbs"
)

// datagrams is a server and its peers over reliable datagrams, each a context of
// its own on a mesh, in virtual time.
type datagrams struct {
	net    *mesh.Net
	now    mono.Time
	server *talker
	peers  []*talker
	done   int // peers that have their answer
}

// talker is one end.
type talker struct {
	member
	carrier *mesh.End
	qp      *verbs.QP
	ah      *verbs.AH // a peer's, of the server
	wakeAt  mono.Time // when it must step, whatever arrives
}

// virtual is the clock that the setup moves.
type virtual struct{ now *mono.Time }

func (v virtual) Now() mono.Time { return *v.now }

const (
	port        = 18700
	serverSends = 512 // of the one queue pair, to all peers
)

func address(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), port)
}

func openDatagrams(c Config) (setup, error) {
	net, err := mesh.New(mesh.Config{MaxPayload: 1472, Frames: 1 << 14, Depth: completions})
	if err != nil {
		return nil, err
	}
	d := &datagrams{net: net, now: mono.Time(mono.Second)}
	if d.server, err = d.talker(0, c.received(), serverSends, c.Recvs); err != nil {
		return nil, err
	}
	for range c.Recvs {
		if err := d.server.qp.PostRecv(d.server.receive()); err != nil {
			return nil, err
		}
	}
	for i := range c.Peers {
		p, err := d.talker(1+i, 2, 2, 2)
		if err != nil {
			return nil, err
		}
		if p.ah, err = p.pd.CreateAH(address(0)); err != nil {
			return nil, err
		}
		if err := p.qp.PostRecv(p.receive()); err != nil {
			return nil, err
		}
		d.peers = append(d.peers, p)
	}
	return d, nil
}

func (d *datagrams) talker(i, depth, sends, recvs int) (*talker, error) {
	t := &talker{carrier: d.net.Open(address(i), 0)}
	err := t.open(verbs.Config{
		Datagram: t.carrier, Engine: progress.New(virtual{&d.now}, spinner{}), Key: 1, Epoch: uint32(i + 1),
	}, depth, depth)
	if err != nil {
		return nil, err
	}
	t.qp, err = t.pd.CreateQP(verbs.QPInit{
		Type: verbs.RD, SendCQ: t.scq, RecvCQ: t.rcq, Cap: verbs.QPCap{MaxSendWR: sends, MaxRecvWR: recvs},
	})
	return t, err
}

// play implements setup.
func (d *datagrams) play() error {
	for asked := 0; d.done < len(d.peers); {
		for ; asked < min(d.done+wave, len(d.peers)); asked++ {
			p := d.peers[asked]
			if err := p.qp.PostSend(text(p.ah)); err != nil {
				return err
			}
			p.wakeAt = 0
		}
		if err := d.step(20 * mono.Microsecond); err != nil {
			return err
		}
	}
	return d.settle()
}

// settle lets all members go idle: long enough for every timer, and for three
// rounds of keep-alive.
func (d *datagrams) settle() error {
	for i := range 160 {
		pause := mono.Millisecond
		if i >= 100 {
			pause = 250 * mono.Millisecond
		}
		if err := d.step(pause); err != nil {
			return err
		}
	}
	if st, _ := d.server.ctx.Stats(); st.PeersLost != 0 {
		return fmt.Errorf("footprint: the server has lost %d of %d peers", st.PeersLost, len(d.peers))
	}
	return nil
}

// step moves the server until it has nothing to do, and each peer that has once.
func (d *datagrams) step(pause mono.Duration) error {
	d.now = d.now.Add(pause)
	for d.server.ctx.Engine().Step() > 0 {
		if err := d.server.answer(); err != nil {
			return err
		}
	}
	for _, p := range d.peers {
		if p.carrier.Waiting() == 0 && p.wakeAt > d.now {
			continue
		}
		p.ctx.Engine().Step()
		p.wakeAt = p.ctx.Deadline()
		if _, err := p.drained(p.scq); err != nil {
			return err
		}
		n, err := p.drained(p.rcq)
		if err != nil {
			return err
		}
		d.done += n
	}
	return nil
}

// answer answers each message to the server.
func (t *talker) answer() error {
	if _, err := t.drained(t.scq); err != nil {
		return err
	}
	for {
		wcs, err := t.completed(t.rcq)
		if err != nil || len(wcs) == 0 {
			return err
		}
		for i := range wcs {
			if err := errors.Join(t.qp.PostRecv(t.receive()), t.qp.PostSend(text(wcs[i].Src))); err != nil {
				return err
			}
		}
	}
}

// leave implements setup: without a word to the server.
func (d *datagrams) leave() error {
	var errs []error
	for _, p := range d.peers {
		errs = append(errs, p.carrier.Close())
	}
	d.peers = nil
	return errors.Join(errs...)
}

// end implements setup.
func (d *datagrams) end() error {
	d.server = nil
	return nil
}

// Addresses returns how many bytes of the heap a UDP endpoint on AF_XDP keeps
// for n addresses: what carries the datagrams of a server does not come with it.
func Addresses(n int) (int64, error) {
	arena := mem.Over(make([]byte, 4*mem.FrameSize))
	pool, err := mem.NewPool(arena, 2, false)
	if err != nil {
		return 0, err
	}
	hops := inet.Fixed{}
	for i := range n {
		hops[address(1+i).Addr()] = inet.Hop{MAC: inet.MAC{2, 0, 0, 0, 0, 1}, Source: address(0).Addr(), MTU: 1500}
	}
	before := inUse()
	ep, err := inet.New(inet.Config{Port: silent{arena: arena, pool: pool}, Resolver: hops, Local: address(0), MAC: inet.MAC{2, 0, 0, 0, 0, 2}})
	if err != nil {
		return 0, err
	}
	for i := range n {
		if _, err := ep.Resolve(address(1 + i)); err != nil {
			return 0, err
		}
	}
	after := inUse()
	runtime.KeepAlive(ep)
	runtime.KeepAlive(hops)
	return after - before, nil
}

// silent is a port without senders.
type silent struct {
	fabric.Port
	arena *mem.Arena
	pool  *mem.Pool
}

func (s silent) Caps() fabric.PortCaps { return fabric.PortCaps{MTU: 1500, MaxBufs: 1} }
func (s silent) Arena() *mem.Arena     { return s.arena }
func (s silent) Pool() *mem.Pool       { return s.pool }
