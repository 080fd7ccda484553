package bench

import "github.com/xwarp/xwarp/verbs"

// readTest fetches memory with RDMA Read, as ib_read_lat and ib_read_bw do:
// the latency is that of the whole operation, and the other end does nothing
// but make progress.
type readTest struct{ *endpoint }

func (t *readTest) Run(b Burst, rec *Recorder) error {
	t.wr.Opcode, t.wr.Flags = verbs.OpRDMARead, 0
	t.wr.NumSGE, t.wr.SGL[0] = 1, t.mr.SGE(t.half, b.Size)
	t.remote(t.peer.Source)
	c, _ := Find(t.Spec.Test)
	switch {
	case t.Server && c.Kind != Duplex:
		return t.attend()
	case c.Kind.latency():
		return t.fetch(b, rec)
	}
	return t.stream(b, rec)
}

// fetch reads one message after the other.
func (t *readTest) fetch(b Burst, rec *Recorder) error {
	before := t.Clock.Now()
	for i := -b.Warmup; i < b.Iters; i++ {
		if err := t.post(true); err != nil {
			return err
		}
		if err := t.drain(); err != nil {
			return err
		}
		now := t.Clock.Now()
		if i >= 0 {
			rec.Add(now.Sub(before))
		}
		before = now
	}
	return nil
}
