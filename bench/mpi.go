package bench

import (
	"errors"
	"slices"

	"github.com/xwarp/xwarp/internal/job/boot"
	"github.com/xwarp/xwarp/mpi"
	"github.com/xwarp/xwarp/verbs"
)

// mpiTag is the tag of all messages; the answers to windows have the next one.
const mpiTag = 1

// mpiBench moves messages with MPI as osu_latency and osu_bw do: blocking
// calls for the ping-pong, windows of non-blocking ones with an answer of four
// bytes for streams.
type mpiBench struct {
	*End
	carrier  string
	proc     *mpi.Proc
	ctx      *verbs.Context
	world    *mpi.Comm
	peer     int
	out, in  []byte
	requests [2 * MaxWindow]mpi.Request // as many each way
	failed   bool
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
	m := &mpiBench{End: e, ctx: ctx, carrier: "MPI on " + ctx.Attr().Carrier, peer: 1 - e.Pair.Rank()}
	job := boot.Job(e.Pair)
	if e.Spec.Fabric == "shm" {
		job, m.carrier = near{e.Pair}, "MPI in shared memory"
	}
	cfg := mpi.Config{Transport: transport, EagerMax: e.Spec.Eager, EagerIdle: e.Spec.EagerIdle, EagerNear: e.Spec.EagerNear}
	cfg.Rendezvous, _ = mpi.ParseRendezvous(e.Spec.Rendezvous) // Check has read it
	if m.proc, err = mpi.New(job, ctx, cfg); err != nil {
		return nil, err
	}
	m.world = m.proc.World()
	size := max(slices.Max(e.Spec.Sizes), 4)
	m.out, err = mpi.Alloc[byte](m.proc, size)
	if err == nil {
		m.in, err = mpi.Alloc[byte](m.proc, size)
	}
	if err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	if e.Spec.connects() && e.Spec.onXDP() {
		return floating{m, e.alone}, nil
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
	run := m.stream
	switch pingPong := isPingPong(m.Spec.Test); {
	case m.Spec.duplex():
		run = m.both
	case pingPong && m.Server:
		run = m.echo
	case pingPong:
		run = m.ping
	case m.Server:
		run = m.swallow
	}
	err := run(b, rec)
	m.failed = err != nil
	return err
}

func (m *mpiBench) ping(b Burst, rec *Recorder) error {
	out, in := m.out[:b.Size], m.in[:b.Size]
	before := m.Clock.Now()
	for i := -b.Warmup; i < b.Iters; i++ {
		if err := mpi.Send(m.world, out, m.peer, mpiTag); err != nil {
			return err
		}
		if _, err := mpi.Recv(m.world, in, m.peer, mpiTag); err != nil {
			return err
		}
		now := m.Clock.Now()
		if i >= 0 {
			rec.Add(now.Sub(before))
		}
		before = now
	}
	return nil
}

func (m *mpiBench) echo(b Burst, _ *Recorder) error {
	out, in := m.out[:b.Size], m.in[:b.Size]
	for range b.Warmup + b.Iters {
		if _, err := mpi.Recv(m.world, in, m.peer, mpiTag); err != nil {
			return err
		}
		if err := mpi.Send(m.world, out, m.peer, mpiTag); err != nil {
			return err
		}
	}
	return nil
}

func (m *mpiBench) stream(b Burst, rec *Recorder) error {
	if err := m.windows(b, b.Warmup); err != nil {
		return err
	}
	start := m.Clock.Now()
	if err := m.windows(b, b.Iters); err != nil {
		return err
	}
	rec.Stream(b.Iters, m.Clock.Now().Sub(start))
	return nil
}

// windows sends messages and waits for the answer after each window.
func (m *mpiBench) windows(b Burst, messages int) (err error) {
	out, requests := m.out[:b.Size], m.requests[:b.Window]
	for range messages / b.Window {
		for i := range requests {
			if requests[i], err = mpi.Isend(m.world, out, m.peer, mpiTag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(requests); err != nil {
			return err
		}
		if _, err := mpi.Recv(m.world, m.in[:4], m.peer, mpiTag+1); err != nil {
			return err
		}
	}
	return nil
}

// both is what both ends of a test both ways do, as osu_bibw does.
func (m *mpiBench) both(b Burst, rec *Recorder) error {
	if err := m.exchange(b, b.Warmup); err != nil {
		return err
	}
	start := m.Clock.Now()
	if err := m.exchange(b, b.Iters); err != nil {
		return err
	}
	rec.Stream(2*b.Iters, m.Clock.Now().Sub(start))
	return nil
}

// exchange moves messages both ways, a window at a time.
func (m *mpiBench) exchange(b Burst, messages int) (err error) {
	out, in := m.out[:b.Size], m.in[:b.Size]
	received, sent := m.requests[:b.Window], m.requests[b.Window:2*b.Window]
	for range messages / b.Window {
		for i := range received {
			if received[i], err = mpi.Irecv(m.world, in, m.peer, mpiTag); err != nil {
				return err
			}
		}
		for i := range sent {
			if sent[i], err = mpi.Isend(m.world, out, m.peer, mpiTag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(m.requests[:2*b.Window]); err != nil {
			return err
		}
	}
	return nil
}

func (m *mpiBench) swallow(b Burst, _ *Recorder) (err error) {
	in, requests := m.in[:b.Size], m.requests[:b.Window]
	for range (b.Warmup + b.Iters) / b.Window {
		for i := range requests {
			if requests[i], err = mpi.Irecv(m.world, in, m.peer, mpiTag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(requests); err != nil {
			return err
		}
		if err := mpi.Send(m.world, m.out[:4], m.peer, mpiTag+1); err != nil {
			return err
		}
	}
	return nil
}
