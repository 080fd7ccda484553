package bench

import (
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi"
)

// mpiTag is the tag of all messages; the answers to windows have the next one.
const mpiTag = 1

// Messages are the loops of tests of MPI between two ranks, as osu_latency, osu_bw and
// osu_bibw have them: blocking calls for round trips, windows of nonblocking ones, with
// an answer of four bytes, for streams. World, Peer, Out and In must be set.
type Messages struct {
	World    *mpi.Comm
	Peer     int                        // rank
	Out, In  []byte                     // room for a message, 4 bytes at least
	requests [2 * MaxWindow]mpi.Request // as many each way
}

// Ping sends a message of size bytes and takes the one that comes back.
func (m *Messages) Ping(size int) error {
	if err := mpi.Send(m.World, m.Out[:size], m.Peer, mpiTag); err != nil {
		return err
	}
	_, err := mpi.Recv(m.World, m.In[:size], m.Peer, mpiTag)
	return err
}

// Echo is the other end of Ping.
func (m *Messages) Echo(size int) error {
	if _, err := mpi.Recv(m.World, m.In[:size], m.Peer, mpiTag); err != nil {
		return err
	}
	return mpi.Send(m.World, m.Out[:size], m.Peer, mpiTag)
}

// Send sends n messages and waits for the answer after each window.
func (m *Messages) Send(size, window, n int) (err error) {
	out, requests := m.Out[:size], m.requests[:window]
	for range n / window {
		for i := range requests {
			if requests[i], err = mpi.Isend(m.World, out, m.Peer, mpiTag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(requests); err != nil {
			return err
		}
		if _, err := mpi.Recv(m.World, m.In[:4], m.Peer, mpiTag+1); err != nil {
			return err
		}
	}
	return nil
}

// Receive is the other end of Send.
func (m *Messages) Receive(size, window, n int) (err error) {
	in, requests := m.In[:size], m.requests[:window]
	for range n / window {
		for i := range requests {
			if requests[i], err = mpi.Irecv(m.World, in, m.Peer, mpiTag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(requests); err != nil {
			return err
		}
		if err := mpi.Send(m.World, m.Out[:4], m.Peer, mpiTag+1); err != nil {
			return err
		}
	}
	return nil
}

// Exchange moves n messages each way, a window at a time.
func (m *Messages) Exchange(size, window, n int) (err error) {
	out, in := m.Out[:size], m.In[:size]
	received, sent := m.requests[:window], m.requests[window:2*window]
	for range n / window {
		for i := range received {
			if received[i], err = mpi.Irecv(m.World, in, m.Peer, mpiTag); err != nil {
				return err
			}
		}
		for i := range sent {
			if sent[i], err = mpi.Isend(m.World, out, m.Peer, mpiTag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(m.requests[:2*window]); err != nil {
			return err
		}
	}
	return nil
}

// Done tells the other rank, which has called Serve, that nothing follows.
func (m *Messages) Done() error { return mpi.Send(m.World, m.Out[:0], m.Peer, mpiTag) }

// Serve waits until the other rank is done.
func (m *Messages) Serve() error {
	_, err := mpi.Recv(m.World, m.In[:0], m.Peer, mpiTag)
	return err
}

// compute keeps the processor busy for a while.
func compute(clock mono.Clock, d mono.Duration) {
	for end := clock.Now().Add(d); clock.Now() < end; {
	}
}
