package conform

import (
	"github.com/xwarp/xwarp/verbs"
)

// oneSidedCases are about Write, Write with Immediate and Read.
var oneSidedCases = []verbsCase{
	{name: "write", on: onRel, run: writeSizes},
	{name: "writeThenSend", on: onRel, run: writeThenSend},
	{name: "writeWithImm", on: onRel, run: writeWithImm},
	{name: "read", on: onRel, run: readSizes},
	{name: "readsAtOnce", on: onRel, run: readsAtOnce},
	{name: "readBothWays", on: onRel, run: readBothWays},
	{name: "readSeesWrite", on: onRel, run: readSeesWrite},
	{name: "fence", on: onRel, run: fence},
}

func writeSizes(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	sizes := r.sizes()
	most := sizes[len(sizes)-1]
	src, dst := a.region(most, 0), b.region(most+100, verbs.LocalWrite|verbs.RemoteWrite)
	for i, n := range sizes {
		src.fill(i)
		clear(dst.b)
		off := i * 5 % 100
		wr := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, n/3), src.SGE(n/3, 0), src.SGE(n/3, n-n/3)), dst, off)
		if n <= verbs.MaxInline && i%2 == 0 {
			wr.Flags |= verbs.Inline
			wr.NumSGE, wr.InlineData = 0, src.b[:n]
		}
		a.do(wr)
		dst.gets(off, src.b[:n])
	}
	if got := a.to(b).Stats.Writes; got != uint64(len(sizes)) {
		r.t.Errorf("%d Writes are counted, %d were made", got, len(sizes))
	}
}

// writeThenSend checks that a Send is not delivered before the Writes that were
// posted before it are placed.
func writeThenSend(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 100_000
	src, dst, word := a.region(size, 0), b.region(size, verbs.LocalWrite|verbs.RemoteWrite), b.region(8, verbs.LocalWrite)
	for i := range 10 {
		src.fill(i)
		id := b.recv(a, word.SGE(0, 8))
		write := at(a.wr(verbs.OpRDMAWrite, b, src.SGE(0, size)), dst, 0)
		send := a.wr(verbs.OpSend, b, src.SGE(0, 8))
		a.post(write)
		a.post(send)
		b.received(id, verbs.OpRecv, a)
		dst.is(0, src.b)
		a.sent(&write, verbs.Success)
		a.sent(&send, verbs.Success)
	}
}

func writeWithImm(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	seg := r.seg()
	most := 3*seg + 5
	src, dst, idle := a.region(most, 0), b.region(most, verbs.LocalWrite|verbs.RemoteWrite), b.region(64, verbs.LocalWrite)
	for i, n := range []int{0, 1, 8, 1000, seg, most} {
		src.fill(i)
		clear(dst.b)
		id := b.recv(a, idle.SGE(0, 64))
		wr := at(a.wr(verbs.OpRDMAWriteWithImm, b, src.SGE(0, n)), dst, 0)
		wr.ImmData = 0x0123456789abcdef * uint64(i)
		want := verbs.WCWithImm
		if i%2 == 1 {
			wr.Flags |= verbs.Solicited
			want |= verbs.WCWithSolicited
		}
		a.post(wr)
		if wc := b.received(id, verbs.OpRecvRDMAWithImm, a); wc.ImmData != wr.ImmData || wc.Flags != want {
			r.t.Fatalf("%d bytes: completion %+v, want flags %#x and %#x", n, wc, want, wr.ImmData)
		}
		dst.is(0, src.b[:n])
		idle.is(0, nil) // the receive only completes
		a.sent(&wr, verbs.Success)
	}
}

func readSizes(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	sizes := r.sizes()
	most := sizes[len(sizes)-1]
	sink, src := a.region(most+30, verbs.LocalWrite), b.region(most+100, verbs.RemoteRead)
	for i, n := range sizes {
		src.fill(i)
		keep := append([]byte(nil), src.b...)
		clear(sink.b)
		off := i * 5 % 100
		wr := at(a.wr(verbs.OpRDMARead, b, sink.SGE(10, n/3), sink.SGE(0, 0), sink.SGE(20+n/3, n-n/3)), src, off)
		a.post(wr)
		wc := r.next(a.scq)
		if wc.Status != verbs.Success || wc.WRID != wr.WRID || wc.Opcode != verbs.OpRDMARead || wc.ByteLen != uint32(n) {
			r.t.Fatalf("%d bytes: %+v", n, wc)
		}
		want := make([]byte, len(sink.b))
		copy(want[10:10+n/3], src.b[off:])
		copy(want[20+n/3:20+n], src.b[off+n/3:])
		sink.equals(want)
		src.equals(keep)
	}
	if b.to(a).Stats.RemoteReads != uint64(len(sizes)) || a.to(b).Stats.Reads != uint64(len(sizes)) {
		r.t.Errorf("%d Reads are counted here, %d there; %d were made", a.to(b).Stats.Reads, b.to(a).Stats.RemoteReads, len(sizes))
	}
}

// readsAtOnce posts more Reads than may be outstanding: they complete in order.
func readsAtOnce(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 20_000
	count := 3*a.ctx.Attr().MaxQPRdAtom + 1
	sink, src := a.region(count*size, verbs.LocalWrite), b.region(count*size, verbs.RemoteRead).fill(7)
	wrs := make([]verbs.SendWR, count)
	for i := range wrs {
		wrs[i] = at(a.wr(verbs.OpRDMARead, b, sink.SGE(i*size, size)), src, i*size)
		a.post(wrs[i])
	}
	for i := range wrs {
		a.sent(&wrs[i], verbs.Success)
	}
	sink.equals(src.b)
}

// readBothWays lets both hosts read so much from each other that each has to
// answer while it waits.
func readBothWays(r *rig) {
	const size, count = 50_000, 20
	var sinks, sources [2]*region
	var wrs [2][count]verbs.SendWR
	for i := range 2 {
		sinks[i] = r.hosts[i].region(size, verbs.LocalWrite)
		sources[i] = r.hosts[i].region(size, verbs.RemoteRead).fill(i)
	}
	for i := range 2 {
		h, peer := r.hosts[i], r.hosts[1-i]
		for k := range count {
			wrs[i][k] = at(h.wr(verbs.OpRDMARead, peer, sinks[i].SGE(0, size)), sources[1-i], 0)
			h.post(wrs[i][k])
		}
	}
	for i := range 2 {
		for k := range count {
			r.hosts[i].sent(&wrs[i][k], verbs.Success)
		}
	}
	sinks[0].equals(sources[1].b)
	sinks[1].equals(sources[0].b)
}

// readSeesWrite posts a Read of what the Write before it writes.
func readSeesWrite(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 30_000
	src, sink := a.region(size, 0), a.region(size, verbs.LocalWrite)
	dst := b.region(size, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	for i := range 10 {
		write := at(a.wr(verbs.OpRDMAWrite, b, src.fill(i).SGE(0, size)), dst, 0)
		read := at(a.wr(verbs.OpRDMARead, b, sink.SGE(0, size)), dst, 0)
		a.post(write)
		a.post(read)
		a.sent(&write, verbs.Success)
		a.sent(&read, verbs.Success)
		sink.equals(src.b)
	}
}

// fence sends what a Read brings, posted at the same time.
func fence(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	const size = 9000
	through, src := a.region(size+8, verbs.LocalWrite), b.region(size, verbs.RemoteRead)
	word := b.region(8, verbs.LocalWrite|verbs.RemoteAtomic)
	back, copied := b.region(size+8, verbs.LocalWrite), b.region(size+8, verbs.LocalWrite|verbs.RemoteWrite)
	for i := range 10 {
		src.fill(i)
		id := b.recv(a, back.SGE(0, size+8))
		read := at(a.wr(verbs.OpRDMARead, b, through.SGE(0, size)), src, 0)
		add := at(a.wr(verbs.OpAtomicFetchAndAdd, b, through.SGE(size, 8)), word, 0)
		add.Atomic.Add = 1
		send := a.wr(verbs.OpSend, b, through.SGE(0, size+8))
		send.Flags |= verbs.Fence
		write := at(a.wr(verbs.OpRDMAWrite, b, through.SGE(0, size+8)), copied, 0)
		wrs := []verbs.SendWR{read, add, send, write}
		for i := range wrs {
			a.post(wrs[i])
		}
		b.received(id, verbs.OpRecv, a)
		for i := range wrs {
			a.sent(&wrs[i], verbs.Success)
		}
		want := append(append([]byte(nil), src.b...), make([]byte, 8)...)
		putWord(want[size:], uint64(i))
		back.equals(want)
		copied.becomes(want)
	}
}
