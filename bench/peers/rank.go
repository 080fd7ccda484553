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

// tag is the tag of all messages; the answers to windows have the next one.
const tag = 1

// linger is how long rank 0 goes on after an order, to acknowledge what came
// last: nobody moves messages while it waits for the next order.
const linger = 2 * mono.Millisecond

// rank is a rank of ours. It does what peer/peer.c does.
type rank struct {
	proc     *mpi.Proc
	world    *mpi.Comm
	me, size int
	clock    mono.Real
	orders   *bufio.Reader // rank 0
	answers  io.Writer     // rank 0

	out, in  []byte
	samples  []mono.Duration
	requests [2 * bench.MaxWindow]mpi.Request // as many each way
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
	r := &rank{proc: proc, world: world, me: world.Rank(), size: world.Size(), orders: bufio.NewReader(orders), answers: answers}
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
const orderMax = 80

// next gives all ranks the next order. It returns io.EOF at the end.
func (r *rank) next() (Order, error) {
	var b [orderMax]byte
	if r.me == 0 {
		for end := r.clock.Now().Add(linger); r.clock.Now() < end; {
			r.proc.Engine().Step()
		}
		line, err := r.orders.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Order{}, err
		}
		copy(b[:], line)
	}
	if err := mpi.Bcast(r.world, b[:], 0); err != nil {
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
	if err := r.world.Barrier(); err != nil {
		return err
	}
	switch o.Test {
	case "lat":
		return r.latency(o)
	case "stream":
		return r.stream(o, o.Iters, r.windows)
	case "duplex":
		return r.stream(o, 2*o.Iters, r.exchange)
	}
	return r.collective(o)
}

// prepare makes room for n bytes each way, and for the samples.
func (r *rank) prepare(n, iters int) (err error) {
	if n > len(r.out) {
		if err = errors.Join(mpi.Free(r.proc, r.out), mpi.Free(r.proc, r.in)); err != nil {
			return err
		}
		if r.out, err = mpi.Alloc[byte](r.proc, n); err != nil {
			return err
		}
		if r.in, err = mpi.Alloc[byte](r.proc, n); err != nil {
			return err
		}
	}
	r.samples = slices.Grow(r.samples[:0], iters)
	return nil
}

func (r *rank) latency(o Order) error {
	if r.me > 1 {
		return nil
	}
	out, in := r.out[:o.Size], r.in[:o.Size]
	before := r.clock.Now()
	for i := -o.Warmup; i < o.Iters; i++ {
		if r.me == 1 {
			if err := r.echo(out, in); err != nil {
				return err
			}
			continue
		}
		if err := mpi.Send(r.world, out, 1, tag); err != nil {
			return err
		}
		if _, err := mpi.Recv(r.world, in, 1, tag); err != nil {
			return err
		}
		now := r.clock.Now()
		if i >= 0 {
			r.samples = append(r.samples, now.Sub(before))
		}
		before = now
	}
	if r.me == 1 {
		return nil
	}
	return r.say(answer(bench.Summarize(r.samples, 2)))
}

func (r *rank) echo(out, in []byte) error {
	if _, err := mpi.Recv(r.world, in, 0, tag); err != nil {
		return err
	}
	return mpi.Send(r.world, out, 0, tag)
}

// stream says how long it takes to move messages, of which there are so many in
// all that count.
func (r *rank) stream(o Order, all int, move func(o Order, messages int) error) error {
	if r.me > 1 {
		return nil
	}
	if err := move(o, o.Warmup); err != nil {
		return err
	}
	start := r.clock.Now()
	if err := move(o, o.Iters); err != nil || r.me == 1 {
		return err
	}
	return r.say(fmt.Sprintf("stream %d %.9g\n", all, r.clock.Now().Sub(start).Seconds()))
}

// windows moves messages from rank 0 to rank 1, with an answer after each
// window.
func (r *rank) windows(o Order, messages int) (err error) {
	out, in, requests := r.out[:o.Size], r.in[:o.Size], r.requests[:o.Window]
	for range messages / o.Window {
		for i := range requests {
			if r.me == 0 {
				requests[i], err = mpi.Isend(r.world, out, 1, tag)
			} else {
				requests[i], err = mpi.Irecv(r.world, in, 0, tag)
			}
			if err != nil {
				return err
			}
		}
		if err := mpi.Waitall(requests); err != nil {
			return err
		}
		if r.me == 0 {
			_, err = mpi.Recv(r.world, r.in[:4], 1, tag+1)
		} else {
			err = mpi.Send(r.world, r.out[:4], 0, tag+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exchange moves messages between ranks 0 and 1, both ways at once.
func (r *rank) exchange(o Order, messages int) (err error) {
	out, in, all := r.out[:o.Size], r.in[:o.Size], r.requests[:2*o.Window]
	for range messages / o.Window {
		for i := range o.Window {
			if all[i], err = mpi.Irecv(r.world, in, 1-r.me, tag); err != nil {
				return err
			}
		}
		for i := range o.Window {
			if all[o.Window+i], err = mpi.Isend(r.world, out, 1-r.me, tag); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(all); err != nil {
			return err
		}
	}
	return nil
}

func (r *rank) say(line string) error {
	_, err := io.WriteString(r.answers, line)
	return err
}
