package verbs

// What setState needs of the queues.

// flushAll ends every outstanding request with WRFlushErr.
func (q *QP) flushAll() {
	for _, ah := range q.ctx.ahs {
		if ah != nil {
			q.fail(ah, WRFlushErr)
		}
	}
	q.flushRecv()
}

// reset forgets every request without completions.
func (q *QP) reset() {
	for q.rq.len() > 0 {
		q.rq.take()
		q.recvCQ.release()
	}
}

// drained reports whether no send request is left that has begun.
func (q *QP) drained() bool {
	for _, ah := range q.ctx.ahs {
		if ah != nil && ah.conn.head >= 0 && q.sq.wqes[ah.conn.head].sent > 0 {
			return false
		}
	}
	return true
}

// resume lets requests go out that have waited in SQD.
func (q *QP) resume() {
	for _, ah := range q.ctx.ahs {
		if ah != nil {
			q.makeReady(ah)
		}
	}
}

// mayGoOn reports whether the peer's current request may go out: it has begun,
// or may begin.
func (q *QP) mayGoOn(c *conn) bool {
	return c.cur >= 0 && (q.mayBegin() || q.sq.wqes[c.cur].sent > 0)
}
