package bench

import "github.com/xwarp/xwarp/verbs"

// writeTest moves messages with RDMA Write, as ib_write_lat and ib_write_bw
// do. Nothing tells the target of a Write, so in the ping-pong each end polls
// the last byte of its half of the region, which counts the messages; in the
// stream the target does nothing but make progress.
//
// When datagrams are lost the last byte may be there before others are: what
// has been placed may be seen before it is delivered (RFC 5041, section 5).
type writeTest struct {
	*endpoint
	count byte // of the last message, modulo 256
}

func (t *writeTest) Run(b Burst, rec *Recorder) error {
	t.source(verbs.OpRDMAWrite, b.Size)
	t.remote(t.peer.Target)
	pingPong := t.Spec.kind() == PingPong
	if pingPong {
		*t.flag(b.Size) = t.count // an earlier burst may have left the next count here
	}
	switch {
	case pingPong && t.Server:
		return t.echo(b)
	case pingPong:
		return t.ping(b, rec)
	case t.Server && !t.Spec.duplex():
		return t.attend()
	}
	return t.timed(b, rec, t.push)
}

// flag returns the byte that the other end writes last.
func (t *writeTest) flag(size int) *byte { return &t.mr.Bytes()[t.half+size-1] }

// write writes message i of n in a ping-pong.
func (t *writeTest) write(i, n, size int) error {
	t.mr.Bytes()[size-1] = t.count
	return t.turn(i, n)
}

// await waits for the message with the present count.
func (t *writeTest) await(flag *byte) error {
	var turns spin
	for *flag != t.count {
		if err := t.step(&turns); err != nil {
			return err
		}
	}
	return nil
}

func (t *writeTest) ping(b Burst, rec *Recorder) error {
	flag, total := t.flag(b.Size), b.Warmup+b.Iters
	err := t.trips(b, rec, func(i int) error {
		t.count++
		if err := t.write(i, total, b.Size); err != nil {
			return err
		}
		return t.await(flag)
	})
	if err != nil {
		return err
	}
	return t.drain()
}

func (t *writeTest) echo(b Burst) error {
	flag, total := t.flag(b.Size), b.Warmup+b.Iters
	for i := range total {
		t.count++
		if err := t.await(flag); err != nil {
			return err
		}
		if err := t.write(i, total, b.Size); err != nil {
			return err
		}
	}
	return t.drain()
}
