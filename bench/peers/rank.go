package peers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/xwarp/xwarp/bench"
	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/mpi"
)

// linger is how long rank 0 goes on after an order, to acknowledge what came
// last: messages do not move while it waits for the next order.
const linger = 2 * mono.Millisecond

// rank is a rank of ours. It does what peer/peer.c does.
type rank struct {
	bench.Messages
	proc     *mpi.Proc
	me, size int
	clock    mono.Real
	orders   *bufio.Reader // rank 0
	answers  io.Writer     // rank 0
	samples  []mono.Duration
}

// Rank is the program of a rank of ours: it joins the job that it was started
// for, and follows the orders that rank 0 reads from orders until their end.
func Rank(orders io.Reader, answers io.Writer) error {
	runtime.LockOSThread()
	proc, err := mpi.Init()
	if err != nil {
		return err
	}
	world := proc.World()
	r := &rank{proc: proc, me: world.Rank(), size: world.Size(), orders: bufio.NewReader(orders), answers: answers}
	r.World, r.Peer = world, 1-r.me
	if r.me == 0 {
		if _, err := io.WriteString(answers, ready); err != nil {
			return err
		}
	}
	for {
		o, err := r.next()
		if errors.Is(err, io.EOF) {
			return proc.Finalize()
		}
		if err == nil {
			err = r.execute(o)
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", r.me, err)
		}
	}
}

// orderMax is the room for a line.
const orderMax = 120

// next gives all ranks the next order. It returns io.EOF at the end.
func (r *rank) next() (Order, error) {
	var b [orderMax]byte
	if r.me == 0 {
		for end := r.clock.Now().Add(linger); r.clock.Now() < end; {
			if _, _, err := r.World.Iprobe(mpi.AnySource, mpi.AnyTag); err != nil { // a step, beside a progress thread as well
				return Order{}, err
			}
		}
		line, err := r.orders.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Order{}, err
		}
		copy(b[:], line)
	}
	if err := mpi.Bcast(r.World, b[:], 0); err != nil {
		return Order{}, err
	}
	line := strings.TrimRight(string(b[:]), "\x00")
	if line == "" {
		return Order{}, io.EOF
	}
	return parseOrder(line)
}

func (r *rank) execute(o Order) error {
	if err := r.prepare(max(o.Size, 4)*r.size, o.Iters); err != nil {
		return err
	}
	runtime.GC() // now rather than later: nothing in the loops makes garbage
	if err := r.World.Barrier(); err != nil {
		return err
	}
	switch o.Test {
	case "lat":
		return r.latency(o)
	case "stream":
		if r.me == 1 {
			return r.stream(o, o.Iters, r.Receive)
		}
		return r.stream(o, o.Iters, r.Send)
	case "duplex":
		return r.stream(o, 2*o.Iters, r.Exchange)
	}
	if op, ok := strings.CutPrefix(o.Test, overlapOrder); ok {
		return r.overlap(o, op)
	}
	if name, ok := strings.CutPrefix(o.Test, trialOrder); ok {
		name, variant, _ := strings.Cut(name, variantMark)
		return r.trial(o, name, variant)
	}
	if c, ok := bench.Find(bench.MPIPrefix + o.Test); ok && c.Family == bench.RMA {
		return r.oneSided(o, c)
	}
	return r.collective(o)
}

// prepare makes room for n bytes each way, all of which are written once as those of the
// other libraries are (peer.c), and for the samples.
func (r *rank) prepare(n, iters int) (err error) {
	if n > len(r.Out) {
		if err = errors.Join(mpi.Free(r.proc, r.Out), mpi.Free(r.proc, r.In)); err != nil {
			return err
		}
		if r.Out, err = mpi.Alloc[byte](r.proc, n); err != nil {
			return err
		}
		if r.In, err = mpi.Alloc[byte](r.proc, n); err != nil {
			return err
		}
		for i := range n {
			r.Out[i], r.In[i] = 1, 1
		}
	}
	r.samples = slices.Grow(r.samples[:0], iters)
	return nil
}

func (r *rank) latency(o Order) error {
	if r.me > 1 {
		return nil
	}
	if r.me == 1 {
		for range o.Warmup + o.Iters {
			if err := r.Echo(o.Size); err != nil {
				return err
			}
		}
		return nil
	}
	return r.trips(o, 2, func() error { return r.Ping(o.Size) })
}

// trips times trips, each of so many ways, of which one is shown.
func (r *rank) trips(o Order, ways int, trip func() error) error {
	before := r.clock.Now()
	for i := -o.Warmup; i < o.Iters; i++ {
		if err := trip(); err != nil {
			return err
		}
		now := r.clock.Now()
		if i >= 0 {
			r.samples = append(r.samples, now.Sub(before))
		}
		before = now
	}
	return r.say(answer(bench.Summarize(r.samples, ways)))
}

// oneSided times what rank 0 does to the window of rank 1.
func (r *rank) oneSided(o Order, c bench.Case) (err error) {
	ops, err := r.OneSided(c.Name, o.Size)
	if err != nil {
		return err
	}
	switch {
	case r.me > 1:
	case r.me == 1:
		err = ops.Serve()
	case c.Kind == bench.RoundTrip:
		err = r.trips(o, 1, func() error { return ops.Flushed(o.Size, 1, 1) })
	default:
		err = r.stream(o, o.Iters, ops.Flushed)
	}
	if err == nil && r.me == 0 {
		err = ops.Done()
	}
	if err != nil {
		return err
	}
	return ops.End()
}

// overlapOrder is what the names of orders of mpi_overlap begin with.
const overlapOrder = "overlap_"

// overlap times epochs of rank 0 while rank 1 computes.
func (r *rank) overlap(o Order, op string) error {
	x, err := r.Overlap(op, o.Size)
	if err != nil {
		return err
	}
	computes := mono.Duration(o.Compute) * mono.Microsecond
	if r.me == 1 {
		err = x.Target(computes, o.Warmup+o.Iters)
		return errors.Join(err, x.End())
	}
	for i := -o.Warmup; i < o.Iters; i++ {
		took, err := x.Origin(computes)
		if err != nil {
			return err
		}
		if i >= 0 {
			r.samples = append(r.samples, took)
		}
	}
	if err := errors.Join(x.Done(), x.End()); err != nil {
		return err
	}
	return r.say(answer(bench.Summarize(r.samples, 1)))
}

// trialOrder is what the names of orders of mpi_ghosts begin with, and variantMark is before what
// ranks are told.
const (
	trialOrder  = "trial_"
	variantMark = ":"
)

// trial times an experiment.
func (r *rank) trial(o Order, name, variant string) error {
	t, err := r.Trial(name, variant, o.Compute)
	if err != nil {
		return err
	}
	if r.me == 1 {
		return t.Target(o.Warmup + o.Iters)
	}
	if r.samples, err = t.Origin(o.Warmup, o.Iters, r.samples); err != nil {
		return err
	}
	return r.say(answer(bench.Summarize(r.samples, 1)))
}

// stream says how long it takes to move messages, of which there are so many in
// all that count.
func (r *rank) stream(o Order, all int, move func(size, window, n int) error) error {
	if r.me > 1 {
		return nil
	}
	if err := move(o.Size, o.Window, o.Warmup); err != nil {
		return err
	}
	start := r.clock.Now()
	if err := move(o.Size, o.Window, o.Iters); err != nil || r.me == 1 {
		return err
	}
	return r.say(fmt.Sprintf("stream %d %.9g\n", all, r.clock.Now().Sub(start).Seconds()))
}

func (r *rank) say(line string) error {
	_, err := io.WriteString(r.answers, line)
	return err
}
