package verbs

import (
	"errors"
	"fmt"

	"github.com/xwarp/xwarp/internal/base/mem"
)

// ErrBusy says that an object cannot be destroyed, or bound, while something
// uses it (EBUSY of libibverbs). It is wrapped with what that is.
var ErrBusy = errors.New("verbs: object is in use")

// MR is a registered memory region (ibv_reg_mr(3)). Its key names it to
// peers; nothing outside of a region can be reached from the network.
//
// An MR is not to be used after Dereg: a later registration may get the same
// object.
type MR struct {
	region
	windows int // bound to it
}

// Addr returns the address of the first byte, as SGE.Addr and
// SendWR.RemoteAddr count.
func (m *MR) Addr() uint64 { return m.addr }

// Len returns the length of the region in bytes.
func (m *MR) Len() int { return len(m.buf) }

// LKey returns the key for local use; 0 once the region was invalidated
// (OpLocalInv, Send with Invalidate).
func (m *MR) LKey() uint32 { return m.key }

// RKey returns the key to give to peers; 0 once the region was invalidated.
func (m *MR) RKey() uint32 { return m.key }

// Bytes returns the memory, which stays the caller's.
func (m *MR) Bytes() []byte { return m.buf }

// SGE returns n bytes at offset off of the region as a scatter/gather element.
func (m *MR) SGE(off, n int) SGE {
	return SGE{Addr: m.addr + uint64(off), Length: uint32(n), LKey: m.key}
}

// RegMR registers buf, in the arena or not. The caller keeps buf and must not
// free it before Dereg. Registering costs a table entry; nothing is pinned. Its errors wrap
// ErrClosed or ErrInvalid, or say that all keys are in use.
func (p *PD) RegMR(buf []byte, access Access) (*MR, error) {
	c := p.ctx
	if c.closed {
		return nil, ErrClosed
	}
	if access&(RemoteWrite|RemoteAtomic) != 0 && access&LocalWrite == 0 {
		return nil, fmt.Errorf("%w: a region that peers may write needs LocalWrite too (ibv_reg_mr(3))", ErrInvalid)
	}
	m := c.keys.takeMR()
	m.pd, m.mr, m.buf, m.addr, m.access = p, m, buf, mem.AddressOf(buf), access
	if c.cfg.ZeroBased {
		m.addr = 0
	}
	if a := c.Arena(); a != nil { // the kernel's TCP needs none
		m.arena, m.inside = a.Find(buf)
	}
	if !c.keys.add(&m.region) {
		return nil, fmt.Errorf("verbs: all %d keys are in use: deregister some regions", keyMax)
	}
	return m, nil
}

// Dereg ends the registration: the key is not valid any more, neither for
// requests to be posted nor for peers. Requests that were posted before still
// use the memory. It fails with ErrBusy while memory windows are bound to the
// region (ibv_alloc_mw(3)).
func (m *MR) Dereg() error {
	switch {
	case m.pd == nil:
		return fmt.Errorf("%w: region was deregistered before", ErrInvalid)
	case m.windows > 0:
		return fmt.Errorf("%w: %d memory windows are bound to the region: invalidate or deallocate them first", ErrBusy, m.windows)
	}
	c := m.pd.ctx
	m.pd, m.buf = nil, nil
	if m.key != 0 {
		c.keys.end(&m.region, m)
	}
	return nil
}

// resolve returns the memory that an element of a work request names. Only
// regions have local keys; windows are for peers.
func (c *Context) resolve(pd *PD, s *SGE, need Access) ([]byte, error) {
	if r := c.keys.lookup(s.LKey); r != nil && r.pd == pd && r.mw == nil && r.access&need == need {
		if b, ok := r.slice(s.Addr, s.Length); ok {
			return b, nil
		}
	}
	return nil, c.unresolved(pd, s, need)
}

// unresolved says why resolve found nothing.
func (c *Context) unresolved(pd *PD, s *SGE, need Access) error {
	r := c.keys.lookup(s.LKey)
	switch {
	case r == nil || r.pd != pd || r.mw != nil:
		return fmt.Errorf("%w: local key %#x names no region of this protection domain", ErrInvalid, s.LKey)
	case r.access&need != need:
		return fmt.Errorf("%w: the region with local key %#x was registered without LocalWrite", ErrInvalid, s.LKey)
	}
	return fmt.Errorf("%w: %d bytes at %#x are not inside of the region [%#x, %#x)", ErrInvalid, s.Length, s.Addr, r.addr, r.addr+uint64(len(r.buf)))
}
