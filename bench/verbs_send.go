package bench

import (
	"github.com/xwarp/xwarp/verbs"
)

// sendTest moves messages with Send over a reliable datagram queue pair, as
// ib_send_lat and ib_send_bw do: all receives go into one buffer.
type sendTest struct{ *endpoint }

func newSendTest(p *endpoint) (*sendTest, error) {
	return &sendTest{p}, p.receive(p.depths(p.Spec.testCase()).recv - 1) // a ping posts one before it takes one
}

func (t *sendTest) Run(b Burst, rec *Recorder) error {
	t.source(verbs.OpSend, b.Size)
	switch {
	case t.Spec.kind() == PingPong:
		return t.pingPong(b, rec, t.send, t.await)
	case t.Spec.duplex():
		return t.timed(b, rec, t.exchange)
	case t.Server:
		return t.swallow(b)
	}
	return t.timed(b, rec, t.push)
}

// exchange sends n messages, at most window at a time, and takes as many of the
// other end's.
func (t *sendTest) exchange(n, window int) error {
	every := max(window/4, 1)
	var turns spin
	for sent, got := 0, 0; got < n || sent < n || t.completed != t.posted; {
		for ; sent < n && t.posted-t.completed < uint64(window); sent++ {
			if err := t.post((sent+1)%every == 0 || sent == n-1); err != nil {
				return err
			}
		}
		arrived, err := t.received(n - got)
		if err == nil {
			err = t.receive(arrived)
		}
		if err != nil {
			return err
		}
		got += arrived
		if err := t.step(&turns); err != nil {
			return err
		}
		if err := t.reap(); err != nil {
			return err
		}
	}
	return nil
}

// received takes up to limit messages and returns how many there were. Their
// receives are to be posted again.
func (t *sendTest) received(limit int) (int, error) {
	n := t.recvs.Poll(t.wc[:min(limit, len(t.wc))])
	for i := range t.wc[:n] {
		if wc := &t.wc[i]; wc.Status != verbs.Success {
			return 0, t.failed("receive", wc)
		}
	}
	return n, nil
}

// await waits for one message.
func (t *sendTest) await() error {
	var turns spin
	for {
		n, err := t.received(1)
		if n > 0 || err != nil {
			return err
		}
		if err := t.step(&turns); err != nil {
			return err
		}
	}
}

// send sends message i of n in a ping-pong. The receive of the message that it
// answers is posted again afterwards: there are others.
func (t *sendTest) send(i, n int) error {
	if err := t.turn(i, n); err != nil {
		return err
	}
	return t.receive(1)
}

func (t *sendTest) swallow(b Burst) error {
	var turns spin
	for left := b.Warmup + b.Iters; left > 0; {
		n, err := t.received(left)
		if err != nil {
			return err
		}
		if err := t.receive(n); err != nil {
			return err
		}
		if left -= n; n > 0 {
			continue
		}
		if err := t.step(&turns); err != nil {
			return err
		}
	}
	return nil
}
