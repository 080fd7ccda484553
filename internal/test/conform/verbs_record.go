package conform

import (
	"slices"

	"github.com/xwarp/xwarp/internal/base/mono"
	"github.com/xwarp/xwarp/internal/carrier/fabric"
	"github.com/xwarp/xwarp/verbs"
)

// recordCases are about Write-Record.
var recordCases = []verbsCase{
	{name: "writeRecord", on: onBoth, qp: endlessRecords, run: recordSizes},
	{name: "writeRecordPerChunk", on: onBoth, qp: perChunk, run: recordPerChunk},
	{name: "writeRecordsOverlap", on: onBoth, hosts: 3, qp: endlessRecords, run: recordsOverlap},
	{name: "writeRecordLossy", on: onUD, faulty: true, qp: lossyRecords, run: recordLossy},
	{name: "writeRecordCutOff", on: onUD, qp: shortRecords, run: recordCutOff},
	{name: "writeRecordRefused", on: onUD, run: recordRefused},
}

func perChunk(_ *host, init *verbs.QPInit) { init.Record.PerChunk = true }

func shortRecords(_ *host, init *verbs.QPInit) { init.Record.Deadline = 20 * mono.Millisecond }

// endlessRecords is for what must become whole, however long this process stands
// still in the midst of it.
func endlessRecords(_ *host, init *verbs.QPInit) { init.Record.Deadline = 3600 * mono.Second }

// lossyRecords gives up what is lost: soon where faults lose much. Without them
// only a kernel that has no memory for a packet loses any, and what this process
// has not come to look at is not lost.
func lossyRecords(h *host, init *verbs.QPInit) { init.Record.Deadline = h.r.recordDeadline() }

func (r *rig) recordDeadline() mono.Duration {
	if r.config.Faults.Loss > 0 {
		return 20 * mono.Millisecond
	}
	return 16 * mono.Second
}

// record waits for a Write-Record of from to end, and checks what must be true
// of every one: it lies in dst, and what is valid of it is what src holds.
// soFar is what is expected of dst, into which it copies the valid bytes.
func (h *host) record(from *host, src, dst *region, soFar []byte) *verbs.Record {
	r := h.r
	r.t.Helper()
	wc := r.next(h.rcq)
	rec := wc.Record
	if wc.Status != verbs.Success || wc.Opcode != verbs.OpRecvRDMAWriteRecord || rec == nil || wc.SrcAddr != fabric.RemoteOf(from.addr) {
		r.t.Fatalf("host %d: completion %+v", h.i, wc)
	}
	off := rec.Addr - dst.Addr()
	if rec.RKey != dst.RKey() || off > uint64(dst.Len()) || uint64(rec.Len) > uint64(dst.Len())-off {
		r.t.Fatalf("host %d: record %+v", h.i, rec)
	}
	valid, end := uint32(0), uint32(0)
	for i, v := range rec.Valid {
		if v.Start >= v.End || v.End > rec.Len || i > 0 && v.Start <= end {
			r.t.Fatalf("host %d: %v is valid of %d bytes", h.i, rec.Valid, rec.Len)
		}
		end = v.End
		valid += v.End - v.Start
		copy(soFar[off+uint64(v.Start):off+uint64(v.End)], src.b[v.Start:v.End])
	}
	if valid != wc.ByteLen || rec.Whole != (valid == rec.Len) {
		r.t.Fatalf("host %d: completion %+v of %+v", h.i, wc, rec)
	}
	return rec
}

func recordSizes(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	seg := a.ctx.Attr().MaxSeg
	sizes := []int{1, 8, 256, 1000, seg, 2 * seg, 3*seg + 5}
	src, dst := a.region(3*seg+5, 0), b.region(3*seg+105, verbs.LocalWrite|verbs.RemoteWrite)
	for i, n := range sizes {
		src.fill(i)
		clear(dst.b)
		off := i * 13 % 100
		wr := at(a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, n/2), src.SGE(n/2, n-n/2)), dst, off)
		if n <= verbs.MaxInline && i%2 == 1 {
			wr.Flags |= verbs.Inline
			wr.NumSGE, wr.InlineData = 0, src.b[:n]
		}
		a.post(wr)
		want := make([]byte, dst.Len())
		rec := b.record(a, src, dst, want)
		if !rec.Whole || rec.Expired || int(rec.Len) != n || len(rec.Valid) != 1 || rec.Addr != dst.Addr()+uint64(off) {
			r.t.Fatalf("%d bytes: record %+v", n, rec)
		}
		rec.Release()
		a.sent(&wr, verbs.Success)
		dst.equals(want)
		dst.is(off, src.b[:n])
	}
	if b.qp.Stats.RemoteRecords != uint64(len(sizes)) || a.qp.Stats.Records != uint64(len(sizes)) {
		r.t.Errorf("%d records are counted here, %d there; %d were made", a.qp.Stats.Records, b.qp.Stats.RemoteRecords, len(sizes))
	}
}

// recordPerChunk hears of each chunk.
func recordPerChunk(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	size := 3*a.ctx.Attr().MaxSeg + 11
	src, dst := a.region(size, 0).fill(4), b.region(size, verbs.LocalWrite|verbs.RemoteWrite)
	wr := at(a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, size)), dst, 0)
	a.post(wr)
	want := make([]byte, size)
	chunks := 0
	for !slices.Equal(want, src.b) {
		rec := b.record(a, src, dst, want)
		if len(rec.Valid) != 1 || int(rec.Len) != size {
			r.t.Fatalf("chunk %d: record %+v", chunks, rec)
		}
		rec.Release()
		chunks++
	}
	if chunks < 3 {
		r.t.Errorf("%d bytes came in %d chunks", size, chunks)
	}
	a.sent(&wr, verbs.Success)
	dst.equals(want)
}

// recordsOverlap has several messages of two hosts on the way at a time: each
// is logged by itself.
func recordsOverlap(r *rig) {
	const count, size = 6, 30_000
	b := r.hosts[1]
	senders := []*host{r.hosts[0], r.hosts[2]}
	var srcs, dsts [2]*region
	for k, h := range senders {
		srcs[k] = h.region(size, 0).fill(k)
		dsts[k] = b.region(count*size, verbs.LocalWrite|verbs.RemoteWrite)
	}
	for i := range count {
		for k, h := range senders {
			wr := at(h.wr(verbs.OpRDMAWriteRecord, b, srcs[k].SGE(0, size)), dsts[k], i*size)
			wr.Flags = 0
			h.post(wr)
		}
	}
	wants := [2][]byte{make([]byte, count*size), make([]byte, count*size)}
	for range 2 * count {
		var wc [1]verbs.WC
		r.until(func() bool { return b.rcq.Poll(wc[:]) == 1 })
		rec := wc[0].Record
		k := 0
		if wc[0].SrcAddr == fabric.RemoteOf(senders[1].addr) {
			k = 1
		}
		if rec == nil || !rec.Whole || rec.Len != size || rec.RKey != dsts[k].RKey() || (rec.Addr-dsts[k].Addr())%size != 0 {
			r.t.Fatalf("completion %+v of %+v", wc[0], rec)
		}
		copy(wants[k][rec.Addr-dsts[k].Addr():], srcs[k].b)
		rec.Release()
	}
	for k := range senders {
		dsts[k].equals(wants[k])
		for i := range count { // all of them, each once
			if !slices.Equal(dsts[k].b[i*size:(i+1)*size], srcs[k].b) {
				r.t.Errorf("message %d of %d did not arrive", i, k)
			}
		}
	}
}

// untouched reports whether memory is as clear left it.
func untouched(b []byte) bool {
	return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}

// recordLossy logs what arrives of messages of which parts are lost: what is
// said to be valid is there, and nothing else has changed.
func recordLossy(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const rounds = 40
	size := max(60_000, 6*a.ctx.Attr().MaxSeg)
	src, dst := a.region(size, 0).fill(9), b.region(size, verbs.LocalWrite|verbs.RemoteWrite)
	lossy := r.config.Faults.Loss > 0
	whole, parts := 0, 0
	for range rounds {
		clear(dst.b)
		a.do(at(a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, size)), dst, 0))
		end := r.net.Clock.Now().Add(3 * r.recordDeadline())
		// What has changed memory belongs to a record that will end, however
		// late this process comes to look.
		r.until(func() bool { return b.rcq.Len() > 0 || r.net.Clock.Now() > end && untouched(dst.b) })
		want := make([]byte, size)
		if b.rcq.Len() > 0 { // else all of it was lost
			rec := b.record(a, src, dst, want)
			if rec.Whole {
				whole++
			} else if parts++; !rec.Expired {
				r.t.Fatalf("record %+v", rec)
			}
			rec.Release()
		}
		dst.equals(want)
	}
	least := rounds // that must be whole
	switch {
	case lossy:
		least = 0
	case !r.net.Virtual:
		least = 1
	}
	if lossy && parts == 0 || whole < least {
		r.t.Errorf("of %d messages %d are whole, %d in parts", rounds, whole, parts)
	}
}

// recordCutOff loses the end of a message: the record ends when its time has
// come, and what comes later does not begin it anew.
func recordCutOff(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	size := 60_000 // much more than a datagram, or else nothing can be cut off
	if a.ctx.Attr().MaxSeg >= size/4 {
		size = 20 * a.ctx.Attr().MaxSeg
	}
	src, dst := a.region(size, 0).fill(2), b.region(size, verbs.LocalWrite|verbs.RemoteWrite)
	wr := at(a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, size)), dst, 0)
	a.post(wr) // the first datagram goes out at once
	a.wire.cut = true
	a.sent(&wr, verbs.Success)
	a.wire.cut = false
	want := make([]byte, size)
	rec := b.record(a, src, dst, want)
	if rec.Whole || !rec.Expired || rec.Began == 0 || len(rec.Valid) != 1 || rec.Valid[0].Start != 0 {
		r.t.Errorf("record %+v", rec)
	}
	rec.Release()
	dst.equals(want)
	r.exchange(a, b)
}

// recordRefused names memory that was not granted: nobody hears of it, nothing
// changes, and the queue pair goes on.
func recordRefused(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	src, dst := a.region(1000, 0).fill(1), b.region(1000, verbs.LocalWrite|verbs.RemoteWrite)
	for i, bad := range b.ungranted(dst, 100, verbs.RemoteWrite) {
		wr := a.wr(verbs.OpRDMAWriteRecord, b, src.SGE(0, 100))
		wr.RKey, wr.RemoteAddr = bad.key, bad.addr
		a.do(wr)
		r.until(func() bool { return b.qp.Stats.Refused+b.qp.Stats.Malformed == uint64(i+1) })
		dst.is(0, nil)
		r.exchange(a, b)
	}
}
