package rma

import "fmt"

// Active implements p2p.ActiveHandler: what this rank does as a target, and what answers
// tell it as an origin. Nothing from outside reaches memory that is not of the window.
func (w *Window) Active(source, what int32, id uint32, body []byte) bool {
	client := what >> clientShift
	what &= 1<<clientShift - 1
	rank := w.rankOf(source, client)
	if rank < 0 {
		return false
	}
	if what>>behindShift == sayComplete { // behind operations, which are for the server
		what &= 1<<behindShift - 1
		return (what == sayPut || what == sayAccumulate) && w.here.serve(source, what, noRecord, body) && w.Active(source, sayComplete, id, nil)
	}
	t := &w.targets[rank]
	switch what {
	case sayData, sayRefused:
		return w.fetchedData(serverOf(&w.flow, rank, source), what, id, body)
	case sayFlushed:
		t = &w.targets[serverOf(&w.flow, rank, source)]
		t.acks = max(t.acks-1, 0)
	case sayLocked, sayBusy:
		t.asked, t.refused = false, what == sayBusy
	case sayServed:
		return t.home == w.targets[w.me].home && Service{&w.flow}.served(source, id, body)
	case sayPost:
		t.posts++
	case sayComplete:
		t.ends++
	default:
		return client == 0 && w.here.take(source, what, id, body)
	}
	return true
}

// Lost implements p2p.ActiveHandler: the locks of a lost rank are free.
func (w *Window) Lost(source int32) {
	if rank := w.rankOf(source, 0); rank >= 0 {
		w.near.bury(rank)
		w.here.lose(source)
	}
}

// fetchedData takes an answer.
func (w *Window) fetchedData(rank, what int32, id uint32, body []byte) bool {
	if what == sayRefused {
		of := w.rankOf(w.targets[rank].home, 0)
		err := &Error{Code: Range, Target: of, Detail: fmt.Sprintf("rank %d has no such memory in the window", of)}
		if id == noRecord {
			w.targets[rank].err = err
			return true
		}
		if int(id) >= len(w.fetches) || !w.fetches[id].busy || w.fetches[id].target != rank {
			return false
		}
		if w.fetches[id].tally == nil {
			w.targets[rank].err = err
		}
		w.fetched(int32(id), err)
		return true
	}
	if int(id) >= len(w.fetches) {
		return false
	}
	f := &w.fetches[id]
	if !f.busy || f.target != rank || f.bytes != len(body) {
		return false
	}
	f.cur.Unpack(body)
	w.fetched(int32(id), nil)
	return true
}
