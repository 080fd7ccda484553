package verbs

// postLocal does a request without a peer, at once: what is posted
// behind it may name what it has bound. But it completes in its turn: a caller that
// waits for it takes it that all before it is done, such as the Read whose sink
// it invalidates.
func (r *rc) postLocal(w *wqe, wr *SendWR) {
	w.setLocal(wr)
	w.status = r.q.do(wr)
	if r.requests.tail++; r.q.state == StateErr {
		r.flush()
		return
	}
	r.pass()
}

// pass completes local requests whose turn has come, and returns how many those
// were.
func (r *rc) pass() (n int) {
	c := &r.cur
	for (!c.mid || c.answering) && c.req != r.requests.tail && r.requests.at(c.req).isLocal() && !r.held(c) {
		c.req++
		n++
	}
	if n > 0 {
		r.settle()
	}
	return n
}
