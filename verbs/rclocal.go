package verbs

// isLocal reports whether w concerns nobody else.
func (w *wqe) isLocal() bool { return w.op == OpLocalInv || w.op == OpBindMW }

// postLocal does a request that concerns nobody else, at once: what is posted
// behind it may name what it has bound. But it completes in its turn: whoever
// waits for it takes it that all before it is done, such as the Read whose sink
// it invalidates.
func (r *rc) postLocal(w *wqe, wr *SendWR) {
	w.wrid, w.op, w.flags, w.bufN, w.size = wr.WRID, wr.Opcode, wr.Flags, 0, 0
	w.status = r.q.do(wr)
	if r.tail++; r.q.state == StateErr {
		r.flush()
		return
	}
	r.pass()
}

// pass completes local requests whose turn has come, and returns how many those
// were.
func (r *rc) pass() (n int) {
	c := &r.cur
	for (!c.mid || c.answering) && c.req != r.tail && r.at(c.req).isLocal() && !r.held(c) {
		c.req++
		n++
	}
	if n > 0 {
		r.settle()
	}
	return n
}
