package mpi

import (
	"encoding/binary"
	"slices"

	"github.com/xwarp/xwarp/mpi/internal/match"
	"github.com/xwarp/xwarp/mpi/internal/p2p"
)

// A partitioned send and its receive are joined by a channel: a tag for each
// partition of the sender's, in the context of collectives, where no other receive
// meets them. The sender chooses the tags and tells the receiver in a word, when it
// is made; words come in order, so that both sides count alike which meet. All that
// follows, in every round, are plain messages, of which those of one tag are in
// order too.

// channels are those of a communicator.
type channels struct {
	used    int32 // tags given to sends
	waiting []*partRecv
	told    []word
	heard   *p2p.Request // receives a word, into buf
	from    int          // its source
	buf     [wordLen]byte
}

// tagWord is the tag of a word; those of partitions follow.
const (
	tagWord     = p2p.PairTag
	tagsOfParts = p2p.PairTagMax - tagWord
)

// word tells a receiver about a send.
type word struct {
	source, tag int
	first       int32 // tag of the first partition
	n           int   // partitions
	bytes       uint64
}

const wordLen = 4 + 4 + 4 + 8

// encode returns the word as it is sent: tag, first, n, bytes.
func (w word) encode() []byte {
	b := make([]byte, 0, wordLen)
	b = binary.BigEndian.AppendUint32(b, uint32(w.tag))
	b = binary.BigEndian.AppendUint32(b, uint32(w.first))
	b = binary.BigEndian.AppendUint32(b, uint32(w.n))
	return binary.BigEndian.AppendUint64(b, w.bytes)
}

// readWord is the inverse of encode. It refuses what no sender says.
func readWord(b []byte) (w word, ok bool) {
	if len(b) != wordLen {
		return w, false
	}
	w = word{
		tag: int(binary.BigEndian.Uint32(b)), first: int32(binary.BigEndian.Uint32(b[4:])),
		n: int(binary.BigEndian.Uint32(b[8:])), bytes: binary.BigEndian.Uint64(b[12:]),
	}
	return w, w.tag <= MaxTag && w.first > tagWord && w.n > 0 && int(w.first)+w.n-1 <= p2p.PairTagMax && w.bytes%uint64(w.n) == 0
}

// announceParts takes tags for the partitions of a send and tells the receiver.
// They begin again when there are no more.
func (c *Comm) announceParts(dest, tag, n, bytes int) (first int32) {
	m := &c.coll.parts
	c.ep.Enter()
	defer c.ep.Leave()
	if int(m.used)+n > tagsOfParts {
		m.used = 0
	}
	first = tagWord + 1 + m.used
	m.used += int32(n)
	in, w := c.ep.Inside(), word{tag: tag, first: first, n: n, bytes: uint64(bytes)}
	b := w.encode()
	c.sentAs(c.pairOut(tagWord), int32(c.at(dest)), len(b))
	in.Detach(in.Isend(c.pairOut(tagWord), c.at(dest), b)) // a loss is told to the calls that send the partitions
	in.Flush()
	return first
}

// pairOut is the envelope of a message of a channel from this rank, pairIn of one to
// it.
func (c *Comm) pairOut(tag int32) match.Envelope {
	return match.Envelope{Context: c.context + 1, Source: int32(c.p.rank), Tag: tag}
}

func (c *Comm) pairIn(source int, tag int32) match.Envelope {
	return match.Envelope{Context: c.context + 1, Source: int32(c.at(source)), Tag: tag}
}

// listen takes the words of a source that are there. It is called inside.
func (c *Comm) listen(source int) error {
	m, in := &c.coll.parts, c.ep.Inside()
	for {
		if m.heard == nil {
			w, found, err := in.Seize(c.pairIn(source, tagWord))
			if !found {
				return err
			}
			m.heard, m.from = in.Accept(w, m.buf[:]), source
		}
		if !m.heard.Ready() {
			return nil
		}
		st, err := in.Wait(m.heard)
		m.heard = nil
		c.gotAs(c.context+1, st)
		switch {
		case err != nil && m.from != source: // a receive that listens to that one finds out
			continue
		case err != nil:
			return err
		}
		w, ok := readWord(m.buf[:st.Bytes])
		if !ok {
			return &Error{Class: ErrIntern, Op: "Start", Rank: m.from, Detail: "what it has told about its partitions makes no sense: do all ranks run the same version?"}
		}
		w.source = m.from
		m.meet(w)
	}
}

// meet gives a word to the oldest receive that waits for one like it, or keeps it.
func (m *channels) meet(w word) {
	for i, t := range m.waiting {
		if t.source == w.source && t.tag == w.tag {
			t.word = w
			m.waiting = slices.Delete(m.waiting, i, i+1)
			return
		}
	}
	m.told = append(m.told, w)
}

// await makes a receive wait for its word, which may be there.
func (t *partRecv) await() {
	m := &t.c.coll.parts
	t.c.ep.Enter()
	defer t.c.ep.Leave()
	for i, w := range m.told {
		if t.source == w.source && t.tag == w.tag {
			t.word = w
			m.told = slices.Delete(m.told, i, i+1)
			return
		}
	}
	m.waiting = append(m.waiting, t)
}

// learnAll waits for the words of all receives that were made and never started, for
// no other communicator may find them. Without a word from a rank that is lost there
// is none to wait for.
func (c *Comm) learnAll() {
	m := &c.coll.parts
	c.ep.Enter()
	defer c.ep.Leave()
	for len(m.waiting) > 0 {
		first := m.waiting[0]
		if err := c.listen(first.source); err != nil {
			m.waiting = m.waiting[1:]
			continue
		}
		if first.word.n == 0 {
			c.ep.Inside().Progress()
		}
	}
}

// partSend is a partitioned send. Its request is complete when all partitions were
// sent.
type partSend struct {
	c     *Comm
	d     Data
	n     int
	dest  int
	first int32
	k     *call          // nil: never started
	said  []bool         // partitions that are ready
	sends []*p2p.Request // of partitions; nil while they are not
	sent  int            // partitions whose sends have ended, from the first on
}

func (t *partSend) begin(k *call) {
	t.k, t.sent = k, 0
	if t.said == nil {
		t.said, t.sends = make([]bool, t.n), make([]*p2p.Request, t.n)
	}
	clear(t.said)
}

// ready sends a partition.
func (t *partSend) ready(op string, i int) error {
	if err := t.mark(op, i); err != nil || t.dest == ProcNull {
		return err
	}
	part := t.d.part(i*(t.d.count/t.n), t.d.count/t.n)
	b, err := part.bytes(op)
	if err != nil {
		return err
	}
	tag := t.first + int32(i)
	t.c.sentAs(t.c.pairOut(tag), int32(t.c.at(t.dest)), len(b))
	r := t.c.ep.Isend(t.c.pairOut(tag), t.c.at(t.dest), b)
	t.c.ep.Enter()
	t.sends[i] = r
	t.c.ep.Leave()
	return nil
}

// mark notes that a partition is ready.
func (t *partSend) mark(op string, i int) error {
	t.c.ep.Enter()
	defer t.c.ep.Leave()
	switch {
	case t.k == nil || !t.k.busy:
		return fail(ErrRequest, op, "the send was not started")
	case t.said[i]:
		return fail(ErrRequest, op, "partition %d is ready already", i)
	}
	t.said[i] = true
	return nil
}

func (t *partSend) advance(k *call) (done bool) {
	for t.dest != ProcNull && t.sent < t.n {
		r := t.sends[t.sent]
		if r == nil || !r.Ready() {
			return false
		}
		if _, err := t.c.ep.Inside().Wait(r); err != nil && k.err == nil {
			k.err = t.c.wrap("Start", err)
		}
		t.sends[t.sent] = nil
		t.sent++
	}
	k.st = emptyStatus()
	return true
}

// partRecv is a partitioned receive. Its messages are the partitions of the sender,
// each of which goes where it belongs, or into packed where elements do not lie side
// by side.
type partRecv struct {
	c           *Comm
	d           Data
	n           int
	source, tag int
	word        word // n is 0 while nothing is known about the send
	inactive    bool
	posted      bool
	packed      []byte
	got         []*p2p.Request // of partitions of the sender; nil: it has arrived
	all         int            // of these have arrived, from the first on
	err         error
}

func (t *partRecv) begin(*call) { t.inactive, t.posted, t.all, t.err = false, false, 0, nil }

func (t *partRecv) advance(k *call) (done bool) {
	k.st = nullStatus()
	if t.source != ProcNull {
		if t.err == nil && !t.posted {
			t.err = t.post()
		}
		if t.err == nil && !t.posted || t.posted && !t.settleAll() {
			return false
		}
		k.st = Status{Source: t.source, Tag: t.tag, bytes: t.d.size()}
	}
	t.inactive = true
	k.err = t.err
	return true
}

// post posts the receives, if the send is known.
func (t *partRecv) post() error {
	c := t.c
	if t.word.n == 0 {
		if err := c.listen(t.source); err != nil {
			return c.wrap("Start", err)
		}
		if t.word.n == 0 {
			return nil
		}
	}
	b, flat := t.d.flat()
	if !flat {
		if len(t.packed) != t.d.size() {
			t.packed = make([]byte, t.d.size())
		}
		b = t.packed
	}
	if t.word.bytes != uint64(len(b)) {
		return wrongLength("Start", t.source, t.word.bytes, uint64(len(b)))
	}
	if t.posted = true; t.got == nil {
		t.got = make([]*p2p.Request, t.word.n)
	}
	size := len(b) / t.word.n
	for i := range t.got {
		t.got[i] = c.ep.Inside().Irecv(c.pairIn(t.source, t.word.first+int32(i)), b[i*size:(i+1)*size])
	}
	return nil
}

// settleAll reports whether all partitions of the sender have arrived.
func (t *partRecv) settleAll() bool {
	for ; t.all < len(t.got); t.all++ {
		if !t.settle(t.all) {
			return false
		}
	}
	return true
}

// settle reports whether a partition of the sender has arrived.
func (t *partRecv) settle(i int) bool {
	r := t.got[i]
	if r == nil || !r.Ready() {
		return r == nil
	}
	c := t.c
	st, err := c.ep.Inside().Wait(r)
	t.got[i] = nil
	c.gotAs(c.context+1, st)
	size := t.d.size() / t.word.n
	switch {
	case err == nil && st.Bytes != size:
		err = wrongLength("Start", t.source, uint64(st.Bytes*t.word.n), uint64(t.d.size()))
	case err == nil && t.packed != nil:
		cur, _ := t.d.cursor("Start") // PrecvInit has found it good
		cur.Seek(i * size)
		cur.Unpack(t.packed[i*size : (i+1)*size])
	}
	if t.err == nil && err != nil {
		t.err = c.wrap("Start", err)
	}
	return true
}

// arrived reports whether a partition of the receiver has arrived: all those of the
// sender that it has bytes of.
func (t *partRecv) arrived(i int) bool {
	if t.inactive || !t.posted {
		return t.inactive
	}
	total, size := t.d.size(), t.d.size()/t.n
	if size == 0 {
		return t.settleAll()
	}
	theirs := total / t.word.n
	for j := i * size / theirs; j*theirs < (i+1)*size; j++ {
		if !t.settle(j) {
			return false
		}
	}
	return true
}
