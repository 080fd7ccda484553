package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/xwarp/xwarp/internal/mem"
	"github.com/xwarp/xwarp/verbs"
)

// depth is how many receives are posted, and how many sends may be. A ping-pong
// has one message under way; longer queues would only push each other out of
// the cache.
func (s *sendBench) depth() int {
	if isPingPong(s.Spec.Test) {
		return 2 * signalEvery
	}
	return MaxWindow
}

// sendBench moves messages with verbs Send over a reliable datagram queue
// pair, as ib_send_lat and ib_send_bw do: all receives go into one buffer.
type sendBench struct {
	*End
	ctx   *verbs.Context
	qp    *verbs.QP
	sends *verbs.CQ
	recvs *verbs.CQ
	mr    *verbs.MR
	half  int // bytes of the region to send from; the rest receives
	wc    [32]verbs.WC
	wr    verbs.SendWR
	rwr   verbs.RecvWR

	posted    uint64 // Sends so far, which is the WRID of the last one
	completed uint64 // WRID of the last one that is known to be done
}

func openSend(e *End) (Bench, error) {
	ctx, err := openContext(e)
	if err != nil {
		return nil, err
	}
	s := &sendBench{End: e, ctx: ctx}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	return s, nil
}

func (s *sendBench) open() error {
	depth := s.depth()
	pd, err := s.ctx.AllocPD()
	if err != nil {
		return err
	}
	if s.sends, err = s.ctx.CreateCQ(verbs.CQInit{Depth: depth}); err != nil {
		return err
	}
	if s.recvs, err = s.ctx.CreateCQ(verbs.CQInit{Depth: depth}); err != nil {
		return err
	}
	s.qp, err = pd.CreateQP(verbs.QPInit{
		Type: verbs.RD, SendCQ: s.sends, RecvCQ: s.recvs,
		Cap: verbs.QPCap{MaxSendWR: depth, MaxRecvWR: depth},
	})
	if err != nil {
		return err
	}
	s.half = (max(slices.Max(s.Spec.Sizes), 1) + mem.FrameSize - 1) &^ (mem.FrameSize - 1)
	arena := s.ctx.Arena()
	addr, err := arena.Alloc(2*s.half, mem.FrameSize)
	if err != nil {
		return err
	}
	if s.mr, err = pd.RegMR(arena.At(addr, 2*s.half), verbs.LocalWrite); err != nil {
		return err
	}
	ah, err := s.meet(pd)
	if err != nil {
		return err
	}
	s.wr = verbs.SendWR{Opcode: verbs.OpSend, NumSGE: 1, AH: ah}
	s.rwr = verbs.RecvWR{NumSGE: 1}
	s.rwr.SGL[0] = s.mr.SGE(s.half, s.half)
	return s.post(depth - 1) // a ping posts one before it takes one
}

// meet exchanges addresses and returns the handle of the other end.
func (s *sendBench) meet(pd *verbs.PD) (*verbs.AH, error) {
	if err := s.Pair.Put("address", s.ctx.Addr().String()); err != nil {
		return nil, err
	}
	if err := s.Pair.Fence(); err != nil {
		return nil, err
	}
	text, err := s.Pair.peerValue("address")
	if err != nil {
		return nil, err
	}
	peer, err := netip.ParseAddrPort(text)
	if err != nil {
		return nil, fmt.Errorf("the other end gave %q as its address", text)
	}
	return pd.CreateAH(peer)
}

// post posts n receives.
func (s *sendBench) post(n int) error {
	for range n {
		if err := s.qp.PostRecv(&s.rwr); err != nil {
			return err
		}
	}
	return nil
}

func (s *sendBench) Carrier() string { return "verbs on " + s.ctx.Attr().Carrier }

// Progress acknowledges what came last.
func (s *sendBench) Progress() { s.ctx.Engine().Step() }

func (s *sendBench) Close() error { return s.ctx.Close() }

func (s *sendBench) Run(b Burst, rec *Recorder) error {
	s.wr.NumSGE, s.wr.SGL[0], s.wr.InlineData = 1, s.mr.SGE(0, b.Size), nil
	s.wr.Flags = 0
	if b.Size <= verbs.MaxInline {
		s.wr.NumSGE, s.wr.InlineData = 0, s.mr.Bytes()[:b.Size]
		s.wr.Flags = verbs.Inline
	}
	pingPong := isPingPong(s.Spec.Test)
	switch {
	case pingPong && s.Server:
		return s.echo(b)
	case pingPong:
		return s.ping(b, rec)
	case s.Server:
		return s.swallow(b)
	}
	return s.stream(b, rec)
}

// step lets the engine work. It reports errOver when there is nothing
// to do and the other end has something to say.
func (s *sendBench) step(turns *spin) error {
	if s.ctx.Engine().Step() > 0 {
		return nil
	}
	if turns.idle() && s.Pair.Over() {
		return errOver
	}
	s.ctx.Engine().Park() // never blocks, see openContext
	return nil
}

// send posts one Send. With signal its completion will be reported, and by it
// that of all Sends before it: a queue pair does them in order.
func (s *sendBench) send(signal bool) error {
	s.wr.Flags &^= verbs.Signaled
	if signal {
		s.wr.Flags |= verbs.Signaled
	}
	s.posted++
	s.wr.WRID = s.posted
	return s.qp.PostSend(&s.wr)
}

// sent takes the completions of Sends.
func (s *sendBench) sent() error {
	n := s.sends.Poll(s.wc[:])
	for i := range s.wc[:n] {
		wc := &s.wc[i]
		if wc.Status != verbs.Success {
			return fmt.Errorf("send: %v", wc.Status)
		}
		s.completed = wc.WRID
	}
	return nil
}

// drain waits until all Sends are acknowledged. The last one was signaled.
func (s *sendBench) drain() error {
	var turns spin
	for s.completed != s.posted {
		if err := s.step(&turns); err != nil {
			return err
		}
		if err := s.sent(); err != nil {
			return err
		}
	}
	return nil
}

// received takes up to limit messages and returns how many there were. Their
// receives are to be posted again.
func (s *sendBench) received(limit int) (int, error) {
	n := s.recvs.Poll(s.wc[:min(limit, len(s.wc))])
	for i := range s.wc[:n] {
		if wc := &s.wc[i]; wc.Status != verbs.Success {
			return 0, fmt.Errorf("receive: %v", wc.Status)
		}
	}
	return n, nil
}

// await waits for one message.
func (s *sendBench) await() error {
	var turns spin
	for {
		n, err := s.received(1)
		if n > 0 || err != nil {
			return err
		}
		if err := s.step(&turns); err != nil {
			return err
		}
	}
}

// turn sends message i of n in a ping-pong, and takes completions in time. The
// receive of the message that it answers is posted again afterwards: there are
// others.
func (s *sendBench) turn(i, n int) error {
	if s.posted-s.completed >= 2*signalEvery {
		if err := s.sent(); err != nil {
			return err
		}
	}
	if err := s.send(i%signalEvery == 0 || i == n-1); err != nil {
		return err
	}
	return s.post(1)
}

// signalEvery is how often a ping-pong asks for a completion.
const signalEvery = 64

func (s *sendBench) ping(b Burst, rec *Recorder) error {
	total := b.Warmup + b.Iters
	before := s.Clock.Now()
	for i := range total {
		if err := s.turn(i, total); err != nil {
			return err
		}
		if err := s.await(); err != nil {
			return err
		}
		now := s.Clock.Now()
		if i >= b.Warmup {
			rec.Add(now.Sub(before))
		}
		before = now
	}
	return s.drain()
}

func (s *sendBench) echo(b Burst) error {
	total := b.Warmup + b.Iters
	for i := range total {
		if err := s.await(); err != nil {
			return err
		}
		if err := s.turn(i, total); err != nil {
			return err
		}
	}
	return s.drain()
}

func (s *sendBench) stream(b Burst, rec *Recorder) error {
	if err := s.push(b.Warmup, b.Window); err != nil {
		return err
	}
	start := s.Clock.Now()
	if err := s.push(b.Iters, b.Window); err != nil {
		return err
	}
	rec.Stream(b.Iters, s.Clock.Now().Sub(start))
	return nil
}

// push sends n messages, at most window at a time, and waits until all are
// acknowledged.
func (s *sendBench) push(n, window int) error {
	every := max(window/4, 1)
	var turns spin
	for i := 0; i < n; {
		for ; i < n && s.posted-s.completed < uint64(window); i++ {
			if err := s.send((i+1)%every == 0 || i == n-1); err != nil {
				return err
			}
		}
		if err := s.step(&turns); err != nil {
			return err
		}
		if err := s.sent(); err != nil {
			return err
		}
	}
	return s.drain()
}

func (s *sendBench) swallow(b Burst) error {
	var turns spin
	for left := b.Warmup + b.Iters; left > 0; {
		n, err := s.received(left)
		if err != nil {
			return err
		}
		if err := s.post(n); err != nil {
			return err
		}
		if left -= n; n > 0 {
			continue
		}
		if err := s.step(&turns); err != nil {
			return err
		}
	}
	return nil
}
