package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/xwarp/xwarp/verbs"
)

// confirmedWrites is writeTest over a connection, where a Write is complete when
// TCP has taken it: a stream ends with a Read, which arrives behind all Writes
// and whose answer says that they are in place (RFC 5040, section 5.5).
type confirmedWrites struct{ writeTest }

func (t *confirmedWrites) Run(b Burst, rec *Recorder) error {
	if t.Server && !t.Spec.duplex() || t.Spec.kind() == PingPong {
		return t.writeTest.Run(b, rec)
	}
	return t.timed(b, rec, func(n, window int) error { return t.confirmed(b.Size, n, window) })
}

// confirmed writes n messages and waits until the other end has them.
func (t *confirmedWrites) confirmed(size, n, window int) error {
	t.source(verbs.OpRDMAWrite, size)
	t.remote(t.peer.Target)
	if err := t.push(n, window); err != nil {
		return err
	}
	t.wr.Opcode, t.wr.Flags, t.wr.InlineData = verbs.OpRDMARead, 0, nil
	t.wr.NumSGE, t.wr.SGL[0] = 1, t.mr.SGE(t.half, 1)
	if err := t.post(true); err != nil {
		return err
	}
	return t.drain()
}

// creditTest is send_bw and send_rate over connections, to each in turns. A Send
// is complete when TCP has taken it, and one that finds no receive ends the
// connection. So the receiver counts the messages that it has taken, and posted
// receives for, in a word of the sender's memory, by RDMA Write: at most a
// window of messages is not counted. ib_send_bw has the same for iWARP.
type creditTest struct {
	flows
	counts []count // of each connection
}

// count is how many messages have come over a connection. For the server posted of its
// flow counts the Writes that say so.
type count struct {
	sent  uint64 // are complete here, on the client
	word  []byte // that the client reads and the server writes from
	taken uint64 // the server has taken
	told  uint64 // the client knows of
	pause uint64 // after which the client waits for the count: the end of warm-up
}

const (
	creditSize  = 8  // bytes
	creditEvery = 32 // Writes of credits: one of them asks for a completion
)

func newCreditTest(p *endpoint) (*creditTest, error) {
	t := &creditTest{flows: flows{endpoint: p}}
	for i, qp := range p.qps {
		at := i * creditSize // where the server sends from; the client is written to
		if !p.Server {
			at += p.half
		}
		t.each = append(t.each, flow{qp: qp})
		t.counts = append(t.counts, count{word: p.mr.Bytes()[at : at+creditSize]})
		if !p.Server {
			continue
		}
		t.rwr.WRID = uint64(i)
		for range p.Spec.Window {
			if err := qp.PostRecv(&t.rwr); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func (t *creditTest) Run(b Burst, rec *Recorder) error {
	if b.Window > t.Spec.Window {
		return fmt.Errorf("burst with a window of %d, and receives are posted for %d", b.Window, t.Spec.Window)
	}
	if t.Server {
		return t.swallow(b)
	}
	t.source(verbs.OpSend, b.Size)
	return t.stream(b, rec, func(n int) error { return t.push(n, b.Window, t.news) })
}

// news takes completions and counts.
func (t *creditTest) news() error {
	err := t.sent(func(i int, count uint64) { t.counts[i].sent = count })
	for i := range t.counts {
		c := &t.counts[i]
		t.each[i].done = min(c.sent, binary.NativeEndian.Uint64(c.word))
	}
	return err
}

// swallow takes what comes.
func (t *creditTest) swallow(b Burst) error {
	for i := range t.each {
		f := &t.each[i]
		t.counts[i].pause = f.goal + uint64(b.Warmup/len(t.each))
		f.goal = t.counts[i].pause + uint64(b.Iters/len(t.each))
	}
	every := uint64(max(b.Window/4, 1))
	var turns spin
	for left := b.Warmup + b.Iters; left > 0; {
		n, err := t.take(every)
		if err != nil {
			return err
		}
		if left -= n; n > 0 {
			continue
		}
		if err := t.step(&turns); err != nil {
			return err
		}
		if err := t.reap(); err != nil {
			return err
		}
	}
	return nil
}

// take takes messages, posts their receives again and tells the client.
func (t *creditTest) take(every uint64) (int, error) {
	n := t.recvs.Poll(t.wc[:])
	for i := range t.wc[:n] {
		wc := &t.wc[i]
		if wc.Status != verbs.Success {
			return 0, t.failed("receive", wc)
		}
		f, c := &t.each[wc.WRID], &t.counts[wc.WRID]
		t.rwr.WRID = wc.WRID
		if err := f.qp.PostRecv(&t.rwr); err != nil {
			return 0, err
		}
		c.taken++
		if c.taken-c.told < every && c.taken != c.pause && c.taken != f.goal {
			continue
		}
		if err := t.tell(int(wc.WRID)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// tell writes the count of the i-th connection to the client.
func (t *creditTest) tell(i int) error {
	f, c := &t.each[i], &t.counts[i]
	c.told = c.taken
	binary.NativeEndian.PutUint64(c.word, c.taken)
	f.posted++
	t.wr = verbs.SendWR{
		WRID: f.posted, Opcode: verbs.OpRDMAWrite, Flags: verbs.Inline, InlineData: c.word,
		RKey: t.peer.RKey, RemoteAddr: t.peer.Target + uint64(i*creditSize),
	}
	if f.posted%creditEvery == 0 {
		t.wr.Flags |= verbs.Signaled
	}
	return f.qp.PostSend(&t.wr)
}
