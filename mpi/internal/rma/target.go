package rma

import (
	"bytes"
	"fmt"

	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// Active implements p2p.ActiveHandler: what this rank does as a target, and what answers
// tell it as an origin. Nothing from outside reaches memory that is not of the window.
func (w *Window) Active(source, what int32, id uint32, body []byte) bool {
	rank := w.rankOf(source)
	if rank < 0 {
		return false
	}
	t := &w.targets[rank]
	if behind := what >> behindShift; behind != 0 {
		what &= 1<<behindShift - 1
		return (what == sayPut || what == sayAccumulate) && w.serve(rank, what, noRecord, body) && w.Active(source, behind, id, nil)
	}
	switch what {
	case sayPut, sayAccumulate, sayFetch, sayGet, saySwap:
		return w.serve(rank, what, id, body)
	case sayData, sayRefused:
		return w.fetchedData(rank, what, id, body)
	case sayFlush:
		w.tell(rank, sayFlushed, 0)
	case sayFlushed:
		t.acks = max(t.acks-1, 0)
	case sayLock:
		granted, ok := w.locks.claim(len(w.targets), rank, Mode(id))
		w.grant(granted)
		return ok
	case sayTry:
		granted, ok := w.locks.try(len(w.targets), rank, Mode(id))
		if granted {
			w.tell(rank, sayLocked, 0)
		} else {
			w.tell(rank, sayBusy, 0)
		}
		return ok
	case sayLocked, sayBusy:
		t.asked, t.refused = false, what == sayBusy
	case sayUnlock:
		granted, ok := w.locks.release(rank)
		if id != 0 {
			w.tell(rank, sayFlushed, 0)
		}
		w.grant(granted)
		return ok
	case sayRetry:
		w.grant(w.locks.serve())
	case sayPost:
		t.posts++
	case sayComplete:
		t.ends++
	default:
		return false
	}
	return true
}

// Lost implements p2p.ActiveHandler: the locks of a lost rank are free.
func (w *Window) Lost(source int32) {
	rank := w.rankOf(source)
	if rank < 0 {
		return
	}
	w.near.bury(rank)
	if w.locks.held != nil {
		w.grant(w.locks.lost(rank))
	}
}

// grant tells ranks that they have the lock.
func (w *Window) grant(ranks []int32) {
	for _, rank := range ranks {
		w.tell(rank, sayLocked, 0)
	}
}

// tell answers with a word.
func (w *Window) tell(rank, what int32, id uint32) {
	a := p2p.Active{What: what, ID: id}
	w.answer(rank, &a)
}

// serve does what an origin asks to be done with memory here.
func (w *Window) serve(rank, what int32, id uint32, body []byte) bool {
	var f front
	data, ok := f.get(body)
	if !ok {
		return false
	}
	n := f.bytes()
	fetches := what == sayFetch || what == sayGet || what == saySwap
	switch {
	case what == sayFetch && operations[f.op] == dtype.NoOp, what == sayGet:
		ok = len(data) == 0
	case what == saySwap:
		ok = f.n == 1 && len(data) == 2*n
	default:
		ok = len(data) == n
	}
	if !ok {
		return false
	}
	if fetches && n > int(w.targets[rank].chunk) { // no answer can be as long
		w.tell(rank, sayRefused, id)
		return true
	}
	c := combination{w: w, what: what}
	if what == sayAccumulate || what == sayFetch {
		if !c.of(&f) {
			return false
		}
	}
	if !c.there(&f) {
		if !fetches {
			id = noRecord
		}
		w.tell(rank, sayRefused, id)
		return true
	}
	if !fetches {
		c.do(&f, data, nil)
		return true
	}
	if what == sayGet && f.n == 1 { // as it lies there
		b, _ := w.at(f.runs[0].off, n)
		w.answer(rank, &p2p.Active{What: sayData, ID: id, Data: b})
		return true
	}
	if cap(w.reply) < n {
		w.reply = make([]byte, max(n, 64))
	}
	old := w.reply[:n]
	c.do(&f, data, old)
	w.answer(rank, &p2p.Active{What: sayData, ID: id, Data: old})
	return true
}

// combination is what is done with each run of a message.
type combination struct {
	w       *Window
	what    int32
	reduce  dtype.Reduction
	element *dtype.Type // of accumulates, else nil
	size    int         // of its data
	reach   int         // and of where they lie
	gapped  bool
}

// of makes c that of an accumulate. false: there is no such operation on such elements.
func (c *combination) of(f *front) bool {
	err := c.reduces(f.kind, f.op)
	for _, r := range f.runs[:f.n] {
		if c.gapped && int(r.len) != c.size || int(r.len)%c.size != 0 {
			return false
		}
	}
	return err == nil
}

// reduces makes c that of an operation on elements of a kind.
func (c *combination) reduces(k dtype.Kind, op uint8) (err error) {
	c.element = k.Type()
	c.reduce, err = operations[op].On(c.element)
	c.size, c.reach, c.gapped = shapeOf(k)
	return err
}

// memory returns where a run lies.
func (c *combination) memory(r run) ([]byte, bool) {
	n := int(r.len)
	if c.gapped {
		n = c.reach
	}
	return c.w.at(r.off, n)
}

// there reports whether all runs are memory of the window.
func (c *combination) there(f *front) bool {
	for _, r := range f.runs[:f.n] {
		if _, ok := c.memory(r); !ok {
			return false
		}
	}
	return true
}

// do goes over the runs, and leaves in old, if it is not nil, what was there.
func (c *combination) do(f *front, data, old []byte) {
	for _, r := range f.runs[:f.n] {
		there, _ := c.memory(r)
		n := int(r.len)
		if c.w.near.members != nil && c.atomic(there) {
			take := len(data)
			if c.what != saySwap {
				take = min(take, n)
			}
			c.applyAll(there, data[:take], old[:min(len(old), n)])
			data, old = data[take:], old[min(len(old), n):]
			continue
		}
		if old != nil {
			c.read(old[:n], there)
			old = old[n:]
		}
		switch {
		case c.what == saySwap:
			if bytes.Equal(there, data[:n]) {
				copy(there, data[n:])
			}
		case len(data) > 0:
			c.write(there, data[:n])
			data = data[n:]
		}
	}
}

// read packs what is there.
func (c *combination) read(dst, there []byte) {
	if !c.gapped {
		copy(dst, there)
		return
	}
	cur, _ := c.element.Cursor(there, 0, 1)
	cur.Pack(dst)
}

// write does the operation.
func (c *combination) write(there, data []byte) {
	switch {
	case c.element == nil:
		copy(there, data)
	case c.gapped:
		one := c.w.one[:c.reach]
		cur, _ := c.element.Cursor(one, 0, 1)
		cur.Unpack(data)
		c.reduce.Apply(one, there, 1)
	default:
		c.reduce.Apply(data, there, len(data)/c.size)
	}
}

// fetchedData takes an answer.
func (w *Window) fetchedData(rank, what int32, id uint32, body []byte) bool {
	if what == sayRefused {
		err := &Error{Code: Range, Target: rank, Detail: fmt.Sprintf("rank %d has no such memory in the window", rank)}
		if id == noRecord {
			w.targets[rank].err = err
			return true
		}
		if int(id) >= len(w.fetches) || !w.fetches[id].busy || w.fetches[id].target != rank {
			return false
		}
		if w.fetches[id].tally == nil {
			w.targets[rank].err = err
		}
		w.fetched(int32(id), err)
		return true
	}
	if int(id) >= len(w.fetches) {
		return false
	}
	f := &w.fetches[id]
	if !f.busy || f.target != rank || f.bytes != len(body) {
		return false
	}
	f.cur.Unpack(body)
	w.fetched(int32(id), nil)
	return true
}
