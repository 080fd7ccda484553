package bench

import (
	"fmt"

	"github.com/xwarp/xwarp/verbs"
)

// The loops that the tests of verbs share. Each is written as perftest has it:
// requests come from one prepared work request, most of them ask for no
// completion, and one completion stands for all requests before it.

// source makes the next requests send size bytes from the first half of the
// region: inline when they are few, as perftest does.
func (p *endpoint) source(op verbs.Opcode, size int) {
	p.wr.Opcode, p.wr.Flags = op, 0
	p.wr.NumSGE, p.wr.SGL[0], p.wr.InlineData = 1, p.mr.SGE(0, size), nil
	if size <= verbs.MaxInline {
		p.wr.NumSGE, p.wr.InlineData = 0, p.mr.Bytes()[:size]
		p.wr.Flags = verbs.Inline
	}
}

// remote makes them name memory of the other end.
func (p *endpoint) remote(addr uint64) { p.wr.RKey, p.wr.RemoteAddr = p.peer.RKey, addr }

// receive posts n receives.
func (p *endpoint) receive(n int) error {
	for range n {
		if err := p.qp.PostRecv(&p.rwr); err != nil {
			return err
		}
	}
	return nil
}

// step lets the engine work. It reports errOver when there is nothing to do
// and the other end has given up.
func (p *endpoint) step(turns *spin) error {
	if p.ctx.Engine().Step() > 0 {
		return nil
	}
	if turns.idle() && p.Pair.Over() {
		return errOver
	}
	p.ctx.Engine().Park() // never blocks, see End.device
	return nil
}

// post posts one request. With signal its completion will be reported, and by
// it that of all requests before it: a queue pair does them in order.
func (p *endpoint) post(signal bool) error {
	p.wr.Flags &^= verbs.Signaled
	if signal {
		p.wr.Flags |= verbs.Signaled
	}
	p.posted++
	p.wr.WRID = p.posted
	return p.qp.PostSend(&p.wr)
}

// reap takes the completions of send requests.
func (p *endpoint) reap() error {
	n := p.sends.Poll(p.wc[:])
	for i := range p.wc[:n] {
		wc := &p.wc[i]
		if wc.Status != verbs.Success {
			return p.failed(p.wr.Opcode, wc)
		}
		p.completed = wc.WRID
	}
	return nil
}

// failed returns the error of a completion. The cause may be the network device.
func (p *endpoint) failed(what any, wc *verbs.WC) error {
	if trouble := p.ctx.Trouble(); trouble != nil {
		return fmt.Errorf("%v: %v: %w", what, wc.Status, trouble)
	}
	return fmt.Errorf("%v: %v", what, wc.Status)
}

// drain waits until all requests are done. The last one was signaled.
func (p *endpoint) drain() error {
	var turns spin
	for p.completed != p.posted {
		if err := p.step(&turns); err != nil {
			return err
		}
		if err := p.reap(); err != nil {
			return err
		}
	}
	return nil
}

// signalEvery is how often a ping-pong asks for a completion.
const signalEvery = 64

// turn posts request i of n of a ping-pong, and takes completions in time.
func (p *endpoint) turn(i, n int) error {
	if p.posted-p.completed >= 2*signalEvery {
		if err := p.reap(); err != nil {
			return err
		}
	}
	return p.post(i%signalEvery == 0 || i == n-1)
}

// pingPong sends a message and waits for one, again and again, and times that; or, on the
// server, the other way round. send sends message i of n.
func (p *endpoint) pingPong(b Burst, rec *Recorder, send func(i, n int) error, await func() error) error {
	total := b.Warmup + b.Iters
	if !p.Server {
		err := p.trips(b, rec, func(i int) error {
			if err := send(i, total); err != nil {
				return err
			}
			return await()
		})
		if err != nil {
			return err
		}
		return p.drain()
	}
	for i := range total {
		if err := await(); err != nil {
			return err
		}
		if err := send(i, total); err != nil {
			return err
		}
	}
	return p.drain()
}

// push posts n requests, at most window at a time, and waits until all are
// done.
func (p *endpoint) push(n, window int) error {
	every := max(window/4, 1)
	var turns spin
	for i := 0; i < n; {
		for ; i < n && p.posted-p.completed < uint64(window); i++ {
			if err := p.post((i+1)%every == 0 || i == n-1); err != nil {
				return err
			}
		}
		if err := p.step(&turns); err != nil {
			return err
		}
		if err := p.reap(); err != nil {
			return err
		}
	}
	return p.drain()
}

// timed measures how long it takes to move n messages, a window of them at a time;
// with push until all requests are done, that is confirmed by the other end. Where
// both ends do so, the server tells the client what it has measured.
func (p *endpoint) timed(b Burst, rec *Recorder, move func(n, window int) error) error {
	elapsed, err := p.clocked(b, func(n int) error { return move(n, b.Window) })
	if err != nil {
		return err
	}
	if !p.Server {
		rec.Stream(b.Iters, elapsed)
		return nil
	}
	rec.Arrived(Tally{Messages: b.Iters, Bytes: int64(b.Iters) * int64(b.Size), Elapsed: elapsed})
	return p.attend()
}

// attend is the end that one-sided operations happen to: it only makes
// progress, until the client says stop.
func (p *endpoint) attend() error {
	var turns spin
	for {
		if p.ctx.Engine().Step() > 0 {
			continue
		}
		if turns.idle() && p.Pair.Spoken() {
			return nil
		}
		p.ctx.Engine().Park()
	}
}
