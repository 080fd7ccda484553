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
	kind := t.Spec.kind()
	switch {
	case t.Server && kind != Duplex:
		return t.attend()
	case kind.Latency():
		return t.trips(b, rec, func(int) error {
			if err := t.post(true); err != nil {
				return err
			}
			return t.drain()
		})
	}
	return t.timed(b, rec, t.push)
}
