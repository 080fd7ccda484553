package bench

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// lossyTest moves messages that may not arrive, or not whole: Sends over UD,
// and Write-Records. A ping that is not answered is sent again and counts as
// lost; what arrives of a stream is counted by the server, which takes what
// comes until the client says stop.
type lossyTest struct {
	*endpoint
	op      verbs.Opcode
	timeout mono.Duration // for an answer; 0 on a transport that repeats by itself
	quiet   mono.Duration // without arrivals, after which nothing more comes
	number  uint64        // of the present ping
	tally   Tally
}

// On unreliable datagrams nothing is late for longer than these: a host that
// was not scheduled for a while, and the deadline of a record of which parts
// are missing (verbs.RecordConfig).
const (
	quietSend      = 2 * mono.Millisecond
	quietRecord    = 3 * recordDeadline
	recordDeadline = 10 * mono.Millisecond
)

func newLossyTest(p *endpoint, c Case) (*lossyTest, error) {
	t := &lossyTest{endpoint: p, op: verbs.OpSend, quiet: quietSend}
	if p.Spec.Transport == "ud" {
		t.timeout = tailTimeout
	}
	if c.Family == Record {
		t.op, t.quiet = verbs.OpRDMAWriteRecord, quietRecord
		t.tally.Records = true
		t.remote(p.peer.Target)
		return t, nil
	}
	if err := p.limit(); err != nil {
		return nil, err
	}
	return t, p.receive(p.depths(c).recv)
}

func (t *lossyTest) Run(b Burst, rec *Recorder) error {
	t.source(t.op, b.Size)
	t.tally = Tally{Records: t.tally.Records}
	pingPong := t.Spec.kind() == PingPong
	if t.Server {
		err := t.serve(b, pingPong)
		rec.Arrived(t.tally)
		return err
	}
	if pingPong {
		return t.ping(b, rec)
	}
	return t.timed(b, rec, t.push)
}

// take takes what has arrived, and returns how many messages there were and
// how many of them are whole.
func (t *lossyTest) take() (n, whole int, err error) {
	n = t.recvs.Poll(t.wc[:])
	for i := range t.wc[:n] {
		wc := &t.wc[i]
		if wc.Status != verbs.Success {
			return n, whole, t.failed(wc.Opcode, wc)
		}
		t.tally.Messages++
		t.tally.Bytes += int64(wc.ByteLen)
		if wc.Opcode == verbs.OpRecv {
			whole++
			if err := t.qp.PostRecv(&t.rwr); err != nil {
				return n, whole, err
			}
			continue
		}
		if wc.Record.Whole {
			whole++
		}
		wc.Record.Release()
		wc.Record = nil
	}
	t.tally.Whole += whole
	return n, whole, nil
}

// serve echoes or swallows what comes until the client says stop and nothing
// more is under way.
func (t *lossyTest) serve(b Burst, echo bool) error {
	var turns spin
	var first, last mono.Time
	for {
		n, whole, err := t.take()
		if err != nil {
			return err
		}
		if n > 0 {
			last = t.ctx.Engine().Now()
			if first == 0 {
				first = last
			}
			t.tally.Elapsed = last.Sub(first)
		}
		if echo && whole > 0 {
			t.setNumber(t.arrivedNumber(b.Size), b.Size)
			if err := t.turn(int(t.posted), 0); err != nil {
				return err
			}
		}
		if n > 0 || t.ctx.Engine().Step() > 0 {
			continue
		}
		if turns.idle() && t.Pair.Spoken() && t.ctx.Engine().Now().Sub(last) > t.quiet {
			return nil
		}
		t.ctx.Engine().Park()
	}
}

// numberLen is how many bytes of a message tell which ping it is.
func numberLen(size int) int { return min(size, 8) }

// setNumber writes the number of a ping into the message to send, as much of
// it as has room.
func (t *lossyTest) setNumber(number uint64, size int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], number)
	copy(t.mr.Bytes()[:numberLen(size)], b[:])
}

// arrivedNumber reads it from the message that arrived last.
func (t *lossyTest) arrivedNumber(size int) uint64 {
	var b [8]byte
	copy(b[:numberLen(size)], t.mr.Bytes()[t.half:])
	return binary.LittleEndian.Uint64(b[:])
}

func (t *lossyTest) ping(b Burst, rec *Recorder) error {
	pings := 0
	before := t.Clock.Now()
	for i := -b.Warmup; i < b.Iters; i++ {
		t.number++
		t.setNumber(t.number, b.Size)
		for {
			if err := t.turn(int(t.posted), 0); err != nil { // there is no last one to wait for
				return err
			}
			pings++
			answered, err := t.pong(b.Size, before)
			if err != nil {
				return err
			}
			if answered {
				break
			}
			rec.Lost(1)
			before = t.Clock.Now() // what was lost took no time that means anything
		}
		now := t.Clock.Now()
		if i >= 0 {
			rec.Add(now.Sub(before))
		}
		before = now
	}
	rec.Asked(pings)
	return nil
}

// pong waits for the answer to the present ping, for as long as there is hope.
func (t *lossyTest) pong(size int, asked mono.Time) (answered bool, err error) {
	mask := ^uint64(0) >> (64 - 8*numberLen(size)) // shifts by 64 give 0
	var turns spin
	for {
		_, whole, err := t.take()
		if err != nil {
			return false, err
		}
		if whole > 0 && t.arrivedNumber(size) == t.number&mask {
			return true, nil
		}
		if err := t.step(&turns); err != nil {
			return false, err
		}
		if t.timeout > 0 && t.ctx.Engine().Now().Sub(asked) > t.timeout {
			return false, nil
		}
	}
}
