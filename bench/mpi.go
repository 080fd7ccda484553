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
	err := m.run(b, rec)
	m.failed = err != nil
	return err
}

func (m *mpiBench) run(b Burst, rec *Recorder) error {
	pingPong := m.Spec.kind() == PingPong
	switch {
	case m.Spec.duplex():
		elapsed, err := m.clocked(b, func(n int) error { return m.exchange(b, n) })
		rec.Stream(2*b.Iters, elapsed)
		return err
	case pingPong && m.Server:
		return m.echo(b)
	case pingPong:
		return m.ping(b, rec)
	case m.Server:
		return m.swallow(b)
	}
	return m.stream(b, rec, func(n int) error { return m.windows(b, n) })
}

func (m *mpiBench) ping(b Burst, rec *Recorder) error {
	out, in := m.out[:b.Size], m.in[:b.Size]
	return m.trips(b, rec, func(int) error {
		if err := mpi.Send(m.world, out, m.peer, mpiTag); err != nil {
			return err
		}
		_, err := mpi.Recv(m.world, in, m.peer, mpiTag)
		return err
	})
}

func (m *mpiBench) echo(b Burst) error {
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

// exchange moves messages both ways, a window at a time, as osu_bibw does.
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

func (m *mpiBench) swallow(b Burst) (err error) {
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
