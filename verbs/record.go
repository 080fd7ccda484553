package verbs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/internal/proto/llp"
	"github.com/xwarp/xwarp/iwarp"
	"github.com/xwarp/xwarp/iwarp/ddp"
	"github.com/xwarp/xwarp/iwarp/record"
)

// Range is a run of bytes of a message: from Start up to, not including, End.
type Range = record.Range

// Record is what a target knows of one Write-Record when it ended. It is valid
// until Release; a queue pair has a bounded number of them.
type Record struct {
	ID      uint32  // its number, see RecordConfig
	RKey    uint32  // region or window that was written to
	Addr    uint64  // where the message begins in it
	Len     uint32  // bytes of the message
	Valid   []Range // what has arrived and was placed, ascending, not adjacent
	Began   Time    // arrival of its first chunk
	Whole   bool    // all of it
	Expired bool    // ended by its deadline, or to make room for newer ones

	table *recordTable
	src   *recordSource
	ends  mono.Time
	tail  bool // the last chunk has come
	bytes record.ValidityMap
}

// Release gives the record back to its queue pair.
func (r *Record) Release() {
	if r.table == nil || r.src != nil {
		return // given back before, or not ended
	}
	t := r.table
	r.table = nil
	t.free = append(t.free, r)
}

// source names where a Write-Record comes from.
type source struct {
	from  fabric.Remote
	epoch uint32 // life of the sending endpoint
	qpn   uint32 // its queue pair
	ah    *AH    // on reliable datagrams
}

// recordSource is what a target keeps for one source: the records that are not
// complete, and which have ended, so that a late chunk does not begin one anew.
type recordSource struct {
	source
	live  []*Record // newest last
	any   bool      // one has ended
	top   uint32    // highest number of those
	ended [recordHistory / 64]uint64
	next  *recordSource
}

// recordHistory is for how many numbers up to the highest a target knows which
// records have ended: bit i%recordHistory of recordSource.ended is for number i.
const recordHistory = 512

const (
	recordBuckets = 64
	maxSources    = 1024 // of one queue pair
	maxRecords    = 4096 // that are live or not released
)

// recordTable holds the Write-Records that arrive at a queue pair.
type recordTable struct {
	cfg      RecordConfig
	buckets  [recordBuckets]*recordSource
	sources  int
	made     int
	free     []*Record
	deadline mono.Time
}

func (t *recordTable) init(c RecordConfig) error {
	if c.MaxPerSource < 0 || c.MaxPerSource > maxRecords || c.Deadline < 0 {
		return fmt.Errorf("%w: record configuration %+v", ErrInvalid, c)
	}
	c.MaxPerSource, c.Deadline = cmp.Or(c.MaxPerSource, 8), cmp.Or(c.Deadline, 10*mono.Millisecond)
	t.cfg, t.deadline = c, mono.Never
	return nil
}

// sourceOf finds a source, or makes it. nil when there are too many.
func (t *recordTable) sourceOf(s *source) *recordSource {
	bucket := &t.buckets[(s.from.Hash()^uint64(s.qpn)*0x9e3779b97f4a7c15)>>58]
	for r := *bucket; r != nil; r = r.next {
		if r.source == *s {
			return r
		}
	}
	if t.sources >= maxSources && !t.forget() {
		return nil
	}
	t.sources++
	r := &recordSource{source: *s, next: *bucket}
	*bucket = r
	return r
}

// forget drops a source that has no live record.
func (t *recordTable) forget() bool {
	for i := range t.buckets {
		for at := &t.buckets[i]; *at != nil; at = &(*at).next {
			if len((*at).live) == 0 {
				*at = (*at).next
				t.sources--
				return true
			}
		}
	}
	return false
}

// over reports whether record id of the source has ended, or is so old that it
// must have.
func (s *recordSource) over(id uint32) bool {
	back := int32(s.top - id)
	return s.any && back >= 0 && (back >= recordHistory || s.ended[id%recordHistory/64]>>(id%64)&1 != 0)
}

// end notes that record id has ended.
func (s *recordSource) end(id uint32) {
	switch ahead := int32(id - s.top); {
	case !s.any || ahead >= recordHistory:
		clear(s.ended[:])
		s.any, s.top = true, id
	case ahead > 0:
		for s.top != id {
			s.top++
			s.ended[s.top%recordHistory/64] &^= 1 << (s.top % 64)
		}
	case ahead <= -recordHistory:
		return // that is over anyway
	}
	s.ended[id%recordHistory/64] |= 1 << (id % 64)
}

// admit returns the record that a chunk of n bytes belongs to, or nil when it
// is late, or there is no room for one more.
func (t *recordTable) admit(q *QP, now mono.Time, from *source, k *record.Chunk, h *ddp.Header, n int) *Record {
	s := t.sourceOf(from)
	if s == nil || s.over(k.ID) && !t.cfg.PerChunk {
		q.Stats.RecordDrops++
		return nil
	}
	var r *Record
	for _, x := range s.live {
		if x.ID == k.ID {
			r = x
		}
	}
	if r == nil {
		if r = t.begin(q, now, s, k, h); r == nil {
			q.Stats.RecordDrops++
			return nil
		}
	} else if r.RKey != uint32(h.STag) || r.Addr != h.TO-uint64(k.Offset) || r.Len != k.Length {
		q.Stats.Malformed++
		return nil
	}
	if !r.bytes.Add(k.Offset, uint32(n)) {
		q.Stats.RecordDrops++
		return nil
	}
	return r
}

// begin makes a record, for which it takes a place in the completion queue. The
// oldest of the source ends when it has too many.
func (t *recordTable) begin(q *QP, now mono.Time, s *recordSource, k *record.Chunk, h *ddp.Header) *Record {
	if len(s.live) >= t.cfg.MaxPerSource {
		t.finish(q, s.live[0])
	}
	if len(t.free) == 0 && t.made == maxRecords || !q.recvCQ.reserve() {
		return nil
	}
	if len(t.free) == 0 {
		t.free = append(t.free, new(Record))
		t.made++
	}
	last := len(t.free) - 1
	r := t.free[last]
	t.free = t.free[:last]
	*r = Record{
		ID: k.ID, RKey: uint32(h.STag), Addr: h.TO - uint64(k.Offset), Len: k.Length, Began: now,
		table: t, src: s,
	}
	r.bytes.Init(k.Length)
	s.live = append(s.live, r)
	return r
}

// note counts the n bytes of a chunk that was placed, and ends the record when
// it is whole. After its last chunk the others have an eighth of the time: they
// can only have been overtaken.
func (t *recordTable) note(q *QP, now mono.Time, r *Record, k *record.Chunk, n int, last bool) {
	if r.bytes.Whole() || t.cfg.PerChunk {
		t.finish(q, r)
		return
	}
	r.tail = r.tail || last
	wait := t.cfg.Deadline
	if r.tail {
		wait /= 8
	}
	if r.ends = now.Add(wait); r.src.ah != nil {
		r.ends = mono.Never // reliable: the rest will come
	}
	t.deadline = min(t.deadline, r.ends)
}

// expire ends the records whose time has come.
func (t *recordTable) expire(q *QP, now mono.Time) {
	t.deadline = mono.Never
	for i := range t.buckets {
		for s := t.buckets[i]; s != nil; s = s.next {
			for n := len(s.live) - 1; n >= 0; n-- {
				if r := s.live[n]; r.ends <= now {
					t.finish(q, r)
				} else {
					t.deadline = min(t.deadline, r.ends)
				}
			}
		}
	}
}

// finish ends a record as it is, and completes.
func (t *recordTable) finish(q *QP, r *Record) {
	s := r.src
	i := slices.Index(s.live, r)
	s.live = slices.Delete(s.live, i, i+1)
	r.src = nil
	s.end(r.ID)
	r.Valid, r.Whole = r.bytes.Ranges(), r.bytes.Whole()
	r.Expired = !r.Whole && !t.cfg.PerChunk
	q.Stats.RemoteRecords++
	wc := q.completeRecv(0, OpRecvRDMAWriteRecord, r.bytes.Bytes(), s.ah)
	wc.SrcQP, wc.SrcEpoch, wc.SrcAddr, wc.Record = s.qpn, s.epoch, s.from, r
}

// flush ends all records, as they are.
func (t *recordTable) flush(q *QP) {
	for i := range t.buckets {
		for s := t.buckets[i]; s != nil; s = s.next {
			t.finishAll(q, s)
		}
	}
}

// finishAll ends the records of a source, as they are.
func (t *recordTable) finishAll(q *QP, s *recordSource) {
	for n := len(s.live) - 1; n >= 0; n-- {
		t.finish(q, s.live[n])
	}
}

// placeChunk places a chunk of a Write-Record that arrived reliably. The record
// completes when its last chunk is delivered.
func (q *rdReceiver) placeChunk(ah *AH, rd *llp.Reader, h *ddp.Header, n int) (ev event, v verdict) {
	var k record.Chunk
	dst, cause := q.grantChunk(h, &k, rd, n)
	if dst == nil {
		return ev, q.refuseSegment(ah, cause, h, n)
	}
	n = len(dst)
	rd.Copy(dst)
	return event{kind: eventRecord, name: k.ID, inv: uint32(h.STag), imm: h.TO, len: uint32(n), wrid: uint64(k.Offset)<<32 | uint64(k.Length)}, placed
}

// delivered logs a chunk in the order in which it was sent.
func (t *recordTable) delivered(q *QP, ah *AH, ev *event) {
	k := record.Chunk{ID: ev.name, Length: uint32(ev.wrid), Offset: uint32(ev.wrid >> 32)}
	h := ddp.Header{STag: iwarp.STag(ev.inv), TO: ev.imm}
	src := source{from: ah.remote, qpn: rdNum, ah: ah}
	now := q.ctx.cfg.Engine.Now()
	if r := t.admit(q, now, &src, &k, &h, int(ev.len)); r != nil {
		t.note(q, now, r, &k, int(ev.len), false)
	}
}

// lost ends the records of a peer that is gone, as they are.
func (t *recordTable) lost(q *QP, ah *AH) {
	src := source{from: ah.remote, qpn: rdNum, ah: ah}
	for i := range t.buckets {
		for at := &t.buckets[i]; *at != nil; {
			s := *at
			if s.source != src {
				at = &s.next
				continue
			}
			t.finishAll(q, s)
			*at = s.next
			t.sources--
		}
	}
}
