package bench

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
)

// mpiBench moves messages with MPI.
type mpiBench struct {
	*End
	Messages
	carrier string
	proc    *mpi.Proc
	ctx     *verbs.Context
	failed  bool
}

func openMPI(e *End) (Bench, error) {
	transport, err := mpi.ParseTransport(e.Spec.Transport)
	if err != nil {
		return nil, err
	}
	ctx, err := openContext(e)
	if err != nil {
		return nil, err
	}
	m := &mpiBench{End: e, ctx: ctx, carrier: "MPI on " + ctx.Attr().Carrier, Messages: Messages{Peer: 1 - e.Pair.Rank()}}
	job := boot.Job(e.Pair)
	if e.Spec.Fabric == "shm" {
		job, m.carrier = near{e.Pair}, "MPI in shared memory"
	}
	cfg := mpi.Config{Transport: transport, EagerMax: e.Spec.Eager, EagerIdle: e.Spec.EagerIdle, EagerNear: e.Spec.EagerNear}
	cfg.Rendezvous, _ = mpi.ParseRendezvous(e.Spec.Rendezvous) // Check has read it
	if m.proc, err = mpi.New(job, ctx, cfg); err != nil {
		return nil, err
	}
	m.World = m.proc.World()
	size := max(slices.Max(e.Spec.Sizes), 4)
	m.Out, err = mpi.Alloc[byte](m.proc, size)
	if err == nil {
		m.In, err = mpi.Alloc[byte](m.proc, size)
	}
	if err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	return m, nil
}

// near is a pair whose ends say that they are on one host: there MPI has a way of
// its own, past the carrier.
type near struct{ *Pair }

func (n near) Host() (host, localRank int) { return 0, n.Rank() }

func (m *mpiBench) Carrier() string { return m.carrier }

// Progress lets MPI acknowledge what came last.
func (m *mpiBench) Progress() { m.ctx.Engine().Step() }

// Close waits for the other end, unless something went wrong.
func (m *mpiBench) Close() error {
	if m.failed {
		return m.ctx.Close()
	}
	return m.proc.Finalize()
}

func (m *mpiBench) Run(b Burst, rec *Recorder) error {
	err := m.run(b, rec)
	m.failed = err != nil
	return err
}

func (m *mpiBench) run(b Burst, rec *Recorder) error {
	all, pingPong := b.Warmup+b.Iters, m.Spec.kind() == PingPong
	switch {
	case m.Spec.duplex():
		elapsed, err := m.clocked(b, func(n int) error { return m.Exchange(b.Size, b.Window, n) })
		rec.Stream(2*b.Iters, elapsed)
		return err
	case pingPong && m.Server:
		for range all {
			if err := m.Echo(b.Size); err != nil {
				return err
			}
		}
		return nil
	case pingPong:
		return m.trips(b, rec, func(int) error { return m.Ping(b.Size) })
	case m.Server:
		return m.Receive(b.Size, b.Window, all)
	}
	return m.stream(b, rec, func(n int) error { return m.Send(b.Size, b.Window, n) })
}
