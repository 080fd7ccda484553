package check

import (
	"encoding/binary"

	"github.com/xwarp/xwarp/verbs"
)

// exposed is memory that peers may reach, and the key to it.
type exposed struct {
	*chunk
	region *Region
	grant  *Grant
	used   int // of the region for records: each gets a place of its own
}

// The regions of each life, by position in host.mapped.
const (
	memWritable = iota // peers may write
	memReadable        // peers may read
	memShared          // peers may do both
	memWords           // peers may do atomics
	memRecords         // peers may write, and do so by Write-Record
	memWindows         // peers need a window
	memEnding          // peers may end the registration
	memLocal           // peers may do nothing
	memForeign         // as memShared, but of another protection domain
	memFreed           // was registered
	memCount
)

const (
	regionLen = 4096 // bytes of a region at least
	wordCount = 8    // of the region for atomics
	recordLen = 8 * regionLen
)

// expose registers memory for the peers.
func (h *host) expose() error {
	other, err := h.ctx.AllocPD()
	if err != nil {
		return err
	}
	h.mapped = make([]*exposed, memCount)
	for i, x := range [memCount]struct {
		name   string
		access verbs.Access
		in     *verbs.PD
		size   int
	}{
		memWritable: {"writable", verbs.LocalWrite | verbs.RemoteWrite, h.pd, 0},
		memReadable: {"readable", verbs.RemoteRead, h.pd, 0},
		memShared:   {"shared", verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead, h.pd, 0},
		memWords:    {"words", verbs.LocalWrite | verbs.RemoteAtomic, h.pd, 8 * wordCount},
		memRecords:  {"records", verbs.LocalWrite | verbs.RemoteWrite, h.pd, recordLen},
		memWindows:  {"windows", verbs.LocalWrite | verbs.MWBind, h.pd, 0},
		memEnding:   {"ending", verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteInvalidate, h.pd, 0},
		memLocal:    {"local", verbs.LocalWrite, h.pd, 0},
		memForeign:  {"foreign", verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead, other, 0},
		memFreed:    {"freed", verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead, h.pd, 0},
	} {
		if x.size == 0 {
			x.size = max(regionLen, h.w.MaxMsg+1000)
		}
		if h.mapped[i], err = h.register(x.name, x.in, x.size, x.access); err != nil {
			return err
		}
	}
	freed := h.mapped[memFreed]
	h.w.model.Revoke(freed.grant)
	return freed.mr.Dereg()
}

func (h *host) register(name string, pd *verbs.PD, size int, access verbs.Access) (*exposed, error) {
	m := h.w.model
	c, err := newChunk(h.rng, pd, h.ctx, size, access)
	if err != nil {
		return nil, err
	}
	var r *Region
	if access&verbs.RemoteAtomic != 0 {
		clear(c.bytes())
		r = m.Words(h.life, name, size/8)
	} else {
		h.w.ops++
		Fill(c.bytes(), h.w.ops<<20|1<<63, 0)
		r = m.Region(h.life, name, c.bytes())
	}
	return &exposed{chunk: c, region: r, grant: m.Grant(r, c.mr.RKey(), 0, size, access)}, nil
}

// window is a memory window of a host.
type window struct {
	mw    *verbs.MW
	grant *Grant
	bound bool // the binding has completed
	ended bool // somebody is to end it, or it never was
}

// bind posts the binding of a new window.
func (h *host) bind() bool {
	mw, err := h.pd.AllocMW()
	if err != nil {
		h.w.model.fail("host %d: %v", h.id, err)
		return false
	}
	e := h.mapped[memWindows]
	w := &window{mw: mw}
	off := h.rng.IntN(len(e.bytes()) - 100)
	n := 50 + h.rng.IntN(len(e.bytes())-off-50)
	access := pick(h.rng, verbs.RemoteWrite, verbs.RemoteRead, verbs.RemoteWrite|verbs.RemoteRead)
	w.grant = h.w.model.Pending(e.region, off, n, access)
	o := &Op{Code: verbs.OpBindMW, Signaled: true, Inv: w.grant}
	wr := verbs.SendWR{Bind: &verbs.Bind{MW: mw, MR: e.mr, Offset: off, Length: n, Access: access}}
	if !h.post(h.qp, o, &wr, buffer{}) {
		_ = mw.Dealloc()
		return false
	}
	h.windows = append(h.windows, w)
	return true
}

// bound notes that a window was bound: peers learn of its key.
func (h *host) bound(o *Op) {
	for _, w := range h.windows {
		if w.grant == o.Inv {
			w.bound, w.grant.Key = true, w.mw.RKey()
		}
	}
}

// openWindow returns a window that is bound and that nobody has tried to end.
func (h *host) openWindow(rng interface{ IntN(int) int }) *window {
	if len(h.windows) == 0 {
		return nil
	}
	if w := h.windows[rng.IntN(len(h.windows))]; w.bound && !w.ended {
		return w
	}
	return nil
}

// unbind posts the end of one of the host's own windows.
func (h *host) unbind() bool {
	w := h.openWindow(h.rng)
	if w == nil {
		return false
	}
	w.ended = true
	o := &Op{Code: verbs.OpLocalInv, Signaled: true, Inv: w.grant}
	return h.post(h.qp, o, &verbs.SendWR{InvKey: w.grant.Key}, buffer{})
}

// word reads a word of the region for atomics.
func (e *exposed) word(i int) uint64 { return binary.NativeEndian.Uint64(e.bytes()[8*i:]) }
