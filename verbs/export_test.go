package verbs

// Name gives a region the key and the address that it had elsewhere, so that a
// test can repeat what others have done with it.
func (m *MR) Name(key uint32, addr uint64) {
	t := &m.pd.ctx.keys
	t.end(&m.region, nil)
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	t.slots[t.find(key)] = keySlot{key, &m.region}
	t.used++
	m.key, m.addr = key, addr
}

// SetRecvHandler is QPInit.RecvHandler of a queue pair that is there.
func (q *QP) SetRecvHandler(t RecvHandler) { q.rd.in.handler = t }
