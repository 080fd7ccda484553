package verbs

import (
	"fmt"

	"github.com/xwarp/xwarp/internal/mem"
)

// MR is a registered memory region (ibv_reg_mr(3)). Its key names it to
// peers; nothing outside of a region can be reached from the network.
type MR struct {
	pd     *PD
	buf    []byte
	addr   uint64
	key    uint32
	access Access
	valid  bool
	arena  mem.Addr // where buf lies in the arena, if it does
	inside bool
}

// Addr returns the address of the first byte, as SGE.Addr and
// SendWR.RemoteAddr count.
func (m *MR) Addr() uint64 { return m.addr }

// Len returns the length of the region in bytes.
func (m *MR) Len() int { return len(m.buf) }

// LKey returns the key for local use.
func (m *MR) LKey() uint32 { return m.key }

// RKey returns the key to give to peers.
func (m *MR) RKey() uint32 { return m.key }

// Bytes returns the memory, which stays the caller's.
func (m *MR) Bytes() []byte { return m.buf }

// SGE returns n bytes at offset off of the region as a scatter/gather element.
func (m *MR) SGE(off, n int) SGE {
	return SGE{Addr: m.addr + uint64(off), Length: uint32(n), LKey: m.key}
}

// RegMR registers buf, in the arena or not. The caller keeps buf and must not
// free it before Dereg. Registering costs a table entry; nothing is pinned.
func (p *PD) RegMR(buf []byte, access Access) (*MR, error) {
	if p.ctx.closed {
		return nil, ErrClosed
	}
	if access&(RemoteWrite|RemoteAtomic) != 0 && access&LocalWrite == 0 {
		return nil, fmt.Errorf("%w: a region that peers may write needs LocalWrite too (ibv_reg_mr(3))", ErrInvalid)
	}
	m, err := p.ctx.mrs.take()
	if err != nil {
		return nil, err
	}
	m.pd, m.buf, m.addr, m.access, m.valid = p, buf, mem.AddressOf(buf), access, true
	if p.ctx.cfg.ZeroBased {
		m.addr = 0
	}
	m.arena, m.inside = p.ctx.Arena().Find(buf)
	return m, nil
}

// Dereg ends the registration: the key is not valid any more.
func (m *MR) Dereg() error {
	if !m.valid {
		return fmt.Errorf("%w: region was deregistered before", ErrInvalid)
	}
	m.valid, m.buf = false, nil
	m.pd.ctx.mrs.give(m)
	return nil
}

// mrTable finds regions by key: the upper 24 bits are the index, the lower 8
// change each time an index is used again, so that an old key is noticed.
type mrTable struct {
	mrs  []*MR
	free []uint32 // indices
}

const mrMax = 1 << 24

func (t *mrTable) take() (*MR, error) {
	if n := len(t.free); n > 0 {
		m := t.mrs[t.free[n-1]]
		t.free = t.free[:n-1]
		return m, nil
	}
	if len(t.mrs) == mrMax-1 {
		return nil, fmt.Errorf("verbs: all %d memory regions are in use: deregister some", mrMax-1)
	}
	m := &MR{key: uint32(len(t.mrs)+1)<<8 | 1} // key 0 is never valid
	t.mrs = append(t.mrs, m)
	return m, nil
}

func (t *mrTable) give(m *MR) {
	m.key = m.key&^0xff | (m.key+1)&0xff
	t.free = append(t.free, m.key>>8-1)
}

// lookup returns the region with this key, or nil.
func (t *mrTable) lookup(key uint32) *MR {
	i := key>>8 - 1
	if i >= uint32(len(t.mrs)) {
		return nil
	}
	if m := t.mrs[i]; m.valid && m.key == key {
		return m
	}
	return nil
}

// slice returns the n bytes at addr if all of them lie in the region.
func (m *MR) slice(addr uint64, n uint32) ([]byte, bool) {
	off := addr - m.addr
	if off > uint64(len(m.buf)) || uint64(n) > uint64(len(m.buf))-off {
		return nil, false
	}
	return m.buf[off : off+uint64(n) : off+uint64(n)], true
}
