package check

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/verbs"
)

// Rules are what a model must know about the network and the program.
type Rules struct {
	// Linger is for how long a datagram may be under way, and a host may not
	// look at what has arrived: what failed may still take effect so late.
	Linger mono.Duration
	// Lossless says that nobody restarts and no silence is longer than what
	// makes a peer count as lost: then nothing that is legal may fail.
	Lossless bool
	// Copies is how often a network that doubles may deliver a datagram.
	Copies int
	// Corrupt says that the network changes bits.
	Corrupt bool
	// Chunks says that targets complete each chunk of a Write-Record by itself.
	Chunks bool
}

// Model knows what was posted and judges what was seen. Its methods are told
// by the workload; the first contradiction stays in Err.
type Model struct {
	rules   Rules
	now     func() mono.Time
	err     error
	ops     map[uint64]*Op
	streams map[[2]int][]*Stream // by sending and receiving host, in the order begun
	reached Coverage
	excuse  map[[2]int]bool // pairs of hosts (smaller first) between which requests may be flushed
}

// NewModel returns a model without lives.
func NewModel(rules Rules, now func() mono.Time) *Model {
	return &Model{
		rules: rules, now: now, ops: map[uint64]*Op{},
		streams: map[[2]int][]*Stream{}, excuse: map[[2]int]bool{}, reached: Coverage{},
	}
}

// Err returns the first contradiction, or nil.
func (m *Model) Err() error { return m.err }

func (m *Model) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("at %v: "+format, append([]any{mono.Duration(m.now())}, args...)...)
	}
}

// Begin starts a life of a host.
func (m *Model) Begin(host, n int) *Life {
	return &Life{Host: host, N: n, ended: mono.Never, newest: map[int]*Stream{}, recvs: map[uint64]struct{}{}}
}

// Region makes memory of a life known, which holds mem now.
func (m *Model) Region(l *Life, name string, mem []byte) *Region {
	r := &Region{
		Life: l, Name: name, base: append([]byte(nil), mem...), since: make([]uint32, len(mem)), looks: []mono.Time{m.now()},
	}
	return r
}

// Words makes memory known that only atomics touch: half counters, half
// registers, all 0.
func (m *Model) Words(l *Life, name string, words int) *Region {
	r := m.Region(l, name, make([]byte, 8*words))
	r.Words = true
	r.cells = make([]cell, words)
	for i := range r.cells {
		r.cells[i].counter = i < (words+1)/2
	}
	return r
}

// Grant says that a key is valid from now on.
func (m *Model) Grant(r *Region, key uint32, off, n int, access verbs.Access) *Grant {
	return &Grant{Region: r, Key: key, Off: off, Len: n, Access: access, from: m.now(), mayEnd: mono.Never, end: mono.Never}
}

// Pending makes a key known that will be valid when the request that binds it
// has completed.
func (m *Model) Pending(r *Region, off, n int, access verbs.Access) *Grant {
	g := m.Grant(r, 0, off, n, access)
	g.from = mono.Never
	return g
}

// Revoke says that the key of g was taken back by a call that is done.
func (m *Model) Revoke(g *Grant) {
	g.ends(nil, m.now())
	g.end = min(g.end, m.now())
}

// Stream begins what a life posts to a new address handle.
func (m *Model) Stream(l *Life, to int) *Stream {
	pair := [2]int{l.Host, to}
	s := &Stream{From: l, To: to, num: len(m.streams[pair])}
	m.streams[pair] = append(m.streams[pair], s)
	return s
}

// Posted says that a request was posted, with success.
func (m *Model) Posted(o *Op) {
	now := m.now()
	o.posted, o.ended, o.placed, o.msg = now, mono.Never, mono.Never, -1
	if m.ops[o.ID] != nil {
		panic(fmt.Sprintf("check: two requests have number %#x", o.ID))
	}
	m.ops[o.ID] = o
	if s := o.Stream; s != nil {
		o.pos = len(s.ops)
		s.ops = append(s.ops, o)
		if o.consumes() {
			o.msg = len(s.msgs)
			s.msgs = append(s.msgs, o)
		}
	}
	if o.Stream == nil {
		o.Life.loose = append(o.Life.loose, o)
	}
	refused := o.verdict(now) == mustNot
	if o.Inv != nil && !refused && o.Code != verbs.OpBindMW {
		o.Inv.ends(o, now)
	}
	if refused && o.Stream != nil {
		if o.Stream.wrong == nil {
			o.Stream.wrong = o
		}
		m.pardon(o.Life.Host, o.Stream.To)
	}
	if o.Grant == nil || refused && !o.Partly {
		return
	}
	switch r := o.Grant.Region; {
	case o.atomic():
		c := &r.cells[o.Cell]
		c.ops = append(c.ops, &atomic{op: o})
	case o.writes():
		r.write(o)
	case o.Code == verbs.OpRDMARead:
		r.read(o)
	}
}

// Withdrawn says that a request which Posted was told of was not taken after all.
func (m *Model) Withdrawn(o *Op) {
	delete(m.ops, o.ID)
	if s := o.Stream; s != nil {
		s.ops = s.ops[:o.pos]
		if o.msg >= 0 {
			s.msgs = s.msgs[:o.msg]
		}
		if s.wrong == o {
			s.wrong = nil
		}
	}
	o.Life.loose = slices.DeleteFunc(o.Life.loose, func(x *Op) bool { return x == o })
	if o.Inv != nil {
		o.Inv.enders = slices.DeleteFunc(o.Inv.enders, func(x *Op) bool { return x == o })
		if len(o.Inv.enders) == 0 {
			o.Inv.mayEnd = mono.Never
		}
	}
	if o.view != nil {
		o.Grant.Region.forget(o.view)
	}
	if o.Grant != nil {
		o.Grant.Region.withdraw(o)
	}
	o.Wrong = "it was not posted" // its place among the atomics of a word stays
}

// pardon notes that what two hosts have under way with one another may fail.
func (m *Model) pardon(a, b int) { m.excuse[[2]int{min(a, b), max(a, b)}] = true }

// Digit returns what the next FetchAndAdd on a counter has to add. ok is false
// when the counter is full.
func (m *Model) Digit(r *Region, word int) (add uint64, ok bool) {
	c := &r.cells[word]
	return digit(len(c.ops) % digitsMax), len(c.ops) < digitsMax
}

// Looked says what a region holds now.
func (m *Model) Looked(r *Region, mem []byte) {
	if r.Words {
		m.lookedWords(r, mem)
		return
	}
	if i := r.look(mem, m.now(), m.rules.Linger); i >= 0 {
		m.fail("%v: byte %d is %#x, was %#x, and nothing explains it%s", r, i, mem[i], r.base[i], m.blame(mem[i:]))
	}
}

func (m *Model) lookedWords(r *Region, mem []byte) {
	for i := range r.cells {
		// RFC 7306, section 5.1: in the byte order of the host.
		if err := r.cells[i].check(binary.NativeEndian.Uint64(mem[8*i:]), m.now(), m.rules.Linger); err != nil {
			m.fail("%v, word %d: %v", r, i, err)
		}
	}
}

// blame finds out whose payload b might be, for people.
func (m *Model) blame(b []byte) string {
	if len(b) < 16 {
		return ""
	}
	for id, o := range m.ops {
		for off := range o.Len - 16 {
			if byteOf(id, off) == b[0] && off%8 == 0 && word(id, uint64(off/8)) == binary.LittleEndian.Uint64(b) {
				return fmt.Sprintf("; it is byte %d of %v", off, o)
			}
		}
	}
	return ""
}

// End says that the context of a life was closed. With crash its program died
// and will never know what became of its requests.
func (m *Model) End(l *Life, crash bool) {
	l.ended = m.now()
	m.reached["life ended"]++
	for pair, streams := range m.streams {
		for _, s := range streams {
			if s.From == l && !s.closed {
				m.endStream(s, crash)
			}
		}
		if pair[1] == l.Host || pair[0] == l.Host {
			m.pardon(pair[0], pair[1])
		}
	}
	if crash {
		for _, o := range l.loose {
			if !o.done {
				m.finish(o, false)
			}
		}
		return
	}
	if len(l.recvs) > 0 {
		m.fail("%v: receives were posted and never completed, nor flushed: %#x", l, slices.Sorted(maps.Keys(l.recvs)))
	}
	for _, o := range l.loose {
		if o.Signaled && !o.done {
			m.fail("%v: lost completion", o)
		}
	}
}

// Dropped says that n receives of a shared queue went with it.
func (m *Model) Dropped(l *Life, n int) {
	if n != len(l.recvs) {
		m.fail("%v: %d receives are open, not %d", l, len(l.recvs), n)
	}
	clear(l.recvs)
}

// Happened says that an asynchronous event was taken. host is the one that it
// is about, or -1.
func (m *Model) Happened(l *Life, what verbs.EventType, host int) {
	pair := [2]int{min(l.Host, host), max(l.Host, host)}
	switch what {
	case verbs.EventPeerLost, verbs.EventPeerRestarted:
		if m.rules.Lossless && !m.excuse[pair] && !m.refusable(host, l.Host) && !m.refusable(l.Host, host) {
			m.fail("%v: event %d about host %d, which is there and has done nothing wrong", l, what, host)
		}
		m.pardon(l.Host, host)
	case verbs.EventQPAccessErr, verbs.EventQPReqErr:
		if !m.refusable(host, l.Host) {
			m.fail("%v: event %d about host %d, which has asked for nothing that must be refused", l, what, host)
		}
		m.pardon(l.Host, host)
	case verbs.EventQPFatal:
		m.fail("%v: the queue pair has failed", l)
	}
}

// refusable reports whether a host has posted anything to another one that
// could be refused.
func (m *Model) refusable(from, to int) bool {
	for _, s := range m.streams[[2]int{from, to}] {
		if m.anyRefusable(s, len(s.ops)) {
			return true
		}
	}
	return false
}

// Closed says that nothing of a stream is outstanding any more, as far as its
// poster can tell: all completions were polled.
func (m *Model) Closed(s *Stream) {
	if !s.closed {
		m.endStream(s, false)
	}
}

func (m *Model) endStream(s *Stream, crash bool) {
	s.closed = true
	for _, o := range s.ops[s.next:] {
		switch {
		case o.done:
		case crash:
			m.finish(o, false)
		case o.Signaled:
			m.fail("%v: lost completion", o)
		case s.failed != nil:
			m.fail("%v: lost completion: %v before it has failed", o, s.failed)
		default:
			m.finish(o, true) // it would have completed, had it failed
		}
	}
	s.next = len(s.ops)
}

// Finish says that the run is over and all is quiet.
func (m *Model) Finish() {
	for _, streams := range m.streams {
		for _, s := range streams {
			for _, o := range s.msgs[s.heard:] {
				if o.ok && !m.anyRefusable(s, o.pos+1) { // what follows a refusal may have arrived, and goes no further
					m.fail("%v succeeded and was never delivered", o)
				}
			}
		}
	}
}
