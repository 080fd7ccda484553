package rma

import (
	"bytes"

	"github.com/xwarp/xwarp/internal/base/mem"
	"github.com/xwarp/xwarp/mpi/internal/dtype"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// server does what others ask to be done with memory of a rank, and has its locks: the rank
// itself, or a ghost. All others ask the same one, so that accumulates and locks are in one
// order. It knows ranks by their numbers in World.
type server struct {
	in      p2p.Inside
	context uint32
	ranks   int               // of the job
	client  int32             // of a ghost: for which rank
	me      int32             // the process here
	self    p2p.ActiveHandler // that takes answers to it
	memory
	locks  locks
	atomic bool     // other processes operate on the memory, too: see atomic.go
	reply  []byte   // memory of answers
	even   []uint64 // memory of operands that have come at an address that is none of words
	one    [32]byte // an element as it lies in memory
	words  struct { // of many elements, before and after: see applyWords
		was, now [stageLen]byte
	}
}

// take takes a message of an origin.
func (s *server) take(source, what int32, id uint32, body []byte) bool {
	if behind := what >> behindShift; behind != 0 {
		what &= 1<<behindShift - 1
		return (what == sayPut || what == sayAccumulate) && s.serve(source, what, noRecord, body) && s.take(source, behind, id, nil)
	}
	switch what {
	case sayPut, sayAccumulate, sayFetch, sayGet, saySwap:
		return s.serve(source, what, id, body)
	case sayFlush:
		s.tell(source, sayFlushed, 0)
	case sayLock:
		granted, ok := s.locks.claim(s.ranks, source, Mode(id))
		s.grant(granted)
		return ok
	case sayTry:
		granted, ok := s.locks.try(s.ranks, source, Mode(id))
		if granted {
			s.tell(source, sayLocked, 0)
		} else {
			s.tell(source, sayBusy, 0)
		}
		return ok
	case sayUnlock:
		granted, ok := s.locks.release(source)
		if id != 0 {
			s.tell(source, sayFlushed, 0)
		}
		s.grant(granted)
		return ok
	case sayRetry:
		s.grant(s.locks.serve())
	default:
		return false
	}
	return true
}

// lose frees the locks of a rank that is lost.
func (s *server) lose(source int32) {
	if s.locks.held != nil {
		s.grant(s.locks.lost(source))
	}
}

// grant tells ranks that they have the lock.
func (s *server) grant(ranks []int32) {
	for _, rank := range ranks {
		s.tell(rank, sayLocked, 0)
	}
}

// tell answers with a word.
func (s *server) tell(source, what int32, id uint32) {
	a := p2p.Active{What: what, ID: id}
	s.answer(source, &a)
}

// answer answers a rank, from a step.
func (s *server) answer(source int32, a *p2p.Active) {
	a.Context = s.context
	a.What |= s.client << clientShift
	if source == s.me {
		s.self.Active(source, a.What, a.ID, a.Data)
		return
	}
	s.in.Answer(source, a)
}

// longest returns the length of the longest answer to a rank.
func (s *server) longest(source int32) int {
	if source == s.me {
		return selfChunk
	}
	return s.in.ActiveMax(source)
}

// serve does what an origin asks to be done with memory here.
func (s *server) serve(source, what int32, id uint32, body []byte) bool {
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
	if fetches && n > s.longest(source) { // no answer can be as long
		s.tell(source, sayRefused, id)
		return true
	}
	c := combination{s: s, what: what}
	if what == sayAccumulate || what == sayFetch {
		if !c.of(&f) {
			return false
		}
		data = s.aligned(data)
	}
	if !c.there(&f) {
		if !fetches {
			id = noRecord
		}
		s.tell(source, sayRefused, id)
		return true
	}
	if !fetches {
		c.do(&f, data, nil)
		return true
	}
	if what == sayGet && f.n == 1 { // as it lies there
		b, _ := s.at(f.blocks[0].off, n)
		s.answer(source, &p2p.Active{What: sayData, ID: id, Data: b})
		return true
	}
	if cap(s.reply) < n {
		s.reply = make([]byte, max(n, 64))
	}
	old := s.reply[:n]
	c.do(&f, data, old)
	s.answer(source, &p2p.Active{What: sayData, ID: id, Data: old})
	return true
}

// aligned returns operands where elements may lie: otherwise each block would be moved by itself.
func (s *server) aligned(data []byte) []byte {
	if len(data) == 0 || mem.AddressOf(data)%8 == 0 {
		return data
	}
	if 8*len(s.even) < len(data) {
		s.even = make([]uint64, (len(data)+7)/8)
	}
	b := mem.BytesOf(s.even)
	return b[:copy(b, data)]
}

// combination is what is done with each block of a message.
type combination struct {
	s       *server
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
	for _, r := range f.blocks[:f.n] {
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

// memory returns where a block lies.
func (c *combination) memory(r block) ([]byte, bool) {
	n := int(r.len)
	if c.gapped {
		n = c.reach
	}
	return c.s.at(r.off, n)
}

// there reports whether all blocks are memory of the window.
func (c *combination) there(f *front) bool {
	for _, r := range f.blocks[:f.n] {
		if _, ok := c.memory(r); !ok {
			return false
		}
	}
	return true
}

// do goes over the blocks, and leaves in old, if it is not nil, what was there.
func (c *combination) do(f *front, data, old []byte) {
	for _, r := range f.blocks[:f.n] {
		there, _ := c.memory(r)
		n := int(r.len)
		if c.s.atomic && c.atomic(there) {
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
		one := c.s.one[:c.reach]
		cur, _ := c.element.Cursor(one, 0, 1)
		cur.Unpack(data)
		c.reduce.Apply(one, there, 1)
	default:
		c.reduce.Apply(data, there, len(data)/c.size)
	}
}
