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
	switch {
	case t.Spec.kind() == PingPong:
		return t.turns(b, rec)
	case t.Server && !t.Spec.duplex():
		return t.attend()
	}
	return t.timed(b, rec, t.push)
}

// flag returns the byte that the other end writes last.
func (t *writeTest) flag(size int) *byte { return &t.mr.Bytes()[t.half+size-1] }

// turns exchanges messages, each of which has the next count.
func (t *writeTest) turns(b Burst, rec *Recorder) error {
	flag := t.flag(b.Size)
	*flag = t.count // an earlier burst may have left the next count here
	send := func(i, n int) error {
		if !t.Server {
			t.count++
		}
		t.mr.Bytes()[b.Size-1] = t.count
		return t.turn(i, n)
	}
	await := func() error {
		if t.Server {
			t.count++
		}
		var turns spin
		for *flag != t.count {
			if err := t.step(&turns); err != nil {
				return err
			}
		}
		return nil
	}
	return t.pingPong(b, rec, send, await)
}
