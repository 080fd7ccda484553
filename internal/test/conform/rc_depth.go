package conform

import (
	"errors"

	"github.com/xwarp/xwarp/iwarp/rdmap"
	"github.com/xwarp/xwarp/verbs"
)

// rcDepthCases are about how many Reads and atomics may be outstanding.
var rcDepthCases = []verbsCase{
	{name: "depthsAgreed", on: onRC, apart: true, run: depthsAgreed},
	{name: "readsQueue", on: onRC, apart: true, run: readsQueue},
	{name: "noReads", on: onRC, apart: true, run: noReads},
	{name: "tooManyReads", on: onRC, apart: true, hosts: 3, run: tooManyReads},
}

// depthsAgreed connects ends that want different numbers.
func depthsAgreed(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	if r.config.Connect.Revision == 1 {
		r.t.Skip("revision 1 agrees on nothing")
	}
	most := a.ctx.Attr().MaxQPRdAtom
	real := func(n int) int { // what a parameter means
		switch n {
		case 0:
			return most
		case -1:
			return 0
		}
		return n
	}
	for _, d := range [][4]int{ // IRD, ORD of a and of b
		{0, 0, 0, 0}, {1, 1, 1, 1}, {1, 16, 16, 1}, {16, 1, 1, 16}, {3, 5, 2, 7}, {-1, 4, 4, -1}, {4, -1, -1, 4}, {-1, -1, -1, -1},
	} {
		pa := r.with(func(p *verbs.ConnParam) { p.ResponderResources, p.InitiatorDepth = d[0], d[1] })
		pb := r.with(func(p *verbs.ConnParam) { p.ResponderResources, p.InitiatorDepth = d[2], d[3] })
		atA, atB := r.joinWith(a, b, pa, pb)
		for _, x := range []struct {
			who             string
			ord, ird        int // agreed: of the one that reads, of the other
			wanted, offered int
		}{
			{"a", real(atA.Param.InitiatorDepth), real(atB.Param.ResponderResources), real(d[1]), real(d[2])},
			{"b", real(atB.Param.InitiatorDepth), real(atA.Param.ResponderResources), real(d[3]), real(d[0])},
		} {
			if x.ord > x.ird || x.ord > x.wanted || x.ord < min(x.wanted, x.offered) {
				r.t.Errorf("%v: %s may have %d Reads outstanding, its peer answers %d; %d were wanted, %d offered", d, x.who, x.ord, x.ird, x.wanted, x.offered)
			}
		}
		r.exchange(a, b)
		r.part(a, b)
	}
}

// readsQueue posts many more Reads and atomics than may be outstanding, with
// other requests among them. The peer ends the connection if there are ever too
// many.
func readsQueue(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	for _, depth := range []int{1, 2, 3, 16} {
		p := r.with(func(p *verbs.ConnParam) { p.ResponderResources, p.InitiatorDepth = depth, depth })
		r.joinWith(a, b, p, p)
		const count, size = 60, 4000
		var sinks, sources [2]*region
		var wrs [2][]verbs.SendWR
		for i, h := range []*host{a, b} {
			sinks[i] = h.region(count*size, verbs.LocalWrite)
			sources[i] = h.region(count*size, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite).fill(i)
		}
		words := b.region(8, verbs.LocalWrite|verbs.RemoteAtomic)
		old := a.region(8*count, verbs.LocalWrite)
		added := 0
		for i, h := range []*host{a, b} {
			peer := r.hosts[1-i]
			for k := range count {
				wr := at(h.wr(verbs.OpRDMARead, peer, sinks[i].SGE(k*size, size)), sources[1-i], k*size)
				h.post(wr)
				wrs[i] = append(wrs[i], wr)
				switch {
				case k%5 == 0 && i == 0:
					add := at(h.wr(verbs.OpAtomicFetchAndAdd, peer, old.SGE(8*added, 8)), words, 0)
					add.Atomic.Add = 1
					h.post(add)
					wrs[i] = append(wrs[i], add)
					added++
				case k%7 == 0:
					zero := h.wr(verbs.OpRDMAWrite, peer)
					if k%2 == 0 {
						zero.Flags |= verbs.Fence
					}
					h.post(zero)
					wrs[i] = append(wrs[i], zero)
				}
			}
		}
		for i, h := range []*host{a, b} {
			for k := range wrs[i] {
				h.sent(&wrs[i][k], verbs.Success)
			}
			sinks[i].equals(sources[1-i].b)
		}
		for k := range added {
			if v := word(old.b[8*k:]); v != uint64(k) {
				r.t.Fatalf("atomic %d has found %d", k, v)
			}
		}
		r.part(a, b)
	}
}

// noReads connects ends of which one grants no Reads: they cannot be posted, or
// are refused, and all else works.
func noReads(r *rig) {
	a, b := r.hosts[0], r.hosts[1]
	p := r.with(func(p *verbs.ConnParam) { p.InitiatorDepth = -1 })
	r.joinWith(a, b, p, r.config.Connect)
	wr := a.wr(verbs.OpRDMARead, b, a.region(8, verbs.LocalWrite).SGE(0, 8))
	wr.RKey = 1
	if err := a.try(&wr); !errors.Is(err, verbs.ErrInvalid) {
		r.t.Errorf("a Read where none was agreed on: %v", err)
	}
	r.exchange(a, b)
	r.everything(b, a)
}

// tooManyReads has more Reads outstanding than the peer has offered: with
// revision 1 nobody tells. The peer terminates (RFC 5040, section 7.1).
func tooManyReads(r *rig) {
	a, b, c := r.hosts[0], r.hosts[1], r.hosts[2]
	r.join(a, c)
	r.join(b, c)
	one := verbs.ConnParam{Revision: 1, ResponderResources: 1}
	r.joinWith(a, b, verbs.ConnParam{Revision: 1}, one)
	const count, size = 8, 500_000
	sink, src := a.region(count*size, verbs.LocalWrite), b.region(size, verbs.RemoteRead).fill(1)
	var sends []uint64
	for i := range count {
		wr := at(a.wr(verbs.OpRDMARead, b, sink.SGE(i*size, size)), src, 0)
		a.post(wr)
		sends = append(sends, wr.WRID)
	}
	if done := r.ended(a.scq, sends); done > 1 {
		r.t.Errorf("%d Reads have succeeded", done)
	}
	b.hears(a, verbs.EventQPReqErr)
	r.terminated(a, b, c, rdmap.StreamCatastrophic)
}
