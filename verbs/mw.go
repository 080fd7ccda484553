package verbs

import "fmt"

// MW is a memory window (ibv_alloc_mw(3)), type 2: a part of a region that
// peers reach through a key of its own, for as long as the window is bound,
// and through the queue pair only that bound it.
type MW struct {
	region
	domain *PD // nil after Dealloc
}

// AllocMW makes a window that is not bound. Bind it with OpBindMW. It fails with ErrClosed.
func (p *PD) AllocMW() (*MW, error) {
	if p.ctx.closed {
		return nil, ErrClosed
	}
	return &MW{domain: p}, nil
}

// RKey returns the key to give to peers, 0 while the window is not bound. Each
// bind makes a new one; like any key it is random.
func (m *MW) RKey() uint32 { return m.key }

// Dealloc ends the window, bound or not. A second call is ErrInvalid.
func (m *MW) Dealloc() error {
	if m.domain == nil {
		return fmt.Errorf("%w: window was deallocated before", ErrInvalid)
	}
	if m.key != 0 {
		m.unbind()
	}
	m.domain = nil
	return nil
}

// unbind takes the key of a bound window away.
func (m *MW) unbind() {
	m.mr.windows--
	m.domain.ctx.keys.end(&m.region, nil)
	m.region = region{}
}

// do binds a window for the peers of q, at once: what is posted behind the
// request finds it bound.
func (b *Bind) do(q *QP) error {
	if err := b.check(q); err != nil {
		return err
	}
	m, w := b.MR, b.MW
	w.region = region{
		pd: w.domain, qp: q, mr: m, mw: w, access: b.Access,
		buf: m.buf[b.Offset : b.Offset+b.Length : b.Offset+b.Length], addr: m.addr + uint64(b.Offset),
	}
	if !q.ctx.keys.add(&w.region) {
		w.region = region{}
		return fmt.Errorf("verbs: all %d keys are in use: deregister some regions", keyMax)
	}
	m.windows++
	return nil
}

// check holds a bind to the rules of ibv_bind_mw(3) for windows of type 2.
func (b *Bind) check(q *QP) error {
	if b == nil || b.MW == nil || b.MR == nil {
		return fmt.Errorf("%w: BIND_MW needs Bind with a window and a region", ErrInvalid)
	}
	m, w := b.MR, b.MW
	switch {
	case w.domain == nil:
		return fmt.Errorf("%w: window was deallocated", ErrInvalid)
	case m.key == 0:
		return fmt.Errorf("%w: region was deregistered or invalidated", ErrInvalid)
	case w.domain != q.pd || m.pd != q.pd:
		return fmt.Errorf("%w: window, region and queue pair must be of one protection domain", ErrInvalid)
	case w.key != 0:
		return fmt.Errorf("%w: the window is bound: end that with LOCAL_INV of its RKey first", ErrBusy)
	case m.access&MWBind == 0:
		return fmt.Errorf("%w: the region was registered without MWBind", ErrInvalid)
	case b.Access&^(RemoteRead|RemoteWrite|RemoteAtomic) != 0:
		return fmt.Errorf("%w: a window gives RemoteRead, RemoteWrite and RemoteAtomic only", ErrInvalid)
	case b.Access&(RemoteWrite|RemoteAtomic) != 0 && m.access&LocalWrite == 0:
		return fmt.Errorf("%w: peers may write through a window only if its region has LocalWrite (ibv_bind_mw(3))", ErrInvalid)
	case b.Offset < 0 || b.Length <= 0 || b.Offset > len(m.buf) || b.Length > len(m.buf)-b.Offset:
		return fmt.Errorf("%w: window of %d bytes at offset %d of a region of %d", ErrInvalid, b.Length, b.Offset, len(m.buf))
	}
	return nil
}
