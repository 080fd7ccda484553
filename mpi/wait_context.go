package mpi

import (
	"context"
)

// Waits that end when a context does. Only the wait ends then: the operations stay
// under way and the requests valid, to be waited for, tested, cancelled or freed as
// ever, and buffers belong to the operations until then. The error has the class
// ErrPending and wraps the context's, and no error handler sees it. With a context that
// is over already they are tests.

// WaitContext is Wait that ends when the context does.
func (r *Request) WaitContext(ctx context.Context) (Status, error) {
	const op = "WaitContext"
	t := r.watch().begin(op, r.c, Undefined, Undefined, 0)
	st := emptyStatus()
	err := r.c.until(ctx, op, r.done)
	if err == nil {
		st, err = r.wait(op)
	}
	t.end(err)
	return st, err
}

// WaitallContext is Waitall that ends when the context does. Then it has ended none of
// the operations.
func WaitallContext(ctx context.Context, requests []Request) error {
	at := firstOf(requests)
	if at == nil {
		return nil
	}
	err := at.c.until(ctx, "WaitallContext", func() bool {
		for i := range requests {
			if !requests[i].done() {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return Waitall(requests)
}

// WaitanyContext is Waitany that ends when the context does. Then the index is
// Undefined.
func WaitanyContext(ctx context.Context, requests []Request) (index int, st Status, err error) {
	at := firstOf(requests)
	if at == nil {
		return Undefined, emptyStatus(), nil
	}
	if err := at.c.until(ctx, "WaitanyContext", func() bool { return finished(requests) >= 0 }); err != nil {
		return Undefined, emptyStatus(), err
	}
	return Waitany(requests)
}

// firstOf returns the first request that is not null, or nil.
func firstOf(requests []Request) *Request {
	for i := range requests {
		if r := &requests[i]; !r.IsNull() {
			return r
		}
	}
	return nil
}

// until makes progress until done says so, inside, or the context is over. A nil
// communicator has nothing to wait for.
func (c *Comm) until(ctx context.Context, op string, done func() bool) error {
	if c == nil {
		return nil
	}
	in := c.ep.Inside()
	c.ep.Enter()
	defer c.ep.Leave()
	if done() {
		return nil
	}
	in.Step()
	if !done() {
		defer context.AfterFunc(ctx, c.p.nudge)()
	}
	for !done() {
		if err := ctx.Err(); err != nil {
			in.Flush() // the program may not come back for long
			return &Error{Class: ErrPending, Op: op, Rank: -1, Detail: "the operation is under way still", Err: err}
		}
		in.Progress()
	}
	return nil
}

// nudge makes all goroutines that wait in the process look again at what they wait
// for. Any goroutine may call it.
func (p *Proc) nudge() {
	p.gone.mu.Lock()
	defer p.gone.mu.Unlock()
	if !p.gone.yes {
		p.ep.Engine().Nudge()
	}
}
